"""Deliveries: telling an agent of a decision until it says that it has it, or until three days have passed."""

from datetime import datetime, timedelta
from enum import StrEnum
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from controlplane.domain.approvals import Approval

GIVE_UP_AFTER = timedelta(hours=72)
LEASE = timedelta(seconds=15)
TOLD_AGAIN_EVERY = timedelta(seconds=1)
IN_FLIGHT_PER_TARGET = 4
# One process claims for a target what is in flight and as much again, which is sent within the lease even if slow.
CLAIMS_PER_TARGET = 2 * IN_FLIGHT_PER_TARGET
REPLY_LIMIT_BYTES = 64 * 1024
SEND_DEADLINE_SECONDS = 5.0

_SCHEDULE = tuple(timedelta(seconds=s) for s in (1, 5, 30, 120, 600, 1800, 3600))
_JITTER = 0.2
_DEFAULT_PORTS = {"http": 80, "https": 443}


class DeliveryStatus(StrEnum):
    """The states of a delivery; all but `pending` are ends, and a `dead` one can be re-driven."""

    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"
    OBSOLETE = "obsolete"


class Claimed(Struct, frozen=True, kw_only=True):
    """A delivery that this process may try now, under a fence: only its holder can settle it.

    `attempts` counts the try that is about to be made; `now` is the database's clock at the claim. `allow` is
    what the node's own key lets be called (`domain.keys`).
    """

    delivery_id: str
    url: str
    target: str
    secret: str | None
    attempts: int
    fence: int
    told_at: datetime
    now: datetime
    approval: Approval
    allow: tuple[str, ...] = ()


class Attempt(Struct, frozen=True):
    """What one try brought: the reply's status and body, or why there was none.

    `written`: some of the request was sent, so that the receiver may know of it although no reply came.
    """

    status: int | None = None
    reply: bytes = b""
    error: str | None = None
    written: bool = False


class Verdict(Struct, frozen=True):
    """What becomes of a delivery after a try: its state, the pause before the next try, and what to keep of it."""

    status: DeliveryStatus
    retry_in: timedelta | None = None
    error: str | None = None


class Callback(Struct, frozen=True, kw_only=True):
    """The body of a callback: `data` and `response` are both the sender's own value, for both kinds of client."""

    execution_id: str
    approval_request_id: str
    approval_id: str
    round: int
    decision: str
    new_status: str
    feedback: str
    response: msgspec.Raw
    data: msgspec.Raw


def callback_body(approval: Approval) -> bytes:
    """What an agent is told of an approval that is final; the same bytes at every try."""
    value = msgspec.Raw(approval.response if approval.response is not None else b"null")
    return msgspec.json.encode(
        Callback(
            execution_id=approval.execution_id,
            approval_request_id=approval.approval_request_id,
            approval_id=approval.approval_id,
            round=approval.round,
            decision=approval.status,
            new_status=approval.new_status or "",
            feedback=approval.feedback or "",
            response=value,
            data=value,
        )
    )


def judge(claimed: Claimed, attempt: Attempt, *, jitter: float) -> Verdict:
    """Decide a delivery's next state from what its receiver answered.

    Args:
        claimed: the delivery as claimed.
        attempt: what the try brought.
        jitter: a number in 0..1 that spreads retries by 20 % either way.
    """
    if attempt.status == 410:
        return Verdict(DeliveryStatus.DEAD, error="the receiver says that it is gone for good (410)")
    error = _fault(attempt)
    if error is None:
        return Verdict(DeliveryStatus.DELIVERED)
    if claimed.now - claimed.told_at >= GIVE_UP_AFTER:
        return Verdict(DeliveryStatus.DEAD, error=error)
    return Verdict(DeliveryStatus.PENDING, retry_in=retry_delay(claimed.attempts, jitter), error=error)


def retry_delay(attempts: int, jitter: float) -> timedelta:
    """The pause after the n-th try: 1 s, 5 s, 30 s, 2 min, 10 min, 30 min, then hourly, each within 20 %."""
    return spread(_SCHEDULE[min(attempts, len(_SCHEDULE)) - 1], jitter)


def spread(pause: timedelta, jitter: float) -> timedelta:
    """A pause made up to 20 % shorter or longer by a number in 0..1, so that retries do not come all at once."""
    return pause * (1 - _JITTER + 2 * _JITTER * jitter)


def target_of(url: str) -> str:
    """The origin of a callback URL: the unit of the limit on tries in flight."""
    parts = urlsplit(url)
    port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
    return f"{parts.scheme}://{parts.hostname}:{port}"


def _fault(attempt: Attempt) -> str | None:
    if attempt.status is None:
        return attempt.error or "no reply"
    if not 200 <= attempt.status < 300:
        return f"status {attempt.status}"
    return "the receiver answered resolved: false" if _unresolved(attempt.reply) else None


def _unresolved(reply: bytes) -> bool:
    """True when the reply's JSON object says that no pause was waiting for this."""
    try:
        body = msgspec.json.decode(reply)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(body, dict) and body.get("resolved") is False
