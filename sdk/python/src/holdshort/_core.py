"""Requests, replies and retries without any I/O; the clients only send what this module says.

Every route here is safe to repeat: the control plane recognises an ask by its round, an execution, note and
decision by its id, so a lost reply costs nothing but another try.
"""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from holdshort import _errors
from holdshort._refusals import refusal

T = TypeVar("T")

FIRST_DELAY_S = 0.05
OWN_DELAY_CAP_S = 10.0
DELAY_CAP_S = 60.0
PATIENCE_S = 30.0
REPLY_S = 30.0
FAIR_S = 5.0
RETRIED = frozenset({429, 502, 503, 504})
_NO_PARTS = frozenset({"", ".", ".."})
_NOTHING: Mapping[str, Any] = {}
_NO_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Call(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One call of a route: what to send, how long the server may hold it, and what its answer is read as.

    `reply` is how many seconds, beyond `hold`, may pass in silence until the answer counts as lost.
    """

    method: str
    path: str
    reads: type[T]
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    headers: Mapping[str, str] = _NOTHING
    hold: float = 0.0
    reply: float = REPLY_S

    def __repr__(self) -> str:
        """Without its body, which may hold what a person answered."""
        return f"Call({self.method} {self.path})"


class Reply(msgspec.Struct, frozen=True):
    """An HTTP answer; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Unreachable(Exception):  # a signal between the transport and the retries, never seen outside
    """No answer came: refused, reset, or out of time."""


class Again(msgspec.Struct, frozen=True):
    """Send it again after `delay` seconds."""

    delay: float


def path(*parts: str) -> str:
    """A path under /api/v1, each part quoted.

    Raises:
        InvalidField: a part is nothing, or dots alone, which would lead to another route.
    """
    if not _NO_PARTS.isdisjoint(parts):
        rule = "must not be empty, nor dots alone"
        raise _errors.InvalidField(f"id {rule}", details={"errors": [{"field": "id", "rule": rule}]})
    return "/api/v1/" + "/".join(quote(part, safe="") for part in parts)


def query(**values: object) -> tuple[tuple[str, str], ...]:
    """Query parameters, without those that are None."""
    return tuple((name, str(value)) for name, value in values.items() if value is not None)


def body(**members: object) -> bytes:
    """A JSON object, without members that are None."""
    return msgspec.json.encode({name: value for name, value in members.items() if value is not None})


def within(call: Call[T], left: float | None) -> Call[T]:
    """The call, waiting for its answer no longer than the caller does; every try has 5 s, so that a last one is fair.

    Args:
        call: about to be sent.
        left: seconds the caller still gives, None for any.
    """
    if left is None:
        return call
    return msgspec.structs.replace(call, reply=min(REPLY_S, max(FAIR_S, left)))


def judge(
    call: Call[T], outcome: Reply | Unreachable, tries: int, left: float | None, *, jitter: float
) -> Again | Reply:
    """Whether to send again.

    Args:
        call: what was sent.
        outcome: what came back.
        tries: how many times it was sent.
        left: seconds the caller still gives, None for any.
        jitter: 0 to 1.

    Raises:
        ConnectionFailed: no answer, and the caller's time is up.
    """
    if isinstance(outcome, Reply) and outcome.status not in RETRIED:
        return outcome
    delay = delay_after(outcome, tries, jitter)
    if left is None or delay <= left:
        return Again(delay)
    if isinstance(outcome, Reply):
        return outcome
    raise _errors.ConnectionFailed(f"{call.method} {call.path}: no answer from the control plane ({outcome})")


def delay_after(outcome: Reply | Unreachable, tries: int, jitter: float) -> float:
    """Seconds until the next try: doubled each time from 50 ms to 10 s, or what Retry-After says, at most 60 s."""
    own = min(OWN_DELAY_CAP_S, FIRST_DELAY_S * 2.0 ** min(tries - 1, 12)) * (0.5 + jitter / 2)
    asked = _retry_after(outcome.headers) if isinstance(outcome, Reply) else None
    return own if asked is None else min(DELAY_CAP_S, asked + own)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(min(int(value[:9]), 10**6))
    try:
        # A date is compared with the server's own Date, so a wrong clock here does not matter.
        wanted, sent = parsedate_to_datetime(value), parsedate_to_datetime(headers.get("date", ""))
        return max(0.0, (wanted - sent).total_seconds())
    except (TypeError, ValueError):
        return None


def read(call: Call[T], reply: Reply) -> T:
    """The answer as its struct.

    Raises:
        HoldshortError: the leaf that the answer's code or status means.
        StaleInstance: another instance took the run over.
    """
    if reply.status >= 300:
        raise refusal(reply.status, _problem(reply.body), reply.headers.get("x-request-id"))
    try:
        return msgspec.json.decode(reply.body, type=call.reads)
    except _NO_JSON as error:
        raise _errors.Refused(
            f"{call.method} {call.path}: the answer is not what this route says ({error}); is HOLDSHORT_URL right?",
            code="unexpected_reply",
            status=reply.status,
            request_id=reply.headers.get("x-request-id"),
        ) from error


def _problem(raw: bytes) -> Mapping[str, Any]:
    try:
        problem = msgspec.json.decode(raw)
    except _NO_JSON:
        return _NOTHING
    return problem if isinstance(problem, dict) else _NOTHING
