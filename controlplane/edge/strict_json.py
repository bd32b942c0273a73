"""Strict JSON with the field that breaks it: a refused body is read a second time, only to say where it is wrong."""

import json
import math
import re
from collections.abc import Iterator

from controlplane.domain import json_text
from controlplane.domain.errors import InvalidBody
from controlplane.domain.json_text import JSON

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_]{1,64}")
_HALF_PAIR = re.compile("[\ud800-\udfff]")

_Pairs = list[tuple[str, object]]


class _Number(str):
    __slots__ = ()


class _Object(list[tuple[str, object]]):
    __slots__ = ()


def check(raw: bytes) -> None:
    """Raise `InvalidBody` for what `json_text.check` refuses, with the top-level field where one is to blame."""
    try:
        json_text.check(raw)
    except InvalidBody as fault:
        raise _located(raw, fault) from None


def parse(raw: bytes) -> JSON:
    """The value in `raw` with ordinary numbers; refuses as `check` does."""
    try:
        return json_text.parse_plain(raw)
    except InvalidBody as fault:
        raise _located(raw, fault) from None


def _located(raw: bytes, fault: InvalidBody) -> InvalidBody:
    try:
        top = json.loads(raw, object_pairs_hook=_Object, parse_int=_Number, parse_float=_Number, parse_constant=_Number)
    except (ValueError, RecursionError):
        return fault
    errors = [{"field": field, "rule": rule} for field, rule in _faults(top)]
    return InvalidBody(fault.message, errors=errors[:10]) if errors else fault


def _faults(top: object) -> Iterator[tuple[str, str]]:
    if not isinstance(top, _Object):
        return
    seen: set[str] = set()
    for name, value in top:
        field = name if _PLAIN_NAME.fullmatch(name) else "body"
        rule = "is given twice" if name in seen else _text_rule(name) or _rule(value)
        seen.add(name)
        if rule is not None:
            yield field, rule


def _rule(value: object) -> str | None:
    """Why a value is refused, looking at everything inside it."""
    level, depth = [value], 1
    while level:
        if depth > json_text.MAX_DEPTH and any(isinstance(each, list) for each in level):
            return f"must not nest more than {json_text.MAX_DEPTH} deep"
        rule = next(filter(None, map(_own_rule, level)), None)
        if rule is not None:
            return rule
        level = [inner for each in level for inner in _inside(each)]
        depth += 1
    return None


def _inside(value: object) -> list[object]:
    if isinstance(value, _Object):
        return [part for pair in value for part in pair]
    return list(value) if isinstance(value, list) else []


def _own_rule(value: object) -> str | None:
    if isinstance(value, _Number):
        return _number_rule(value)
    if isinstance(value, _Object):
        names = [name for name, _ in value]
        return "must not hold a name twice" if len(set(names)) < len(names) else None
    return _text_rule(value) if isinstance(value, str) else None


def _text_rule(text: str) -> str | None:
    if "\x00" in text:
        return "must not contain a NUL character"
    return "must not contain half of a surrogate pair" if _HALF_PAIR.search(text) else None


def _number_rule(text: str) -> str | None:
    number = float(text)
    if math.isnan(number):
        return "must be a JSON number"
    zero = number == 0 and bool(text.lower().partition("e")[0].strip("-0."))
    return "must be a number that fits a double" if math.isinf(number) or zero else None
