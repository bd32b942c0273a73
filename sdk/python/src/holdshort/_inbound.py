"""Reads the body of an approval webhook in either shape, and fails closed where two readings are possible.

| shape | request id | decision | the sender's own value |
|---|---|---|---|
| flat | `requestId` | `decision` | `response`, or `values` for a `response` of `{"values": ...}` |
| envelope | `data.requestId`, `data.id` | `data.response.decision`, `.action`; `type` expired | `data.response` |
"""

from collections.abc import Iterable
from typing import Any, NoReturn

import msgspec

from holdshort import _inbound_names as names
from holdshort import _strict_json
from holdshort._decision_words import Word, decision_word, known
from holdshort._digests import text_of
from holdshort._errors import BadRequest
from holdshort._inbound_names import Members, member


class DecisionReceived(msgspec.Struct, frozen=True, kw_only=True):
    """One decision as a webhook's body holds it. It has no truth value: ask `.approved`.

    Args:
        request_id: the approval_request_id; None where only `approval_id` was named.
        approval_id: the control plane's id of the approval, where the sender named it.
        execution_id: the execution that is meant, where named.
        round: the how-many-eth ask is meant, where named.
        decision: approved, rejected, request_changes or expired.
        feedback: the comment, "" when there is none.
        response: the sender's own value; None when there is none, or null.
    """

    request_id: str | None
    approval_id: str | None
    execution_id: str | None
    round: int | None
    decision: Word
    feedback: str
    response: Any

    @property
    def approved(self) -> bool:
        """True only for approved."""
        return self.decision == "approved"

    def __bool__(self) -> NoReturn:
        """Refuse: `if received:` would run the action after a rejection too."""
        raise TypeError("a DecisionReceived has no truth value; ask received.approved")


class IgnoredEvent(msgspec.Struct, frozen=True):
    """An event that decides nothing, such as `request.opened`; `type` as sent. Answer it with 200."""

    type: str

    @property
    def approved(self) -> bool:
        """False: nothing was decided."""
        return False

    def __bool__(self) -> NoReturn:
        """Refuse, as a DecisionReceived does."""
        raise TypeError("an IgnoredEvent has no truth value; nothing was decided")


def read_decision(body: bytes) -> DecisionReceived | IgnoredEvent:
    """The decision in a webhook's body. Verify the signature over the same bytes before.

    Args:
        body: the bytes as received, never parsed and written again.

    Raises:
        BadRequest: nothing was decided. Its `code` is invalid_body (no strict JSON object, a field of the wrong
            type, two ids that disagree), request_id_missing, decision_missing, invalid_decision, or
            decision_conflict (two words that disagree, or one in an event that decides nothing).
    """
    top = _strict_json.parse(body)
    if not isinstance(top, dict):
        raise _strict_json.refused("the body must be a JSON object")
    kind, data = top.get("type"), top.get("data")
    if not isinstance(kind, str) or not kind or not isinstance(data, dict):
        return _flat(body, top, rivals=())
    if _answers_flat(top):
        names.one("requestId", names.values([top, data], names.REQUEST))
        return _flat(body, top, rivals=_envelope_words(kind, data))
    return _envelope(top, kind, data)


def _answers_flat(top: Members) -> bool:
    named = any(top.get(name) is not None for name in (*names.REQUEST, "approval_id"))
    return named and top.get("decision") is not None


def _flat(body: bytes, top: Members, *, rivals: Iterable[Any]) -> DecisionReceived:
    """Read the flat shape; `rivals` are the words that a reader of the envelope would find."""
    named = names.read([top], request=names.values([top], names.REQUEST), execution=[top])
    if top.get("decision") is None:
        raise _missing()
    decision = decision_word(top["decision"])
    response = member(top, "response")
    # A reader of the other shape would look there; `action` beside a flat decision is the sender's own matter.
    if not {known(word) for word in (*rivals, response.get("decision"))} <= {None, decision}:
        raise _conflict()
    feedback = _feedback(top, response)
    return _received(named, decision, feedback, _response(body, top))


def _envelope(top: Members, kind: str, data: Members) -> DecisionReceived | IgnoredEvent:
    words = _envelope_words(kind, data)
    claims = [word for word in (*words, top.get("decision")) if word is not None]
    if kind.removeprefix("request.") not in {"completed", "expired"}:
        if any(map(known, claims)):
            raise _conflict()
        return IgnoredEvent(kind)
    request = [*names.values([top, data], names.REQUEST), *names.values([data], ("id",))]
    named = names.read([top, data], request=request, execution=[top, data, member(data, "metadata")])
    if not words:
        raise _missing()
    decisions = {decision_word(word) for word in claims}
    if len(decisions) > 1:
        raise _conflict()
    return _received(named, decisions.pop(), _feedback(top, member(data, "response")), data.get("response"))


def _received(named: names.Named, decision: Word, feedback: str, response: Any) -> DecisionReceived:
    return DecisionReceived(
        request_id=named.request_id,
        approval_id=named.approval_id,
        execution_id=named.execution_id,
        round=named.round,
        decision=decision,
        feedback=feedback,
        response=response,
    )


def _envelope_words(kind: str, data: Members) -> list[Any]:
    """Every decision word that stands in an envelope's own places, known or not."""
    response = member(data, "response")
    words = [response[name] for name in ("decision", "action") if response.get(name) is not None]
    return [*words, "expired"] if kind.removeprefix("request.") == "expired" else words


def _feedback(top: Members, response: Members) -> str:
    feedback = top.get("feedback")
    if feedback is None:
        inner = response.get("feedback")
        return inner if isinstance(inner, str) else ""
    if not isinstance(feedback, str):
        raise names.invalid("feedback", "must be a string")
    return feedback


def _response(body: bytes, top: Members) -> Any:
    """The flat shape's own value, where `values` may stand for a response that has nothing else."""
    response, values = top.get("response"), top.get("values")
    if values is None:
        return response
    if response is None:
        return {"values": values}
    exact = _strict_json.tokens(body)
    inner = member(exact, "response").get("values")
    if inner is None or text_of(inner) != text_of(exact["values"]):
        raise names.invalid("values", "is given beside a response that has others")
    return response


def _missing() -> BadRequest:
    meant = "approved, rejected, request_changes or expired"
    return BadRequest(f"the body holds no decision; send {meant}", code="decision_missing")


def _conflict() -> BadRequest:
    return BadRequest("the body holds two decisions that disagree; send one", code="decision_conflict")
