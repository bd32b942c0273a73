"""Reads the body of an approval webhook in either shape, and fails closed where two readings are possible.

| shape | request id | decision | the sender's own value |
|---|---|---|---|
| flat | `requestId` | `decision` | `response`, or `values` for a `response` of `{"values": ...}` |
| envelope | `data.requestId`, `data.id` | `data.response.decision`, `.action`; `type` expired | `data.response` |

`sdk/conformance/webhook_bodies.json` holds the cases that every implementation must agree on.
"""

from collections.abc import Callable, Iterable

import msgspec

from controlplane.domain import ids, json_text
from controlplane.domain.decisions import Decision, DecisionReceived, canonical, known
from controlplane.domain.digests import canonical as canonical_json
from controlplane.domain.errors import DecisionConflict, DecisionMissing, FieldFault, InvalidBody, RequestIdMissing
from controlplane.domain.json_text import JSON
from controlplane.edge import strict_json

MAX_ROUND = 2**31 - 1

Members = dict[str, JSON]
_Value = tuple[str, JSON]

_REQUEST_NAMES = ("requestId", "approval_request_id")
_EXECUTION_NAMES = ("executionId", "execution_id")


class Ignored(msgspec.Struct, frozen=True):
    """An event that decides nothing, such as `request.opened`; `type` as sent."""

    type: str


class _Named(msgspec.Struct, frozen=True):
    """Which approval a body means."""

    request_id: str | None
    approval_id: str | None
    execution_id: str | None
    round: int | None


def parse(raw: bytes) -> DecisionReceived | Ignored:
    """The decision in a webhook's body, whose signature was verified over the same bytes before.

    Args:
        raw: the body as received.

    Raises:
        InvalidBody: no strict JSON object, a field of the wrong type, or two ids or rounds that disagree.
        RequestIdMissing: neither a request id nor an approval_id.
        DecisionMissing: no decision word.
        InvalidDecision: an unknown one.
        DecisionConflict: two words that disagree, or one in an event that decides nothing.
    """
    top = strict_json.parse(raw)
    if not isinstance(top, dict):
        raise InvalidBody("The body must be a JSON object.")
    kind, data = top.get("type"), top.get("data")
    if not isinstance(kind, str) or not kind or not isinstance(data, dict):
        return _flat(raw, top, rivals=[])
    if _answers_flat(top):
        _one("requestId", [*_values([top], _REQUEST_NAMES), *_values([data], _REQUEST_NAMES)])
        return _flat(raw, top, rivals=_envelope_words(kind, data))
    return _envelope(raw, top, kind=kind, data=data)


def _answers_flat(top: Members) -> bool:
    named = any(top.get(name) is not None for name in (*_REQUEST_NAMES, "approval_id"))
    return named and top.get("decision") is not None


def _flat(raw: bytes, top: Members, *, rivals: list[JSON]) -> DecisionReceived:
    """Read the flat shape; `rivals` are the words that a reader of the envelope would find."""
    named = _named([top], request=_values([top], _REQUEST_NAMES), execution=_values([top], _EXECUTION_NAMES))
    if top.get("decision") is None:
        raise DecisionMissing
    decision = canonical(top["decision"])
    response = _object(top, "response")
    # A reader of the other shape would look there; `action` beside a flat decision is the sender's own matter.
    if not {known(word) for word in (*rivals, response.get("decision"))} <= {None, decision}:
        raise DecisionConflict
    return DecisionReceived(
        request_id=named.request_id,
        approval_id=named.approval_id,
        execution_id=named.execution_id,
        round=named.round,
        decision=decision,
        feedback=_feedback(top, response),
        response=_response(raw),
        shape="flat",
    )


def _envelope(raw: bytes, top: Members, *, kind: str, data: Members) -> DecisionReceived | Ignored:
    words, rivals = _envelope_words(kind, data), [top.get("decision")]
    if not _decides(kind):
        if any(known(word) for word in (*words, *rivals)):
            raise DecisionConflict
        return Ignored(kind)
    places = [top, data]
    named = _named(
        places,
        request=[*_values(places, _REQUEST_NAMES), *_values([data], ["id"])],
        execution=_values([*places, _object(data, "metadata")], _EXECUTION_NAMES),
    )
    if not words:
        raise DecisionMissing
    decisions = {canonical(word) for word in (*words, *rivals) if word is not None}
    if len(decisions) > 1:
        raise DecisionConflict
    return DecisionReceived(
        request_id=named.request_id,
        approval_id=named.approval_id,
        execution_id=named.execution_id,
        round=named.round,
        decision=decisions.pop(),
        feedback=_feedback(top, _object(data, "response")),
        response=_sent(raw, "data", "response"),
        shape="envelope",
    )


