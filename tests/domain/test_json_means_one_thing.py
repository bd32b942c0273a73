"""JSON that two parsers could read differently is refused, and what is accepted reads as every parser reads it."""

import json
import random
import time
from collections.abc import Callable

import msgspec
import pytest

from controlplane.domain import json_text
from controlplane.domain.errors import InvalidBody

MIB = 1 << 20

REFUSED = {
    "empty": b"",
    "white space": b" \n",
    "trailing bytes": b"{} x",
    "two values": b"1 2",
    "byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"a":1}'.encode("utf-16"),
    "no UTF-8": b'"\xff"',
    "a surrogate in UTF-8": b'"\xed\xa0\x80"',
    "overlong UTF-8": b'"\xc0\x80"',
    "name twice": b'{"a":1,"a":1}',
    "name twice, escaped once": b'{"a":1,"\\u0061":1}',
    "name twice, deep": b'[{"b":[{"a":1,"a":2}]}]',
    "NUL in a value": b'"\\u0000"',
    "NUL in a name": b'{"\\u0000":1}',
    "NUL after an escaped backslash": b'"\\\\\\u0000"',
    "a NUL byte": b'"\x00"',
    "high half": b'"\\ud83d"',
    "low half": b'"\\uDC4D"',
    "halves the wrong way round": b'"\\udc4d\\ud83d"',
    "high half before a pair": b'"\\ud83d\\ud83d\\udc4d"',
    "half in a name": b'{"\\ud83d":1}',
    "half apart from its other half": b'"\\ud83d \\udc4d"',
    "NaN": b"NaN",
    "Infinity": b"[Infinity]",
    "-Infinity": b"-Infinity",
    "1e999": b"1e999",
    "-1e999": b"-1e999",
    "1e-999": b"1e-999",
    "1e309": b"1E309",
    "integer beyond a double": b"9" * 309,
    "integer of 5000 digits": b"9" * 5000,
    "leading zero": b"01",
    "plus": b"+1",
    "bare point": b"1.",
    "hex": b"0x10",
    "comment": b"1 // one",
    "single quotes": b"{'a':1}",
    "trailing comma": b"[1,]",
    "control character": b'"a\nb"',
    "unknown escape": b'"\\x41"',
    "short escape": b'"\\u00"',
    "unterminated": b'"abc',
    "65 deep": b"[" * 65 + b"]" * 65,
    "65 deep, mixed": b'{"a":[' * 33 + b"]}" * 33,
    "5000 deep": b"[" * 5000 + b"]" * 5000,
    "65 deep behind an escaped quote": b'["\\"",' + b"[" * 64 + b"]" * 65,
    "65 deep behind an escaped backslash": b'["\\\\",' + b"[" * 64 + b"]" * 65,
}

ACCEPTED = {
    "64 deep": b"[" * 64 + b"]" * 64,
    "many brackets side by side": b"[" + b",".join([b"[]"] * 1000) + b"]",
    "brackets in a string": b'"' + b"[{" * 1000 + b'"',
    "brackets after an escaped quote": b'"\\"' + b"[" * 1000 + b'"',
    "an escaped backslash before u0000": b'"\\\\u0000"',
    "an escaped backslash before ud83d": b'"\\\\ud83d"',
    "a pair": b'"\\ud83d\\udc4d"',
    "largest double": b"1.7976931348623157e308",
    "smallest double": b"5e-324",
    "zero with an exponent": b"-0.0e999",
    "integer of 309 digits": b"1" + b"0" * 308,
    "integer beyond 64 bits": b"123456789012345678901234567890",
    "long fraction": b"0." + b"3" * 5000,
    "DEL and U+2028": '"\x7f\u2028"'.encode(),
    "space around": b" \t\r\n{ } \n",
}

