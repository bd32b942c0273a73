"""From when an agent is served until it stops: registered, given runs, drained within a bound, and gone."""

import asyncio
from typing import TYPE_CHECKING
from uuid import uuid4

from holdshort._dispatches import Dispatches
from holdshort._node import LEASE_S, Node
from holdshort._node_routes import Registration

if TYPE_CHECKING:
    from holdshort._agent import Agent
    from holdshort._reasoners import Reasoner

DRAIN_S = 8.0


class Lifetime:
    """What goes on in the background while an agent is served.

    Args:
        agent: that is served.
    """

    def __init__(self, agent: "Agent") -> None:
        self._agent = agent
        self._node: Node | None = None
        self._until: float | None = None
        self.dispatches = Dispatches(agent, agent.reasoners, lambda: self._node)
        # A server of its own is only reachable when it listens, which is after the application has started.
        self.waits_for_server = False

    @property
    def registered(self) -> bool:
        """True while the control plane can give runs to this process."""
        return self._node is not None and self._node.registered

    def begin(self) -> None:
        """The application has started: register, unless its server says when it listens."""
        if not self.waits_for_server:
            self.listens()

    def listens(self) -> None:
        """Register now, or as soon as an address is known."""
        if self._node is not None:
            return
        self._agent.registry.draining = False
        self._until = None
        self.dispatches.instance_id = uuid4().hex
        self._agent.sessions.enter()
        self._node = Node(self._agent.client(), self._described, self.dispatches.let_go)

    def changed(self) -> None:
        """The agent has an address, or a reasoner, that it had not at the start."""
        if self._node is not None:
            self._node.look_again()

    def begin_to_end(self, seconds: float = DRAIN_S) -> None:
        """Take nothing new, hand back what waits, and let what runs finish for so many seconds; once."""
        if self._until is not None:
            return
        self._until = asyncio.get_running_loop().time() + seconds
        if self._node is not None:
            self._node.drain()
        self._agent.registry.hand_back()

    async def end(self) -> None:
        """Return when the time is up or everything has ended, and the control plane knows that this process is gone."""
        self.begin_to_end()
        loop = asyncio.get_running_loop()
        await self.dispatches.finish(max(0.0, (self._until or 0.0) - loop.time()))
        node, self._node = self._node, None
        if node is not None:
            await node.stop()
            await self._agent.sessions.leave()

    def _described(self) -> Registration | None:
        agent = self._agent
        if agent.base_url is None:
            return None
        return Registration(
            node_id=agent.node_id,
            base_url=agent.base_url,
            instance_id=self.dispatches.instance_id,
            version=agent.version,
            reasoners=[_described(each) for each in agent.reasoners.values()],
            features={"replay": True, "fence": True},
            lease_seconds=LEASE_S,
            max_concurrent=agent.max_concurrent,
        )


def _described(reasoner: "Reasoner") -> dict[str, object]:
    known = {
        "name": reasoner.name,
        "timeout_seconds": reasoner.timeout_seconds,
        "resume": reasoner.resume,
        "input_schema": reasoner.schema,
    }
    return {name: value for name, value in known.items() if value is not None}