def _decides(kind: str) -> bool:
    return kind.removeprefix("request.") in {"completed", "expired"}


def _envelope_words(kind: str, data: Members) -> list[JSON]:
    """Every decision word that stands in an envelope's own places, known or not."""
    response = _object(data, "response")
    words = [response[name] for name in ("decision", "action") if response.get(name) is not None]
    if kind.removeprefix("request.") == Decision.EXPIRED:
        words.append(Decision.EXPIRED)
    return words


def _named(places: list[Members], *, request: list[_Value], execution: list[_Value]) -> _Named:
    """Check the ids and the round that a body names, each against its other spellings."""
    request_id = _one("requestId", request)
    approvals = _values(places, ["approval_id"])
    if request_id is not None and ids.names_approval(request_id):
        approvals, request_id = [*approvals, ("approval_id", request_id)], None
    approval_id, execution_id = _one("approval_id", approvals), _one("executionId", execution)
    if not (request_id or "").strip():
        request_id = None
    if request_id is None and approval_id is None:
        raise RequestIdMissing
    return _Named(
        request_id=_checked(ids.check_request_id, "requestId", request_id),
        approval_id=_checked(ids.check_name, "approval_id", approval_id),
        execution_id=_checked(ids.check_name, "executionId", execution_id),
        round=_round(places),
    )


def _values(places: list[Members], names: Iterable[str]) -> list[_Value]:
    """Whatever stands under these names, null counting as absent."""
    return [(name, place[name]) for place in places for name in names if place.get(name) is not None]


def _one(field: str, values: list[_Value]) -> str | None:
    """The one text that all spellings agree on, or None when none of them is there."""
    texts: set[str] = set()
    for name, value in values:
        if not isinstance(value, str):
            raise _invalid(name, "must be a string")
        texts.add(value)
    if len(texts) > 1:
        raise _invalid(field, "is given twice with different values")
    return texts.pop() if texts else None


def _round(places: list[Members]) -> int | None:
    rounds: set[int] = set()
    for _, value in _values(places, ["round"]):
        # True is an int to Python and no round to anybody.
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_ROUND:
            raise _invalid("round", "must be an integer of at least 1")
        rounds.add(value)
    if len(rounds) > 1:
        raise _invalid("round", "is given twice with different values")
    return rounds.pop() if rounds else None


def _checked(check: Callable[[str, str], str], field: str, value: str | None) -> str | None:
    """Apply a rule for ids, whose breach in a webhook is a bad body and no bad field."""
    if value is None:
        return None
    try:
        return check(field, value)
    except FieldFault as fault:
        raise _invalid(field, fault.rule) from None


def _feedback(top: Members, response: Members) -> str:
    feedback = top.get("feedback")
    if feedback is None:
        inner = response.get("feedback")
        return inner if isinstance(inner, str) else ""
    if not isinstance(feedback, str):
        raise _invalid("feedback", "must be a string")
    return feedback


def _sent(raw: bytes, *path: str) -> bytes | None:
    """The sender's own value as the bytes received; null is the same as none."""
    value = json_text.member(raw, *path)
    return None if value == b"null" else value


def _response(raw: bytes) -> bytes | None:
    """The flat shape's own value, where `values` may stand for a response that has nothing else."""
    response, values = _sent(raw, "response"), _sent(raw, "values")
    if values is None:
        return response
    if response is None:
        return b'{"values":' + values + b"}"
    inner = _sent(raw, "response", "values")
    if inner is None or canonical_json(inner) != canonical_json(values):
        raise _invalid("values", "is given beside a response that has others")
    return response


def _object(place: Members, name: str) -> Members:
    value = place.get(name)
    return value if isinstance(value, dict) else {}


def _invalid(field: str, rule: str) -> InvalidBody:
    return InvalidBody(f"{field} {rule}.", errors=[{"field": field, "rule": rule}])