HEAVY = {
    "open brackets": b"[" * MIB,
    "closed brackets": b"]" * MIB,
    "backslashes": b"\\" * MIB,
    "a string of backslashes": b'"' + b"\\\\" * (MIB // 2) + b'"',
    "an open string of backslashes": b"{" * 65 + b'"' + b"\\" * MIB,
    "quotes": b'"' * MIB,
    "escaped quotes": b"[" * 65 + b'"' + b'\\"' * (MIB // 2),
    "an integer": b"9" * MIB,
    "a negative fraction": b"-0." + b"9" * MIB,
    "an exponent": b"1e" + b"9" * MIB,
    "integers of 308 digits": b"[" + b",".join([b"9" * 308] * (MIB // 309)) + b"]",
    "halves": b'"' + b"\\ud83d" * (MIB // 6) + b'"',
    "pairs": b'"' + b"\\ud83d\\udc4d" * (MIB // 12) + b'"',
    "white space": b" " * MIB,
    "empty objects": b"[" + b",".join([b"{}"] * (MIB // 3)) + b"]",
    "small integers": b"[" + b"1," * (MIB // 2) + b"1]",
}

READERS = [json_text.parse, json_text.parse_plain, json_text.check]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("raw", REFUSED.values(), ids=REFUSED)
def test_what_parsers_read_differently_is_refused(read: Callable[[bytes], object], raw: bytes) -> None:
    with pytest.raises(InvalidBody) as caught:
        read(raw)
    assert caught.value.message.endswith(".")


@pytest.mark.parametrize("raw", ACCEPTED.values(), ids=ACCEPTED)
def test_what_all_parsers_read_alike_is_accepted(raw: bytes) -> None:
    json_text.check(raw)
    json_text.parse(raw)
    assert json_text.parse_plain(raw) == json.loads(raw)


def test_a_refusal_repeats_nothing_of_what_was_sent() -> None:
    for raw in (b'{"canary":1,"canary":2}', b'{"canary" 1}', b"[canary]", b'"\\ud83d canary"', b'"canary\xff"'):
        with pytest.raises(InvalidBody) as caught:
            json_text.check(raw)
        assert "canary" not in caught.value.message


@pytest.mark.parametrize("raw", HEAVY.values(), ids=HEAVY)
def test_a_mebibyte_is_judged_at_once(raw: bytes) -> None:
    before = time.perf_counter()
    for read in READERS:
        try:
            read(raw)
        except InvalidBody:
            continue
    # Linear work takes well under a tenth of this; quadratic work takes minutes.
    assert time.perf_counter() - before < 5


def test_numbers_are_kept_as_written() -> None:
    texts = ["1.10", "1.1", "1E3", "-0", "9007199254740993", "0.30000000000000000001"]
    assert json_text.parse(f"[{','.join(texts)}]".encode()) == texts
    assert json_text.parse(b'["1", 1]') == ["1", json_text.Number("1")]


def test_a_depth_of_ones_own_can_be_asked_for() -> None:
    json_text.check(b"[[[]]]", max_depth=3)
    with pytest.raises(InvalidBody):
        json_text.check(b"[[[]]]", max_depth=2)


def test_the_bytes_of_a_member_are_the_bytes_received() -> None:
    raw = b' { "a" : { "b\\u00e9" : [1.10, "\\u00e9" ] , "n":null} , "c" : -0 } '
    json_text.check(raw)
    assert json_text.member(raw, "a", "b\u00e9") == b'[1.10, "\\u00e9" ]'
    assert json_text.member(raw, "a", "n") == b"null"
    assert json_text.member(raw, "c") == b"-0"
    assert json_text.member(raw) == raw
    for path in (("x",), ("a", "x"), ("c", "x"), ("a", "b\u00e9", "0")):
        assert json_text.member(raw, *path) is None


def a_value(source: random.Random, depth: int = 0) -> object:
    kind = source.randrange(8 if depth < 5 else 6)
    if kind == 6:
        return [a_value(source, depth + 1) for _ in range(source.randrange(4))]
    if kind == 7:
        return {a_text(source): a_value(source, depth + 1) for _ in range(source.randrange(4))}
    number = source.choice([source.randrange(-(10**20), 10**20), source.uniform(-1e9, 1e9), source.random() * 1e-300])
    return [None, True, False, a_text(source), number, ""][kind]


def a_text(source: random.Random) -> str:
    return "".join(source.choice('ab"\\/\b\n\x1f\x7f\u00e9\u20ac\u2028\U0001f44d[]{}:,u0d8') for _ in range(8))


def test_accepted_values_are_what_other_decoders_read() -> None:
    source = random.Random(20)
    for _ in range(3000):
        value = a_value(source)
        raw = json.dumps(value, ensure_ascii=source.random() < 0.5, indent=source.choice([None, 1])).encode()
        assert json_text.parse_plain(raw) == value
        assert msgspec.json.decode(raw) == value
        if isinstance(value, dict):
            members = {name: json_text.member(raw, name) for name in value}
            assert {name: json.loads(text or b"") for name, text in members.items()} == value


def test_mutated_text_is_refused_or_reads_as_other_decoders_read_it() -> None:
    source = random.Random(21)
    accepted = 0
    for _ in range(20000):
        raw = bytearray(json.dumps(a_value(source), ensure_ascii=source.random() < 0.5).encode() or b"0")
        for _ in range(source.randrange(1, 4)):
            raw[source.randrange(len(raw))] = source.choice(b'"\\[]{}:,0123456789eE.-udD\x00\x80\xff nat')
        try:
            found = json_text.parse_plain(bytes(raw))
        except InvalidBody:
            continue
        accepted += 1
        assert found == json.loads(raw.decode())
        # An independent decoder in C agrees that this is JSON at all.
        msgspec.json.decode(bytes(raw))
    assert accepted > 100
