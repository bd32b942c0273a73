"""Nodes: their instances come, give signs of life and go; whoever calls a reasoner finds out whether there is one."""

from collections.abc import Sequence

from controlplane.domain import nodes as rules
from controlplane.domain.errors import FieldFault, NodeNotFound, ReasonerNotFound
from controlplane.domain.events import RECOVERY, Actor
from controlplane.domain.ids import INSTANCE_PREFIX
from controlplane.domain.nodes import Beat, GoneReason, Instance, Node, Reasoner, Registration
from controlplane.storage import clock, dispatches, history, instances, nodes, resting
from controlplane.storage.cases import NewId
from controlplane.storage.engine import Connection
from controlplane.storage.instances import Present

NAMED_AT_MOST = 50
SHOWN_INSTANCES = 100
_REGISTER_AGAIN = "No such instance is there; register it again."


async def register(conn: Connection, wanted: Registration, *, actor: Actor, new_id: NewId) -> Instance:
    """Take up a process of a node: new, again, or back from the dead.

    Another one at its address is gone, as two cannot listen there; others of the node stay.

    Raises:
        FieldFault: another node has an instance of this id.
    """
    await nodes.keep(conn, wanted)
    met = await instances.lock_met(conn, wanted)
    now = await clock.now(conn)
    arrival = rules.arrive(wanted, met, now=now, left_id=new_id(INSTANCE_PREFIX), actor=actor)
    if not await instances.put(conn, arrival.instance):
        raise FieldFault("instance_id", "must not be the id of another node's instance")
    if arrival.left is not None:
        await instances.put(conn, arrival.left, callbacks_left=True)
        await resting.rest(conn, [arrival.left])
    if arrival.replaced:
        await instances.end(conn, [each.instance_id for each in arrival.replaced], GoneReason.REPLACED)
        await resting.send_again(conn, wanted.node_id, wanted.base_url)
    await history.record(conn, *arrival.facts)
    await dispatches.wake(conn, wanted.node_id)
    return arrival.instance


async def beat(conn: Connection, node_id: str, instance_id: str | None, told: Beat, actor: Actor) -> Present:
    """Take a sign of life; it is written only where that matters. Without an id it is the newest instance's.

    Raises:
        NodeNotFound: no such instance is there; it should register again.
    """
    found = await instances.present(conn, node_id, instance_id)
    if found is None:
        raise NodeNotFound(_REGISTER_AGAIN)
    after = rules.renewed(found, told, found.now)
    if after is None:
        return found
    if not await instances.renew(conn, after):
        raise NodeNotFound(_REGISTER_AGAIN)
    await history.record(conn, *rules.drained(found, after, actor))
    conn.changes.work = conn.changes.work or after.status is not found.status
    return after


async def shut_down(conn: Connection, node_id: str, instance_id: str | None, actor: Actor) -> None:
    """Let an instance go that says that it stops. Without an id it is the oldest, as the newer ones replace it.

    Raises:
        NodeNotFound: there never was such an instance.
    """
    found = await instances.present(conn, node_id, instance_id, oldest=True)
    if found is not None:
        await _leave(conn, await instances.end(conn, [found.instance_id], GoneReason.SHUTDOWN), actor)
    elif not await instances.known(conn, node_id, instance_id):
        raise NodeNotFound


async def expire_leases(conn: Connection, *, watched_seconds: float, limit: int) -> int:
    """Let instances go whose lease has passed; return how many. A silence that began before the watch is not theirs.

    Args:
        conn: the open transaction.
        watched_seconds: for how long the caller has watched without a break, by the database's clock.
        limit: how many at most.
    """
    silent = await instances.expire(conn, watched_seconds=watched_seconds, limit=limit)
    await _leave(conn, silent, RECOVERY)
    return len(silent)


async def known_reasoner(conn: Connection, node_id: str, reasoner: str) -> Reasoner:
    """A node's reasoner, as it was registered last; whether an instance is there does not matter.

    Raises:
        NodeNotFound: no such node is registered; `registered` names those that are, as far as the caller sees them.
        ReasonerNotFound: the node has no such reasoner; `registered` names those that it has, if the caller sees it.
    """
    known, found = await nodes.reasoner(conn, node_id, reasoner)
    if not known:
        raise await _unknown(conn)
    if found is None:
        node = await nodes.get(conn, node_id)
        named = node.reasoners[:NAMED_AT_MOST] if node is not None else ()
        raise ReasonerNotFound(registered=[each.name for each in named])
    return found


async def look(conn: Connection, node_id: str) -> Node:
    """One node.

    Raises:
        NodeNotFound: no such node is registered.
    """
    node = await nodes.get(conn, node_id)
    if node is None:
        raise await _unknown(conn)
    return node


async def _unknown(conn: Connection) -> NodeNotFound:
    return NodeNotFound(registered=sorted(await nodes.names(conn, NAMED_AT_MOST)))


async def _leave(conn: Connection, gone: Sequence[Instance], actor: Actor) -> None:
    """What is undelivered to instances that are gone rests until it can follow."""
    await resting.rest(conn, gone)
    await history.record(conn, *(rules.gone_fact(each, actor) for each in gone))
    conn.changes.work = conn.changes.work or bool(gone)
