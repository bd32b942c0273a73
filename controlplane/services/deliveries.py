"""Telling agents: claim and settle around a send that happens in no transaction, and re-drive by hand."""

from collections.abc import Sequence

from controlplane.domain.deliveries import DeliveryStatus
from controlplane.domain.errors import DeliveryNotFound, DeliverySettled
from controlplane.domain.events import DISPATCHER, Actor, Fact, FactType
from controlplane.storage import deliveries, history, outbox, resting
from controlplane.storage.deliveries import Listed
from controlplane.storage.engine import Connection
from controlplane.storage.outbox import Tried

_FACTS = {
    DeliveryStatus.DELIVERED: FactType.DELIVERY_DELIVERED,
    DeliveryStatus.DEAD: FactType.DELIVERY_DEAD,
}


async def settle(conn: Connection, tried: Sequence[Tried]) -> set[str]:
    """Write what tries came to; return the deliveries still held, the others were taken over and are left alone.

    One that failed and whose agent is gone is not tried again before another instance of it is there.
    """
    settled = await outbox.settle(conn, tried)
    ended = [one for one in tried if one.claimed.delivery_id in settled and one.verdict.status in _FACTS]
    await history.record(conn, *(_fact(one, settled[one.claimed.delivery_id]) for one in ended))
    failed = [one.claimed.delivery_id for one in tried if one.verdict.retry_in is not None]
    await resting.rest_tried(conn, [each for each in failed if each in settled])
    return set(settled)


async def redrive(conn: Connection, delivery_id: str, actor: Actor) -> Listed:
    """Send a pending or dead delivery again now, with all its tries before it.

    Raises:
        DeliveryNotFound: no such delivery.
        DeliverySettled: it was delivered, or its execution is over.
    """
    driven = await deliveries.redrive(conn, delivery_id)
    if driven is None:
        found = await deliveries.get(conn, delivery_id)
        if found is None:
            raise DeliveryNotFound
        raise DeliverySettled(delivery_status=found.status)
    was, again = driven
    fact = Fact(
        type=FactType.DELIVERY_REDRIVEN,
        actor=actor,
        execution_id=again.execution_id,
        approval_id=again.approval_id,
        node_id=again.node_id,
        data={"delivery_id": delivery_id, "from": was, "to": again.status},
    )
    await history.record(conn, fact)
    return again


def _fact(one: Tried, was: DeliveryStatus) -> Fact:
    approval = one.claimed.approval
    return Fact(
        type=_FACTS[one.verdict.status],
        actor=DISPATCHER,
        execution_id=approval.execution_id,
        approval_id=approval.approval_id,
        approval_request_id=approval.approval_request_id,
        node_id=approval.node_id,
        data={
            "delivery_id": one.claimed.delivery_id,
            "from": was,
            "to": one.verdict.status,
            "attempts": one.claimed.attempts,
            "error": one.verdict.error,
        },
    )
