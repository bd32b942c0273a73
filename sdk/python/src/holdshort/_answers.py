"""What an agent answers over HTTP, before it is sent."""

from http import HTTPStatus
from typing import Any

import msgspec

from holdshort._errors import HandedBack


class Answered(msgspec.Struct, frozen=True):
    """An HTTP answer before it is sent."""

    status: int
    body: Any
    headers: dict[str, str] = {}


def problem(status: int, code: str, message: str, **more: Any) -> Answered:
    """An error answer (RFC 9457) with its stable code."""
    title = HTTPStatus(status).phrase
    known = {"type": "about:blank", "title": title, "status": status, "detail": message}
    return Answered(status, {**known, "error": code, "message": message, **more})


def wrong_method(allowed: str) -> Answered:
    """405, with the method that this path takes."""
    return Answered(405, problem(405, "method_not_allowed", f"use {allowed}").body, {"allow": allowed})


def invalid(field: str, rule: str) -> Answered:
    """422: a field and the rule it breaks."""
    return problem(422, "invalid_input", f"{field}: {rule}", errors=[{"field": field, "rule": rule}])


def not_meant() -> Answered:
    """503: the process that this was sent to is not here any more; the control plane will know that soon."""
    return problem(503, "other_instance", "another process was at this address when the run was sent; send it again")


def stopping(end: HandedBack | None = None, **known: Any) -> Answered:
    """503: this process stops, and another one (or this one, started again) goes on with the run."""
    told = end or HandedBack("this agent is stopping; call it again when it is back")
    answer = problem(503, told.code, told.message, execution_status="waiting", **known)
    return Answered(503, answer.body, {"retry-after": "1"})
