"""JSON and the decisions in it: what is read must be what Python's own parser reads at the same place, or a refusal.

That parser is lenient, so a reading of our own stands behind it: names once, no NUL, whole characters, numbers that a
double holds, no more than 64 levels.
"""

import json
import math
import re
from typing import Any

import msgspec
from msgspec import Struct

from controlplane.domain import digests, json_text
from controlplane.domain.decisions import DecisionReceived, known
from controlplane.domain.errors import (
    DecisionConflict,
    DecisionMissing,
    FieldFault,
    InvalidBody,
    InvalidDecision,
    RequestIdMissing,
)
from controlplane.edge import bodies, strict_json
from controlplane.http import inbound
from controlplane.http.routes import TABLE
from tests.contract.vectors import load
from tests.fuzz.draw import Draw
from tests.fuzz.outcomes import Disagreement, FalseAccept

WORDS = {
    "approved": ("approve", "continue", "confirm", "approved"),
    "rejected": ("reject", "deny", "abort", "cancel", "rejected"),
    "request_changes": ("request_changes",),
    "expired": ("expired",),
}
MEANINGS = {word: meaning for meaning, words in WORDS.items() for word in words}
BODIES = [case["body"].encode() for case in load("webhook_bodies")["cases"] if len(case["body"]) < 600]
KINDS: list[type[Struct]] = sorted(
    {handler.opt["takes"] for handlers in TABLE.values() for handler in handlers if "takes" in handler.opt},
    key=lambda kind: kind.__name__,
)

NAMES = (
    *("requestId", "decision", "data", "type", "response", "executionId", "approval_id", "round", "feedback", "id"),
    *("action", "metadata", "execution_id", "approval_request_id", "createdAt"),
)
_SPELLED = ("decisi\\u006fn", "Decision", "decision ", "data\\u0000", "__proto__", "", "type", "é")
_WORDS = (
    '"approved"',
    '"Approve"',
    '" confirm\\t"',
    '"rejected"',
    '"deny"',
    '"expired"',
    '"request_changes"',
    '"approve\\u0064"',
    '"\\u212Aontinue"',
    '"\u017fapproved"',
    '"approved\\u00a0"',
    '"approved "',
    '"yes"',
    '""',
    "true",
    "1",
    "null",
    '["approved"]',
    '{"decision":"approved"}',
)
_LEAVES = (
    *_WORDS,
    '"r1"',
    '"r2"',
    '"apr_1"',
    '"e1"',
    '"request.completed"',
    '"completed"',
    '"request.expired"',
    '"ping"',
    "2",
    "0",
    "-0",
    "1e400",
    "1e-400",
    "1.0",
    "123456789012345678901234567890",
    "NaN",
    "-Infinity",
    '"\\ud800"',
    '"\\ud83d\\ude00"',
    '"\\u0000"',
    '"a\\\\u0000"',
    "01",
    "[]",
    "{}",
    "\ufeff1",
)
_Pairs = list[tuple[str, object]]


class _Loose(Exception):
    """Why a lenient parser takes what must be refused."""


def body_of(draw: Draw) -> bytes:
    """A webhook's body: a known one with changes, one put together from its words, or bytes as they come."""
    kind = draw.below(8)
    if kind == 0:
        return draw.rest()
    return draw.mutated(draw.choice(BODIES), 2) if kind < 4 else draw.mutated(_object(draw, 3).encode(), 1)


def json_of(draw: Draw) -> bytes:
    """Some JSON, nearly."""
    kind = draw.below(8)
    if kind == 0:
        return draw.rest()
    if kind == 1:
        depth = 58 + draw.below(10)
        return draw.mutated(b"[" * depth + draw.choice((b"", b"{}", b'"]"', b'"\\"]"')) + b"]" * depth)
    return draw.mutated(_value(draw, 4).encode(), 2)


def try_decision(data: bytes) -> str:
    """One webhook's body, read as a decision."""
    return judge_decision(body_of(Draw(data)))


def try_json(data: bytes) -> str:
    """One text, read as strict JSON."""
    return judge_json(json_of(Draw(data)))


def try_digest(data: bytes) -> str:
    """One JSON value and the same in another spelling: one digest."""
    draw = Draw(data)
    return judge_digest(json_of(draw), draw.below(4))


def try_body(data: bytes) -> str:
    """One request body, read as one of the structs that routes take."""
    draw = Draw(data)
    kind = draw.choice(KINDS)
    return judge_body(kind, _of_kind(draw, kind))


