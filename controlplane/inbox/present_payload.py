"""A payload as fields: every value as it was sent, long ones folded with what remains in sight, nothing left out."""

import difflib
from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from controlplane.domain import json_text
from controlplane.domain.digests import payload_digest
from controlplane.domain.errors import InvalidBody
from controlplane.domain.json_text import JSON, Number

# A text of more is folded; so much of it is in sight before.
LONG_TEXT = 800
LONG_LINES = 12
HEAD_TEXT = 500
HEAD_LINES = 8
# Of more fields or items the rest is folded.
LONG_LIST = 24
HEAD_LIST = 20
# What has more values is drawn as one text: a page of a hundred thousand boxes would help nobody.
MOST_VALUES = 800
RAW_HEAD_LINES = 40
MOST_COMPARED = 80
MOST_COMPARED_IN_ALL = 400

PAIRS = (("before", "after"), ("old", "new"))


class Value(Struct, frozen=True, kw_only=True):
    """A value as it is drawn.

    Of a text `text` is what is in sight and `rest` what is folded; `items` are the fields or items in sight, `more`
    those that are folded; a change has its two sides in `changes`.
    """

    kind: Literal["text", "number", "word", "nothing", "fields", "items", "change", "raw"]
    text: str = ""
    rest: str = ""
    items: Sequence["Field"] = ()
    more: Sequence["Field"] = ()
    changes: Sequence["Change"] = ()

    @property
    def folded(self) -> str:
        """How much is folded, in words; empty for nothing."""
        if self.rest:
            lines = self.rest.count("\n")
            return f"{lines:,} more lines" if lines > 1 else f"{len(self.rest):,} more characters"
        return f"{len(self.more):,} more" if self.more else ""


class Field(Struct, frozen=True):
    """A field with its name, or an item with its number."""

    name: str
    value: Value


class Line(Struct, frozen=True):
    """A line of two texts that are compared: `-` was there, `+` is there now, a space for both."""

    sign: Literal["-", "+", " "]
    text: str


class Change(Struct, frozen=True, kw_only=True):
    """A field that differs between two payloads, or stays; `name` is its path, a side is None where it is not there.

    Two texts of several lines are compared in `lines`.
    """

    name: str
    was: Value | None
    now: Value | None
    same: bool = False
    lines: Sequence["Line"] = ()


class Payload(Struct, frozen=True, kw_only=True):
    """A payload as a page draws it: `fault` says why it cannot be decided on, `folds` whether some of it is folded."""

    value: Value | None
    size: int
    digest: str | None
    folds: bool
    fault: str | None = None


def payload(raw: bytes | None, digest: str | None) -> Payload:
    """A payload with its size and digest; one that no longer is what was asked with says so.

    Args:
        raw: the JSON as received; None when there was none.
        digest: what was kept of it when it was asked.
    """
    if raw is None:
        return Payload(value=None, size=0, digest=digest, folds=False)
    try:
        parsed, fits = json_text.parse(raw), payload_digest(raw) == digest
    except InvalidBody:
        value = _folded_text(raw.decode("utf-8", "backslashreplace"), "raw", RAW_HEAD_LINES, LONG_TEXT * 10)
        return Payload(value=value, size=len(raw), digest=digest, folds=bool(value.rest), fault="unreadable")
    value = draw(parsed, raw)
    fault = None if fits else "changed"
    return Payload(value=value, size=len(raw), digest=digest, folds=has_folds(value), fault=fault)


def draw(parsed: JSON, raw: bytes) -> Value:
    """A parsed value, drawn as fields; as one text when it has too many."""
    if count(parsed) <= MOST_VALUES:
        return _bounded(drawn(parsed))
    text = msgspec.json.format(raw, indent=2).decode()
    return _folded_text(text, "raw", RAW_HEAD_LINES, LONG_TEXT * 10)


def drawn(value: JSON) -> Value:
    """One value and everything in it."""
    if isinstance(value, Number):
        return Value(kind="number", text=str(value))
    if isinstance(value, str):
        return _folded_text(value, "text", HEAD_LINES, LONG_TEXT) if value else Value(kind="nothing", text="empty text")
    if isinstance(value, dict):
        return _of_object(value)
    if isinstance(value, list):
        items = [Field(f"{number}", drawn(each)) for number, each in enumerate(value, 1)]
        return _listed("items", items) if items else Value(kind="nothing", text="empty list")
    return Value(kind="word", text="null" if value is None else "true" if value else "false")


def changes(was: JSON, now: JSON, name: str = "") -> list[Change]:
    """What differs between two values, field by field; a field that stays is there once, marked as the same."""
    if isinstance(was, dict) and isinstance(now, dict) and (was or now):
        names = [*was, *(each for each in now if each not in was)]
        return [change for each in names for change in _of_field(was, now, each, name)]
    return [Change(name=name, was=drawn(was), now=drawn(now), same=alike(was, now), lines=compared(was, now))]


