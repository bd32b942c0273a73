"""Parked answers: signed webhooks that arrived before anybody asked, kept until somebody does."""

import hashlib
from datetime import datetime

from msgspec import Struct

from controlplane.domain.approvals import ApprovalStatus

MAX_PARKED_PER_SENDER = 10_000
MAX_PARKED_BYTES = 64 * 1024
MAX_REPEATS = 100
_RIVAL = "rival:"


class Parked(Struct, frozen=True, kw_only=True):
    """An early answer; `execution_id` None leaves open which execution will ask.

    `keys` recognise its repeats, and the sender's later answers with another decision (`rival_keys`).
    """

    parked_id: str
    sender: str
    approval_request_id: str
    execution_id: str | None
    decision: ApprovalStatus
    feedback: str
    response: bytes | None
    keys: tuple[str, ...]
    received_at: datetime
    expires_at: datetime

    def own_keys(self) -> tuple[str, ...]:
        """What recognises this answer itself."""
        return tuple(key for key in self.keys if not key.startswith(_RIVAL))

    def keys_of_rivals(self) -> tuple[str, ...]:
        """What recognises the answers that came after it and were told that it stands."""
        return tuple(key.removeprefix(_RIVAL) for key in self.keys if key.startswith(_RIVAL))


class Choice(Struct, frozen=True):
    """Which parked answer is used for an approval that was just asked, and which are dropped."""

    used: Parked | None
    dropped: tuple[Parked, ...]


def choose(parked: tuple[Parked, ...], decided_by: str | None) -> Choice:
    """Pick the answer for round 1: of the senders that may decide, one that names the execution first, then the oldest.

    Args:
        parked: the answers kept under this request id for this execution or for any.
        decided_by: the only sender that may decide, or None for any.
    """
    allowed = [p for p in parked if decided_by in (None, p.sender)]
    ranked = sorted(allowed, key=lambda p: (p.execution_id is None, p.received_at, p.parked_id))
    used = ranked[0] if ranked else None
    return Choice(used, tuple(p for p in parked if p is not used))


def keys_of(webhook_id: str | None, body: bytes) -> tuple[str, ...]:
    """What recognises a webhook when it comes again: its bytes, and its id where the scheme that verified signs one."""
    digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
    return (digest,) if webhook_id is None else (f"id:{webhook_id}", digest)


def rival_keys(keys: tuple[str, ...]) -> tuple[str, ...]:
    """The keys of an answer that differs from the one that is kept, marked so as to be kept with it."""
    return tuple(_RIVAL + key for key in keys)
