"""Fleets: the instances of one node that are there, and which of them is given the next run."""

from collections.abc import Iterable, Mapping

from controlplane.domain.nodes import Instance, InstanceStatus


class Fleet:
    """The instances of one node with what each works on; runs that are given out count at once.

    Args:
        instances: the node's, live and draining.
        at_work: how many runs each instance works on, by its id.
        most: how many runs the node may work on at once.
    """

    def __init__(self, instances: Iterable[Instance], at_work: Mapping[str, int], most: int) -> None:
        """Nothing given out yet."""
        self._instances = {instance.instance_id: instance for instance in instances}
        self._load = {instance_id: at_work.get(instance_id, 0) for instance_id in self._instances}
        self._most = most

    @property
    def room(self) -> int:
        """How many more runs the node may be given."""
        return max(0, self._most - sum(self._load.values()))

    def named(self, instance_id: str | None) -> Instance | None:
        """One of the instances, if it is there."""
        return self._instances.get(instance_id or "")

    def take(self, reasoner: str, *, avoid: str | None = None) -> Instance | None:
        """The live instance that serves this reasoner and works on the least; None when there is none.

        Args:
            reasoner: what is to be run.
            avoid: where the last try failed: taken only if nobody else is there.
        """
        serving = [i for i in self._instances.values() if i.status is InstanceStatus.LIVE and reasoner in i.reasoners]
        if not serving:
            return None
        chosen = min(serving, key=lambda i: (i.instance_id == avoid, self._load[i.instance_id], i.instance_id))
        self._load[chosen.instance_id] += 1
        return chosen