def compared(was: JSON, now: JSON) -> list[Line]:
    """Two texts line by line; nothing where that would not help: one line, very many, or what is no text."""
    if not isinstance(was, str) or not isinstance(now, str) or was == now:
        return []
    before, after = was.splitlines(), now.splitlines()
    if not 2 < len(before) + len(after) <= MOST_COMPARED or len(was) + len(now) > LONG_TEXT * 10:
        return []
    lines: list[Line] = []
    for what, i, j, k, m in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if what == "equal":
            lines += [Line(" ", text) for text in before[i:j]]
        else:
            lines += [Line("-", text) for text in before[i:j]] + [Line("+", text) for text in after[k:m]]
    return lines


def alike(one: JSON, other: JSON) -> bool:
    """Whether two values are the same, as they were written: 1 is neither "1" nor 1.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return type(one) is type(other) and one == other


def changed(was: bytes | None, now: bytes | None) -> list[Change] | None:
    """What differs between two payloads; None where one of them cannot be read, or is too large to compare."""
    try:
        before, after = (None if raw is None else json_text.parse(raw) for raw in (was, now))
    except InvalidBody:
        return None
    if count(before) + count(after) > MOST_VALUES:
        return None
    found = [each for each in changes(before, after) if not each.same]
    return list(_bounded(Value(kind="change", changes=found)).changes)


def has_folds(value: Value) -> bool:
    """Whether some of a drawn value is folded."""
    sides = [side for each in value.changes for side in (each.was, each.now) if side is not None]
    inner = [each.value for each in (*value.items, *value.more)]
    return bool(value.rest or value.more) or any(map(has_folds, [*inner, *sides]))


def count(value: JSON) -> int:
    """How many values there are in one, itself included."""
    total, level = 0, [value]
    while level:
        total += len(level)
        level = [inner for each in level for inner in _inside(each)]
    return total


def _bounded(value: Value) -> Value:
    """A drawn value whose texts are compared line by line only as long as that stays little."""
    return value if _compared_lines(value) <= MOST_COMPARED_IN_ALL else _without_lines(value)


def _compared_lines(value: Value) -> int:
    inner = [each.value for each in (*value.items, *value.more)]
    sides = [side for each in value.changes for side in (each.was, each.now) if side is not None]
    return sum(len(each.lines) for each in value.changes) + sum(map(_compared_lines, [*inner, *sides]))


def _without_lines(value: Value) -> Value:
    return replace(
        value,
        items=[Field(each.name, _without_lines(each.value)) for each in value.items],
        more=[Field(each.name, _without_lines(each.value)) for each in value.more],
        changes=[replace(each, lines=()) for each in value.changes],
    )


def _inside(value: JSON) -> Sequence[JSON]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else ()


def _of_object(value: dict[str, JSON]) -> Value:
    if not value:
        return Value(kind="nothing", text="no fields")
    pair = next((pair for pair in PAIRS if value.keys() >= set(pair)), ())
    fields = [Field(name, drawn(each)) for name, each in value.items() if name not in pair]
    if pair:
        change = Value(kind="change", changes=changes(value[pair[0]], value[pair[1]]))
        fields.append(Field(" \u2192 ".join(pair), change))
        return change if len(fields) == 1 else _listed("fields", fields)
    return _listed("fields", fields)


def _listed(kind: Literal["fields", "items"], fields: list[Field]) -> Value:
    if len(fields) <= LONG_LIST:
        return Value(kind=kind, items=fields)
    return Value(kind=kind, items=fields[:HEAD_LIST], more=fields[HEAD_LIST:])


def _of_field(was: dict[str, JSON], now: dict[str, JSON], name: str, above: str) -> list[Change]:
    path = f"{above}.{name}" if above else name
    if name not in was:
        return [Change(name=path, was=None, now=drawn(now[name]))]
    if name not in now:
        return [Change(name=path, was=drawn(was[name]), now=None)]
    return changes(was[name], now[name], path)


def _folded_text(text: str, kind: Literal["text", "raw"], lines: int, characters: int) -> Value:
    """A text with its first lines in sight, cut at a line or else at a number of characters."""
    text = text.replace("\r\n", "\n")
    most = LONG_LINES if kind == "text" else lines
    if len(text) <= characters and text.count("\n") < most:
        return Value(kind=kind, text=text)
    at = min(HEAD_TEXT if kind == "text" else characters, _end_of_line(text, lines))
    return Value(kind=kind, text=text[:at], rest=text[at:])


def _end_of_line(text: str, number: int) -> int:
    """Where a line ends, its break included; the text's end when it has fewer."""
    at = 0
    for _ in range(number):
        found = text.find("\n", at)
        if found < 0:
            return len(text)
        at = found + 1
    return at