def judge_decision(raw: bytes) -> str:
    """Read a decision, and hold it against the other reading."""
    try:
        found = inbound.parse(raw)
    except (DecisionConflict, DecisionMissing, InvalidBody, InvalidDecision, RequestIdMissing) as refusal:
        return refusal.code
    top = _reading(raw)
    if not isinstance(top, dict):
        raise FalseAccept("no object, and no refusal")
    meant = {_meaning(word) for word in places(top)} - {None}
    if not isinstance(found, DecisionReceived):
        if meant:
            raise Disagreement(f"ignored, though it says {meant}")
        return "ignored"
    if meant != {found.decision}:
        raise FalseAccept(f"read as {found.decision}, but it says {meant}")
    _check_ids(found, top)
    return "approved" if found.decision == "approved" else "another decision"


def judge_json(raw: bytes) -> str:
    """Read strict JSON, and hold it against the lenient parser with the rules written down once more."""
    try:
        value, said = strict_json.parse(raw), "taken"
    except InvalidBody:
        value, said = None, "refused"
    try:
        read, right = _reading(raw), "taken"
    except (_Loose, ValueError, RecursionError):
        read, right = None, "refused"
    if said != right:
        raise (FalseAccept if said == "taken" else Disagreement)(f"{said}, but should be {right}")
    if said == "taken" and not _same(value, read):
        raise Disagreement("two readings of one text")
    return said


def judge_digest(raw: bytes, style: int) -> str:
    """A digest covers the content and nothing of its spelling."""
    try:
        once = digests.canonical(raw)
    except InvalidBody:
        return "refused"
    value = json.loads(raw, parse_int=_Numeral, parse_float=_Numeral)
    other = _spelled(value, style).encode()
    if digests.canonical(once) != once:
        raise Disagreement("the canonical form has another canonical form")
    if digests.canonical(other) != once:
        raise Disagreement("another spelling has another digest")
    if not _same(json.loads(once), json.loads(raw)):
        raise FalseAccept("the canonical form says something else")
    return "digested"


def judge_body(kind: type[Struct], raw: bytes) -> str:
    """A struct is made of what stands there, or the field and its rule are named."""
    try:
        found = bodies.decode(raw, kind)
    except (InvalidBody, FieldFault) as refusal:
        return refusal.code
    members = _reading(raw)
    if not isinstance(members, dict):
        raise FalseAccept("no object was taken for a body")
    for field in msgspec.structs.fields(kind):
        value = getattr(found, field.name)
        if isinstance(value, str | int | float) and field.encode_name in members:
            sent = members[field.encode_name]
            if isinstance(value, bool) != isinstance(sent, bool) or value != sent:
                raise FalseAccept(f"{field.encode_name} is {value!r}, but {sent!r} was sent")
    return "taken"


def _check_ids(found: DecisionReceived, top: dict[str, Any]) -> None:
    data = top["data"] if isinstance(top.get("data"), dict) else {}
    ids = [place.get(name) for place in (top, data) for name in ("requestId", "approval_request_id", "approval_id")]
    if found.shape == "envelope":
        ids.append(data.get("id"))
    named = [each for each in (found.request_id, found.approval_id) if each is not None]
    if not named or not all(each in ids for each in named):
        raise FalseAccept(f"named {named}, but it names {ids}")
    sent = json.loads(found.response) if found.response is not None else None
    holder = top if found.shape == "flat" else data
    if not _same(sent, holder.get("response")):
        raise Disagreement("another response than was sent")
    if "\x00" in found.feedback:
        raise FalseAccept("a NUL in the feedback")


def places(top: dict[str, Any]) -> list[object]:
    """Every place where a reader of either shape would look for a decision."""
    found = [top.get("decision")]
    data, kind = top.get("data"), top.get("type")
    if isinstance(data, dict) and isinstance(kind, str) and kind:
        answer = data.get("response")
        found += [answer.get("decision"), answer.get("action")] if isinstance(answer, dict) else []
        found += [kind.removeprefix("request.")] if kind.removeprefix("request.") == "expired" else []
    return found


def _meaning(word: object) -> str | None:
    meaning = (
        MEANINGS.get(re.sub(r"[A-Z]", lambda found: found[0].lower(), word.strip(" \t\n\r\v\f")))
        if (isinstance(word, str))
        else None
    )
    if meaning != known(word):
        raise FalseAccept(f"{word!r} means {known(word)}, but should mean {meaning}")
    return meaning


