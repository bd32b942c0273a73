"""A payload's digest is the same for every spelling of the same content, and another one for any other content."""

import hashlib
import json
import random

import pytest

from controlplane.domain.digests import canonical, payload_digest
from controlplane.domain.errors import InvalidBody


def respelled(source: random.Random, value: object) -> bytes:
    """The same content with its names in another order, other white space and other escapes."""
    if isinstance(value, dict):
        value = dict(source.sample(list(value.items()), len(value)))
    text = json.dumps(value, ensure_ascii=source.random() < 0.5, indent=source.choice([None, 0, 3]))
    return text.replace("x", "\\u0078").encode()


def test_spelling_does_not_matter() -> None:
    source = random.Random(1)
    content = {"x": "\u00e9\U0001f44d\n\x1f/", "a": [1, None, True, "", {}, []], "\U0001f600": {"k": 1.5}, "\uffff": 0}
    assert len({payload_digest(respelled(source, content)) for _ in range(200)}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b"1", b"1.0"),
        (b"1", b'"1"'),
        (b"-0", b"0"),
        (b"1e3", b"1E3"),
        (b"[]", b"{}"),
        (b"[1,2]", b"[2,1]"),
        (b'{"a":null}', b"{}"),
        (b'"e\xcc\x81"', b'"\xc3\xa9"'),
    ],
)
def test_content_matters(one: bytes, other: bytes) -> None:
    assert payload_digest(one) != payload_digest(other)


def test_names_are_sorted_by_code_point() -> None:
    # In UTF-16 units the emoji, a surrogate pair there, would come first.
    assert canonical('{"\U0001f600":1,"\uffff":2,"":3}'.encode()) == '{"":3,"\uffff":2,"\U0001f600":1}'.encode()


def test_strings_have_only_the_escapes_that_json_requires() -> None:
    raw = b'"\\u0008\\u0009\\u000a\\u000c\\u000d\\u0001\\u001F\\u007f\\u2028\\/\\\\\\""'
    assert canonical(raw) == '"\\b\\t\\n\\f\\r\\u0001\\u001f\x7f\u2028/\\\\\\""'.encode()


def test_the_digest_is_that_of_the_canonical_bytes() -> None:
    raw = b'{"b":[ ],"a":{ }}'
    assert canonical(raw) == b'{"a":{},"b":[]}'
    assert payload_digest(raw) == hashlib.sha256(b'{"a":{},"b":[]}').hexdigest()


@pytest.mark.parametrize("raw", [b"", b'{"a":1,"a":2}', b'"\\ud800"', b'"\\u0000"', b"NaN", b"[" * 65 + b"]" * 65])
def test_ambiguous_payloads_have_no_digest(raw: bytes) -> None:
    with pytest.raises(InvalidBody):
        payload_digest(raw)
