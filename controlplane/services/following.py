"""Callbacks follow their agent: what points to an instance that is gone moves to one of its node that is there."""

from controlplane.domain.addresses import moved_url
from controlplane.domain.deliveries import target_of
from controlplane.domain.events import RECOVERY, Fact, FactType
from controlplane.storage import history, pointing, resting
from controlplane.storage.engine import Connection
from controlplane.storage.pointing import Left, Pointing
from controlplane.storage.resting import Resting


async def move_deliveries(conn: Connection, *, nodes: int, limit: int) -> int:
    """Send what rests for nodes that are there again to where they are, a batch a node; return how many moved."""
    moved = 0
    for home in await resting.homes(conn, nodes):
        found = await resting.lock_resting(conn, home.node_id, limit)
        urls = {each.delivery_id: _new_url(each, home.base_url) for each in found}
        await resting.move(conn, urls)
        await history.record(conn, *(_moved(each, urls[each.delivery_id]) for each in found))
        moved += len(urls)
    return moved


async def move_callbacks(conn: Connection, left: Left, *, limit: int) -> bool:
    """Give a batch of pending approvals the new address of their agent; True when there may be more to do at once.

    Executions that others hold locked are left for later.
    """
    found = await pointing.lock_pointing(conn, left, limit)
    if not found:
        await pointing.close(conn, left)
        return False
    moves = [(each, moved_url(each.callback_url, left.base_url, left.home_url)) for each in found]
    written = await pointing.repoint(conn, [(each, url) for each, url in moves if url is not None])
    await history.record(conn, *(_fact(each, left) for each in found if each.approval_id in written))
    return bool(written)


def _new_url(one: Resting, home_url: str) -> str:
    """Where a callback goes now; one whose address is in use again, or not known any more, stays as it is."""
    return (one.left_url and moved_url(one.url, one.left_url, home_url)) or one.url


def _moved(one: Resting, url: str) -> Fact:
    return Fact(
        type=FactType.DELIVERY_MOVED,
        actor=RECOVERY,
        execution_id=one.execution_id,
        approval_id=one.approval_id,
        node_id=one.node_id,
        data={"delivery_id": one.delivery_id, "from": target_of(one.url), "to": target_of(url)},
    )


def _fact(one: Pointing, left: Left) -> Fact:
    return Fact(
        type=FactType.CALLBACK_CHANGED,
        actor=RECOVERY,
        execution_id=one.execution_id,
        approval_id=one.approval_id,
        approval_request_id=one.approval_request_id,
        node_id=one.node_id,
        data={"from": left.base_url, "to": left.home_url},
    )
