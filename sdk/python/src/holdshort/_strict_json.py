"""Strict JSON over bytes: either every parser reads the same thing in it, or it is refused.

What JSON leaves open is refused: a name given twice, half of a surrogate pair, a number beyond a double, a NUL, and
nesting that a parser may not survive. So what was signed, shown and decided is what everybody reads.
"""

import json
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn

from holdshort._errors import BadRequest

MAX_DEPTH = 64
_STRING = re.compile(rb'"(?:[^"\\]+|\\.)*"?', re.DOTALL)
_BRACKETS = re.compile(rb"[\[\]{}]")
_HALF_PAIR = re.compile("[\ud800-\udfff]")


class Number(str):
    """A number kept as it was written, so that 1.10 and 1.1 stay two texts."""

    __slots__ = ()


def parse(raw: bytes) -> Any:
    """The value in these bytes, with ordinary ints and floats.

    Args:
        raw: UTF-8 without a byte order mark.

    Raises:
        BadRequest: invalid_body; the sentence says why and repeats nothing of what was sent.
    """
    return _decoded(raw, _PLAIN)


def tokens(raw: bytes) -> Any:
    """As `parse`, with every number as a `Number`."""
    return _decoded(raw, _TOKENS)


def refused(message: str, **details: Any) -> BadRequest:
    """The error of a body that is not what it should be."""
    return BadRequest(message, code="invalid_body", details=details)


def _decoded(raw: bytes, decoder: json.JSONDecoder) -> Any:
    _check_depth(raw)
    try:
        value = decoder.decode(raw.decode())
    except UnicodeDecodeError:
        raise refused("the body is not UTF-8") from None
    except json.JSONDecodeError as fault:
        raise refused(f"the body is not JSON (line {fault.lineno}, column {fault.colno})") from None
    _check_texts(value)
    return value


def _check_depth(raw: bytes) -> None:
    """Count brackets outside of strings before anything is decoded: a decoder may overflow its stack on them."""
    depth = 0
    for bracket in _BRACKETS.findall(_STRING.sub(b"", raw)):
        depth += 1 if bracket in b"[{" else -1
        if depth > MAX_DEPTH:
            raise refused(f"objects and arrays stand more than {MAX_DEPTH} deep in each other")


def _check_texts(value: Any) -> None:
    # The depth is bounded by now.
    if isinstance(value, str):
        if "\x00" in value:
            raise refused("a string holds a NUL character; take it out")
        if _HALF_PAIR.search(value):
            raise refused("a string holds half of a surrogate pair; send both halves or neither")
    elif isinstance(value, dict):
        for name, inner in value.items():
            _check_texts(name)
            _check_texts(inner)
    elif isinstance(value, list):
        for inner in value:
            _check_texts(inner)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise refused("an object holds the same name twice")
    return members


def _double(text: str) -> float:
    value = float(text)
    if math.isinf(value) or (value == 0 and text.lower().partition("e")[0].strip("-0.")):
        raise refused("a number is too large or too small for a double; send it as a string")
    return value


def _integer(text: str) -> int:
    _double(text)
    return int(text)


def _token(text: str) -> Number:
    _double(text)
    return Number(text)


def _no_constant(_: str) -> NoReturn:
    raise refused("NaN and Infinity are not JSON")


def _decoder(parse_int: Callable[[str], Any], parse_float: Callable[[str], Any]) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=_object, parse_int=parse_int, parse_float=parse_float, parse_constant=_no_constant
    )


_PLAIN = _decoder(_integer, _double)
_TOKENS = _decoder(_token, _token)
