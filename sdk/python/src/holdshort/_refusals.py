"""Which error an answer of the control plane is: by its code first, by its status where that is not ours to know."""

from collections.abc import Mapping
from typing import Any, ClassVar

from holdshort._errors import (
    AlreadyDecided,
    AmbiguousRequestId,
    ApprovalChanged,
    BadRequest,
    Conflict,
    ExecutionExists,
    ExecutionFinished,
    HoldshortError,
    IdempotencyConflict,
    InvalidField,
    KeyRefused,
    NodeOwned,
    NotAuthorised,
    NotFound,
    Refused,
    RequestConflict,
    RoundNotOpen,
    RunEnded,
    StaleInstance,
    StepMismatch,
    StepTooLarge,
    Unavailable,
    WrongScope,
)
from holdshort._feedback_errors import (
    AlreadyAnswered,
    AnswerTaken,
    DuplicateRequest,
    FeedbackCancelled,
    FeedbackEnded,
    FeedbackExpired,
    InvalidAnswer,
    RequestIdUsed,
)


class _Table:
    """Which class an error answer becomes: by code first, by status where the code is not ours to know."""

    by_code: ClassVar[dict[str, type[Refused]]] = {
        kind.code: kind
        for kind in (
            ExecutionFinished,
            RoundNotOpen,
            RequestConflict,
            AmbiguousRequestId,
            ApprovalChanged,
            AlreadyDecided,
            ExecutionExists,
            IdempotencyConflict,
            StepTooLarge,
            KeyRefused,
            WrongScope,
            NodeOwned,
            FeedbackExpired,
            FeedbackCancelled,
            AnswerTaken,
            DuplicateRequest,
            RequestIdUsed,
            AlreadyAnswered,
            InvalidAnswer,
        )
    }
    by_code["not_authenticated"] = KeyRefused
    ends: ClassVar[dict[str, type[RunEnded]]] = {kind.code: kind for kind in (StaleInstance, StepMismatch)}
    by_status: ClassVar[dict[int, type[Refused]]] = {
        400: BadRequest,
        401: NotAuthorised,
        403: NotAuthorised,
        404: NotFound,
        409: Conflict,
        410: FeedbackEnded,
        413: BadRequest,
        415: BadRequest,
        422: InvalidField,
        429: Unavailable,
    }


def refusal(status: int, problem: Mapping[str, Any], request_id: str | None) -> HoldshortError | RunEnded:
    """The error that an answer of the control plane becomes.

    Args:
        status: HTTP status, 300 or above.
        problem: the problem document, empty when the body was none.
        request_id: the answer's X-Request-ID.
    """
    code = _text(problem, "error")
    message = _text(problem, "message") or _text(problem, "detail") or _unsaid(status)
    details = {k: v for k, v in problem.items() if k not in {"type", "title", "status", "detail", "error", "message"}}
    known = {"code": code, "status": status, "request_id": request_id, "details": details}
    if end := _Table.ends.get(code or ""):
        return end(message, **known)
    fallback = Unavailable if status >= 500 else Refused
    kind = _Table.by_code.get(code or "") or _Table.by_status.get(status, fallback)
    return kind(f"{message} {kind.advice}".rstrip(), **known)


def _unsaid(status: int) -> str:
    if status < 400:
        return (
            f"the control plane answered {status}, which is not followed: the key goes nowhere else; set HOLDSHORT_URL"
        )
    return f"the control plane answered {status}"


def _text(problem: Mapping[str, Any], member: str) -> str | None:
    # What stands between may answer in a form of its own.
    value = problem.get(member)
    return value if isinstance(value, str) else None
