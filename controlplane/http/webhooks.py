"""Review services answer here with a signed webhook; the HMAC over the bytes as received is the proof."""

from datetime import datetime, timedelta
from typing import Any

from litestar import Request, Response, post
from msgspec import Struct

from controlplane.domain import parking, signatures
from controlplane.domain.errors import SenderUnreadable, SignatureInvalid, WebhookNotConfigured
from controlplane.domain.signatures import Verified
from controlplane.edge import bodies
from controlplane.edge.deps import address_of, runtime_of
from controlplane.edge.throttle import counted
from controlplane.http import inbound
from controlplane.http.deciding import DecisionOut, decision_out
from controlplane.runtime.sender_book import Known
from controlplane.services import webhooks as service
from controlplane.services.webhooks import Applied, Incoming, KeptForLater, Policy, Replayed


class ParkedOut(Struct):
    """Nobody has asked yet: the answer is kept until `expires_at`; `decision` is the one that is kept."""

    status: str
    approval_request_id: str
    execution_id: str | None
    decision: str
    expires_at: datetime


class IgnoredOut(Struct):
    """An event that decides nothing."""

    status: str
    type: str


@post("/webhooks/approval-response", status_code=200, opt={"takes_any": True, "also": [202]})
async def approval_response(request: Request[Any, Any, Any]) -> Response[DecisionOut | ParkedOut | IgnoredOut]:
    """Decide an approval by a signed webhook, flat or in an envelope; needs no key but the signature."""
    runtime = runtime_of(request)
    settings = runtime.settings
    raw = await bodies.read(request, limit=bodies.MIB)
    verified = _verified(request, raw, await runtime.senders.known())
    received = inbound.parse(raw)
    if isinstance(received, inbound.Ignored):
        return Response(IgnoredOut("ignored", received.type))
    incoming = Incoming(
        sender=verified.sender,
        received=received,
        keys=parking.keys_of(verified.webhook_id, raw),
        size=len(raw),
        address=address_of(request),
    )
    policy = Policy(
        newest_wins=settings.unnamed_webhooks == "newest", parked_for=timedelta(seconds=settings.parked_seconds)
    )
    async with runtime.transaction() as conn:
        result = await service.receive(conn, incoming, policy, runtime.new_id)
    return _reply(result)


def _verified(request: Request[Any, Any, Any], raw: bytes, known: Known) -> Verified:
    now = runtime_of(request).unix()
    try:
        return signatures.verify(list(request.scope["headers"]), raw, secrets=known.secrets, now=now)
    except SignatureInvalid as refusal:
        # Where a secret cannot be read it may have been made with that one: its sender shall come again.
        raise counted(request, SenderUnreadable() if known.unreadable else refusal) from None
    except WebhookNotConfigured:
        if known.unreadable:
            raise SenderUnreadable from None
        raise


def _reply(result: Applied | Replayed | KeptForLater) -> Response[DecisionOut | ParkedOut | IgnoredOut]:
    if isinstance(result, KeptForLater):
        kept = result.parked
        status = "parked" if result.fresh else "already_parked"
        out = ParkedOut(status, kept.approval_request_id, kept.execution_id, kept.decision, kept.expires_at)
        return Response(out, status_code=202 if result.fresh else 200)
    return Response(decision_out(result.outcome, replayed=isinstance(result, Replayed)))
