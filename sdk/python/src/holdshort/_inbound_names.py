"""Which approval a webhook's body means: its ids and its round, each checked against its other spellings."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from holdshort import _strict_json
from holdshort._errors import BadRequest

Members = dict[str, Any]
Value = tuple[str, Any]
REQUEST = ("requestId", "approval_request_id")
_EXECUTION = ("executionId", "execution_id")
_OWN = "apr_"
_MAX_ROUND = 2**31 - 1
_NAME = re.compile(r"[A-Za-z0-9._~:-]{1,128}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class Named(msgspec.Struct, frozen=True):
    """Which approval a body means."""

    request_id: str | None
    approval_id: str | None
    execution_id: str | None
    round: int | None


def read(places: Sequence[Members], *, request: list[Value], execution: Sequence[Members]) -> Named:
    """The ids and the round that a body names.

    Args:
        places: the objects where the approval's own id and the round may stand.
        request: what stands in the request id's places.
        execution: the objects where the execution may stand.

    Raises:
        BadRequest: invalid_body for one that is no id, or two that disagree; request_id_missing.
    """
    request_id, approvals = one("requestId", request), values(places, ("approval_id",))
    if request_id is not None and request_id.startswith(_OWN):
        approvals, request_id = [*approvals, ("approval_id", request_id)], None
    approval_id = one("approval_id", approvals)
    execution_id = one("executionId", values(execution, _EXECUTION))
    request_id = request_id if (request_id or "").strip() else None
    if request_id is None and approval_id is None:
        raise BadRequest("the body names no approval; send requestId (or approval_id)", code="request_id_missing")
    _check_request(request_id)
    _check_name("approval_id", approval_id)
    _check_name("executionId", execution_id)
    return Named(request_id, approval_id, execution_id, _round(places))


def values(places: Iterable[Members], names: Iterable[str]) -> list[Value]:
    """Whatever stands under these names, null counting as absent."""
    wanted = tuple(names)
    return [(name, place[name]) for place in places for name in wanted if place.get(name) is not None]


def one(field: str, found: Iterable[Value]) -> str | None:
    """The one text that all spellings agree on, None when there is none of them.

    Raises:
        BadRequest: invalid_body; one is no text, or two disagree.
    """
    texts: set[str] = set()
    for name, value in found:
        if not isinstance(value, str):
            raise invalid(name, "must be a string")
        texts.add(value)
    if len(texts) > 1:
        raise invalid(field, "is given twice with different values")
    return texts.pop() if texts else None


def member(place: Members, name: str) -> Members:
    """The object under this name, an empty one when there is none."""
    value = place.get(name)
    return value if isinstance(value, dict) else {}


def invalid(field: str, rule: str) -> BadRequest:
    """The error of a field that breaks a rule of bodies."""
    return _strict_json.refused(f"{field} {rule}", errors=[{"field": field, "rule": rule}])


def _round(places: Iterable[Members]) -> int | None:
    rounds: set[int] = set()
    for _, value in values(places, ("round",)):
        # True is an int to Python and no round to anybody.
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MAX_ROUND:
            raise invalid("round", "must be an integer of at least 1")
        rounds.add(value)
    if len(rounds) > 1:
        raise invalid("round", "is given twice with different values")
    return rounds.pop() if rounds else None


def _check_request(value: str | None) -> None:
    if value is None:
        return
    if len(value) > 256:
        raise invalid("requestId", "must be 1-256 characters")
    if _CONTROL.search(value):
        raise invalid("requestId", "must not contain control characters")


def _check_name(field: str, value: str | None) -> None:
    if value is None:
        return
    if not _NAME.fullmatch(value):
        raise invalid(field, "must be 1-128 characters of A-Z a-z 0-9 . _ ~ : -")
    if not value.strip("."):
        raise invalid(field, "must not be of dots only, which paths lose on their way")
