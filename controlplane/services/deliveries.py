"""Telling agents: claim and settle around a send that happens in no transaction, and re-drive by hand."""

from controlplane.domain.deliveries import Claimed, DeliveryStatus, Verdict
from controlplane.domain.errors import DeliveryNotFound, DeliverySettled
from controlplane.domain.events import DISPATCHER, Actor, Fact, FactType
from controlplane.storage import deliveries, history
from controlplane.storage.deliveries import Listed, Settlement
from controlplane.storage.engine import Connection

_FACTS = {
    DeliveryStatus.DELIVERED: FactType.DELIVERY_DELIVERED,
    DeliveryStatus.DEAD: FactType.DELIVERY_DEAD,
}


async def settle(conn: Connection, claimed: Claimed, verdict: Verdict, last_status: int | None) -> bool:
    """Write what a try came to; False when another has taken the delivery over, and nothing is written then."""
    settlement = Settlement(
        delivery_id=claimed.delivery_id,
        fence=claimed.fence,
        status=verdict.status,
        retry_in=verdict.retry_in,
        last_status=last_status,
        last_error=verdict.error,
    )
    if not await deliveries.settle(conn, settlement):
        return False
    if verdict.status in _FACTS:
        await history.record(conn, _fact(claimed, _FACTS[verdict.status], verdict))
    return True


async def redrive(conn: Connection, delivery_id: str, actor: Actor) -> Listed:
    """Send a pending or dead delivery again now, with all its tries before it.

    Raises:
        DeliveryNotFound: no such delivery.
        DeliverySettled: it was delivered, or its execution is over.
    """
    again = await deliveries.redrive(conn, delivery_id)
    if again is None:
        found = await deliveries.get(conn, delivery_id)
        if found is None:
            raise DeliveryNotFound
        raise DeliverySettled(delivery_status=found.status)
    fact = Fact(
        type=FactType.DELIVERY_REDRIVEN,
        actor=actor,
        execution_id=again.execution_id,
        approval_id=again.approval_id,
        node_id=again.node_id,
        data={"delivery_id": delivery_id},
    )
    await history.record(conn, fact)
    return again


def _fact(claimed: Claimed, type_: FactType, verdict: Verdict) -> Fact:
    approval = claimed.approval
    return Fact(
        type=type_,
        actor=DISPATCHER,
        execution_id=approval.execution_id,
        approval_id=approval.approval_id,
        approval_request_id=approval.approval_request_id,
        node_id=approval.node_id,
        data={"delivery_id": claimed.delivery_id, "attempts": claimed.attempts, "error": verdict.error},
    )
