"""Whatever an agent sends is drawn with nothing lost, nothing added and nothing hidden, and in bounded size."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.domain.digests import payload_digest
from controlplane.inbox.present_payload import Change, Payload, Value, changed, payload
from controlplane.inbox.present_text import has_hidden, pieces, prose

HIDDEN = "\u202e\u200b\u2066\ufeff\x07\x1b\u00ad\u061c\u2028\u3164\ufe01\U000e0041\x85"
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=60)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | TEXT,
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(TEXT, inner, max_size=30),
    max_leaves=40,
)


def of(value: Any) -> Payload:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return payload(raw, payload_digest(raw))


def texts(value: Value) -> list[str]:
    """Every text of a drawn value, in its order, of both sides of a change."""
    fields = [*value.items, *value.more]
    own = [value.text + value.rest] if value.kind not in {"fields", "items", "change"} else []
    sides = [side for each in value.changes for side in (each.was, each.now) if side is not None]
    return (
        own
        + [text for each in fields for text in [each.name, *texts(each.value)]]
        + [t for s in sides for t in texts(s)]
    )


def leaves(value: Any) -> list[str]:
    """What a value's drawing must hold."""
    if isinstance(value, dict) and value:
        return [text for name, inner in value.items() for text in [name, *leaves(inner)]]
    if isinstance(value, list) and value:
        return [text for number, inner in enumerate(value, 1) for text in [str(number), *leaves(inner)]]
    words = {"": "empty text"}
    if value in ({}, []):
        return ["no fields" if value == {} else "empty list"]
    if isinstance(value, str):
        return [words.get(value, value.replace("\r\n", "\n"))]
    return [json.dumps(value)]


@given(JSON)
@settings(max_examples=60, deadline=None, database=None)
def test_every_value_is_there_as_it_was_sent(value: Any):
    drawn = of(value)
    assert drawn.fault is None
    assert drawn.value is not None
    if not is_a_change(value):
        assert texts(drawn.value) == leaves(value)


def is_a_change(value: Any) -> bool:
    return any(pair <= set(each) for each in dicts(value) for pair in ({"before", "after"}, {"old", "new"}))


def dicts(value: Any) -> list[dict[str, Any]]:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return ([value] if isinstance(value, dict) else []) + [each for one in inner for each in dicts(one)]


@pytest.mark.parametrize(
    "number", ["1.10", "12345678901234567890123", "1e5", "-0", "0.1000000000000000055511151231257827"]
)
def test_a_number_stays_as_it_was_written(number: str):
    assert texts(of(b'{"n": %s}' % number.encode()).value or Value(kind="word")) == ["n", number]


@given(st.text(st.sampled_from("ab \n" + HIDDEN) | st.characters(exclude_categories=["Cs"]), max_size=80))
@settings(max_examples=150, deadline=None, database=None)
def test_no_hidden_character_reaches_a_page_and_no_other_is_lost(text: str):
    found = pieces(text)
    assert not has_hidden("".join(piece.text for piece in found))
    seen = "".join(piece.text for piece in found if piece.mark is None)
    kept = [letter for letter in text.replace("\r\n", "\n") if not has_hidden(f"x{letter}x")]
    assert [letter for letter in seen if letter != "\u200d"] == [letter for letter in kept if letter != "\u200d"]


def test_each_hidden_character_is_named():
    for letter in HIDDEN:
        (mark,) = [piece for piece in pieces(f"a{letter}b") if piece.mark]
        assert mark.text == f"U+{ord(letter):04X}"


def test_letters_that_show_are_not_marked():
    for text in ("שלום עולם", "नमस्ते", "👩\u200d👩\u200d👧", "❤\ufe0f", "naïve café\u00a0!", "a\tb\nc", "日本語\u3000"):
        assert [piece.mark for piece in pieces(text)] == [None]


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("see https://a.example/x?y=1.", [("https://a.example/x?y=1", None)]),
        ("[the bank](https://evil.example/login)", [("https://evil.example/login", "evil.example")]),
        ("https://bank.example@evil.example/", [("https://bank.example@evil.example/", "evil.example")]),
        ("https://b\u0430nk.example", [("https://b\u0430nk.example", "xn--bnk-6cd.example")]),
        ("javascript:alert(1) [x](javascript:alert(1)) [y](data:text/html,z)", []),
        ("ftp://a.example file:///etc/passwd //a.example HTTPS:a vbscript:x", []),
        ("http://", []),
        ("https://a.example:99999/ https://[::1 [z](https://)", []),
        ("java\tscript:alert(1) \u0001javascript:alert(1)", []),
    ],
)
def test_only_addresses_of_the_web_are_links_and_show_where_they_lead(text: str, links: list[tuple[str, str | None]]):
    assert [(piece.href, piece.host) for piece in prose(text) if piece.href] == links


@pytest.mark.parametrize("before", ["before", "old"])
def test_a_change_shows_both_sides(before: str):
    after = {"before": "after", "old": "new"}[before]
    drawn = of({before: {"a": 1, "b": 2, "c": 3}, after: {"a": 1, "b": "2", "d": 4}}).value
    assert drawn is not None
    assert drawn.kind == "change"
    assert [(each.name, sides(each), each.same) for each in drawn.changes] == [
        ("a", ("1", "1"), True),
        ("b", ("2", "2"), False),
        ("c", ("3", None), False),
        ("d", (None, "4"), False),
    ]


def test_other_fields_beside_a_change_stay():
    drawn = of({"file": "a.txt", "before": 1, "after": 2}).value
    assert drawn is not None
    assert [each.name for each in drawn.items] == ["file", "before \u2192 after"]


def sides(change: Change) -> tuple[str | None, str | None]:
    return (change.was.text if change.was else None, change.now.text if change.now else None)


def test_what_differs_between_two_payloads_is_found_wherever_it_is():
    was = {"a": {"b": [1, {"c": "x\ny\nz"}]}, "same": [1, 2]}
    now = {"a": {"b": [1, {"c": "x\nY\nz"}]}, "same": [1, 2]}
    found = changed(json.dumps(was).encode(), json.dumps(now).encode())
    assert found is not None
    assert [each.name for each in found] == ["a.b"]
    assert changed(b"[1]", b'["1"]') != []
    assert changed(b"1.0", b"1") != []
    assert changed(b'{"a": 1, "b": 2}', b'{"b": 2, "a": 1}') == []
    assert changed(None, b"1") != []


@pytest.mark.parametrize(
    "raw",
    [
        b"[" + b",".join([b"1"] * 120_000) + b"]",
        json.dumps({"t": "\u200b\u202e" * 20_000}, ensure_ascii=False).encode(),
        b"[" * 64 + b"1" + b"]" * 64,
        json.dumps({"t": "line\n" * 50_000}).encode(),
        json.dumps([{"before": "a\n" * 30, "after": "b\n" * 30}] * 200).encode(),
    ],
    ids=["many", "hidden", "deep", "lines", "changes"],
)
def test_the_largest_payload_is_drawn_in_bounded_size(raw: bytes):
    from controlplane.inbox.rendering import _templates

    drawn = of(raw).value
    html = str(_templates.get_template("_macros.html").make_module({}).value(drawn))
    assert len(html) < 4 * 1024 * 1024