class _Numeral(str):
    """A number as it was written."""

    __slots__ = ()


def _reading(raw: bytes) -> Any:
    """What a lenient parser reads, where the rules allow it.

    Raises:
        _Loose: a rule is broken.
        ValueError: no JSON at all.
    """
    text = raw.decode()
    top = json.loads(text, object_pairs_hook=_once, parse_int=_integer, parse_float=_number, parse_constant=_no)
    _check_inside(top, 0)
    return top


def _check_inside(value: object, depth: int) -> None:
    if isinstance(value, str) and re.search("[\x00\ud800-\udfff]", value):
        raise _Loose("a character that is none")
    if not isinstance(value, dict | list):
        return
    if depth == json_text.MAX_DEPTH:
        raise _Loose("too deep")
    for each in (*value, *value.values()) if isinstance(value, dict) else value:
        _check_inside(each, depth + 1)


def _once(pairs: _Pairs) -> dict[str, object]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise _Loose("a name twice")
    return dict(pairs)


def _integer(text: str) -> int:
    _number(text)
    return int(text)


def _number(text: str) -> float:
    value = float(text)
    digits = re.sub(r"[eE].*", "", text)
    if math.isinf(value) or (value == 0 and re.search("[1-9]", digits)):
        raise _Loose("no double")
    return value


def _no(word: str) -> None:
    raise _Loose(word)


def _same(one: object, other: object) -> bool:
    """Equal, where 1, 1.0 and true are three things."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and one == other


def _spelled(value: object, style: int) -> str:
    """The same value with other spaces, in another order, with other escapes."""
    if isinstance(value, _Numeral):
        return value
    if isinstance(value, dict):
        names = sorted(value, reverse=bool(style & 1))
        space = " \n" if style & 2 else ""
        return "{" + ",".join(f"{json.dumps(name)}:{space}{_spelled(value[name], style)}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + " ,"[style & 1 :].join(_spelled(each, style) for each in value) + "]"
    return json.dumps(value, ensure_ascii=bool(style & 1))


def _value(draw: Draw, depth: int) -> str:
    kind = draw.below(4)
    if kind == 0 or depth == 0:
        return draw.choice(_LEAVES)
    if kind == 1:
        return f"[{','.join(_value(draw, depth - 1) for _ in range(draw.below(4)))}]"
    return _object(draw, depth)


def _object(draw: Draw, depth: int) -> str:
    """Names of a webhook with likely and unlikely values, now and then one name twice."""
    members = []
    for _ in range(draw.below(7)):
        name = draw.choice(_SPELLED) if draw.once_in(12) else draw.choice(NAMES)
        nested = name in {"data", "response", "metadata"} and depth and not draw.once_in(6)
        members.append(f'"{name}":{_object(draw, depth - 1) if nested else _leaf(draw, name)}')
    return "{" + draw.choice((",", ", ", ",\n\t")).join(members) + "}"


def _leaf(draw: Draw, name: str) -> str:
    likely = {
        "requestId": '"r1"',
        "id": '"r1"',
        "decision": '"approved"',
        "action": '"approve"',
        "type": '"request.completed"',
        "executionId": '"e1"',
        "round": "1",
    }
    if name in likely and draw.below(3) == 0:
        return likely[name]
    return draw.choice(_WORDS) if name in {"decision", "action"} else draw.choice(_LEAVES)


def _of_kind(draw: Draw, kind: type[Struct]) -> bytes:
    """A body with the fields that a struct takes, most of them of the right type."""
    names = [each.encode_name for each in msgspec.structs.fields(kind) if each.required or draw.below(3) == 0]
    if draw.once_in(8):
        names.append(draw.choice((*names, "unknown")))
    members = (f"{json.dumps(name)}:{draw.choice(_FIELDS) if draw.below(4) else _value(draw, 2)}" for name in names)
    return draw.mutated(f"{{{','.join(members)}}}".encode(), 2)


_FIELDS = (
    '"run-1"',
    '"approved"',
    '"http://127.0.0.1:9/"',
    '"a-secret-of-21-letters"',
    '"succeeded"',
    '"é\\u4e2d"',
    '"a\\nb"',
    "1",
    "0.5",
    "-1",
    "9223372036854775808",
    "true",
    "null",
    '{"a":1}',
    '["a"]',
    '[{"execution_id":"run-1","fence":1}]',
    '[{"name":"a"}]',
)
