"""What only older agents of this wire send: other words for a status, errors in other shapes, a stop told as an end.

`docs/peers.md` says the same to people.
"""

import json
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from controlplane.domain.errors import FieldFault
from controlplane.domain.executions import FINAL_EXECUTION, ExecutionStatus

MAX_ERROR = 64 * 1024
SHUTDOWN = "shutdown"

ALIASES = {
    "success": ExecutionStatus.SUCCEEDED,
    "successful": ExecutionStatus.SUCCEEDED,
    "completed": ExecutionStatus.SUCCEEDED,
    "complete": ExecutionStatus.SUCCEEDED,
    "done": ExecutionStatus.SUCCEEDED,
    "ok": ExecutionStatus.SUCCEEDED,
    "error": ExecutionStatus.FAILED,
    "errored": ExecutionStatus.FAILED,
    "failure": ExecutionStatus.FAILED,
    "canceled": ExecutionStatus.CANCELLED,
    "cancel": ExecutionStatus.CANCELLED,
    "timed_out": ExecutionStatus.TIMEOUT,
    "awaiting_approval": ExecutionStatus.WAITING,
    "awaiting_human": ExecutionStatus.WAITING,
    "approval_pending": ExecutionStatus.WAITING,
    "in_progress": ExecutionStatus.RUNNING,
    "processing": ExecutionStatus.RUNNING,
    "pending": ExecutionStatus.QUEUED,
    "wait": ExecutionStatus.QUEUED,
}
_WORDS = {status.value: status for status in ExecutionStatus} | ALIASES
_RULE = "one of " + ", ".join(_WORDS)

StatusWord = Annotated[
    str,
    Meta(
        max_length=64, extra={"rule": _RULE}, extra_json_schema={"enum": [status.value for status in ExecutionStatus]}
    ),
]
Reason = Annotated[
    str, Meta(pattern=r"^[a-z_]{1,64}(?![\s\S])", extra={"rule": "a string of 1 to 64 characters of a-z _"})
]
Fault = Annotated[str | dict[str, Any], Meta(extra={"rule": "a string or an object"})]


def status_of(word: str) -> ExecutionStatus:
    """The status that a word means, in any case.

    Raises:
        FieldFault: no such word, with those that there are.
    """
    found = _known(word)
    if found is None:
        raise FieldFault("status", f"must be {_RULE}")
    return found


def final_word(body: Any) -> bool:
    """True when a report's or an event's word ends the run that it is about."""
    word = body.get("status") if isinstance(body, dict) else None
    return isinstance(word, str) and _known(word) in FINAL_EXECUTION


def ends_a_run(raw: bytes) -> bool:
    """True when a report that was refused as JSON was meant as an end all the same.

    Parsers that are less strict read it, and its sender does not repeat it: without an end its run would run for ever.
    """
    try:
        return final_word(json.loads(raw))
    except (ValueError, RecursionError):
        return False


def error_text(error: Fault | None, details: Any = None) -> str | None:
    """What a failed run said, as a text of 64 Ki characters at most; an object as its JSON."""
    said = error if error is not None else details
    if said is None:
        return None
    text = said if isinstance(said, str) else msgspec.json.encode(said).decode()
    return text[:MAX_ERROR]


def reason_of(reason: str | None, details: Any) -> str | None:
    """Why a run failed, as a code: its agent's own, else the one that an older agent puts into the details."""
    if reason is not None:
        return reason
    try:
        return msgspec.convert(_inner_reason(details), Reason)
    except msgspec.ValidationError:
        return None


def is_hand_back(status: ExecutionStatus, details: Any) -> bool:
    """True when `cancelled` only says that the agent's program is being stopped."""
    return status is ExecutionStatus.CANCELLED and _inner_reason(details) == SHUTDOWN


def _known(word: str) -> ExecutionStatus | None:
    # Other scripts have letters whose lower case is one of a-z.
    return _WORDS.get(word.strip().lower()) if word.isascii() else None


def _inner_reason(details: Any) -> Any:
    return details.get("reason") if isinstance(details, dict) else None
