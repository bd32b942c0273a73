"""Strict JSON over bytes: either every parser reads the same thing in it, or it is refused with one error.

RFC 8259 leaves open what a name given twice, half a surrogate pair or a number beyond a double means, and
parsers differ. Here all of these are refused, so what was signed, shown and stored is what was read.
"""

import json
import math
import re
from array import array
from collections.abc import Callable
from itertools import accumulate
from typing import NamedTuple, NoReturn

import msgspec

from controlplane.domain.errors import InvalidBody

MAX_DEPTH = 64

JSON = None | bool | int | float | str | list["JSON"] | dict[str, "JSON"]

_SURROGATE_PAIR = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_STEPS = bytes(1 if byte in b"[{" else 255 for byte in range(256))
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_DIGITS = bytes.maketrans(b"123456789E", b"000000000e")
# Below 200 digits and three digits of exponent every number lies within 1e-299 and 1e299.
_FAR_NUMBERS = (b"0" * 200, b"e000", b"e+000", b"e-000")


class Number(str):
    """A number kept as it was written, so that 1.10 and 1.1 stay two texts."""

    __slots__ = ()


def parse(raw: bytes, max_depth: int = MAX_DEPTH) -> JSON:
    """The value in `raw`, with every number as a `Number` token.

    Args:
        raw: the bytes as received, UTF-8 without a byte order mark.
        max_depth: how many objects and arrays may stand inside each other.

    Raises:
        InvalidBody: the bytes are not JSON that all parsers read alike; the sentence names the reason and
            never repeats what was sent.
    """
    return _decode(raw, max_depth, _TOKENS)


def parse_plain(raw: bytes, max_depth: int = MAX_DEPTH) -> JSON:
    """The value in `raw` with ordinary ints and floats; refuses exactly what `parse` refuses."""
    return _decode(raw, max_depth, _PLAIN)


def check(raw: bytes, max_depth: int = MAX_DEPTH) -> None:
    """Raise `InvalidBody` for what `parse` refuses; afterwards any JSON decoder may read `raw`."""
    _decode(raw, max_depth, _PLAIN)


def member(raw: bytes, *names: str) -> bytes | None:
    """The exact bytes of one member, without the space around it.

    Args:
        raw: an object that `check` or `parse` has accepted; names are unique there, so there is one answer.
        names: the path to it, such as `"data", "response"`.

    Returns:
        The bytes as received, or None when an object on the path has no such member.
    """
    for name in names:
        if not raw.lstrip().startswith(b"{"):
            return None
        found = _MEMBERS.decode(raw).get(name)
        if found is None:
            return None
        raw = bytes(found)
    return raw


def _decode(raw: bytes, max_depth: int, decoders: "_Decoders") -> JSON:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise InvalidBody("The body is not UTF-8.") from None
    # Paired backslashes go first: each one left after that begins an escape.
    plain = raw.replace(b"\\\\", b"__") if b"\\" in raw else raw
    _check_escapes(plain)
    _check_depth(plain, max_depth)
    decoder = decoders.far if _has_far_numbers(raw) else decoders.near
    try:
        value: JSON = decoder.decode(text)
    except json.JSONDecodeError as fault:
        raise InvalidBody(f"The body is not JSON (line {fault.lineno}, column {fault.colno}).") from None
    return value


def _check_escapes(plain: bytes) -> None:
    if b"\\u0000" in plain:
        raise InvalidBody("A string holds a NUL character; take it out.")
    if _SURROGATE.search(plain) and _SURROGATE.search(_SURROGATE_PAIR.sub(b"", plain)):
        raise InvalidBody("A string holds half of a surrogate pair; send both halves or neither.")


def _check_depth(plain: bytes, max_depth: int) -> None:
    """Count brackets outside strings without recursion: a decoder may overflow its stack on them."""
    if plain.count(b"[") + plain.count(b"{") <= max_depth:
        return
    outside = b"".join(plain.replace(b'\\"', b"__").split(b'"')[::2])
    steps = array("b", outside.translate(_STEPS, _NO_BRACKETS))
    if max(accumulate(steps), default=0) > max_depth:
        raise InvalidBody(f"Objects and arrays stand more than {max_depth} deep in each other.")


def _object(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise InvalidBody("An object holds the same name twice.")
    return members


def _has_far_numbers(raw: bytes) -> bool:
    """False when no number needs `_double`, whose call for each number costs most of the time."""
    digits = raw.translate(_DIGITS)
    return any(far in digits for far in _FAR_NUMBERS)


def _double(text: str) -> float:
    value = float(text)
    if math.isinf(value) or (value == 0 and text.lower().partition("e")[0].strip("-0.")):
        raise InvalidBody("A number is too large or too small for a double; send it as a string.")
    return value


def _far_token(text: str) -> Number:
    _double(text)
    return Number(text)


def _far_integer(text: str) -> int:
    _double(text)
    return int(text)


def _no_constant(_: str) -> NoReturn:
    raise InvalidBody("NaN and Infinity are not JSON.")


def _decoder(parse_int: Callable[[str], JSON], parse_float: Callable[[str], JSON]) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=_object, parse_int=parse_int, parse_float=parse_float, parse_constant=_no_constant
    )


class _Decoders(NamedTuple):
    """One way to read numbers: `near` where all surely fit a double, `far` where each must be checked."""

    near: json.JSONDecoder
    far: json.JSONDecoder


_TOKENS = _Decoders(near=_decoder(Number, Number), far=_decoder(_far_token, _far_token))
_PLAIN = _Decoders(near=_decoder(int, float), far=_decoder(_far_integer, _double))
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
