"""Bytes of a form to fields: one reading only, and what has another is refused."""

import re
from typing import NamedTuple

from controlplane.domain.door_errors import MalformedRequest

MOST_FIELDS = 2_000
_BROKEN = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")


class Field(NamedTuple):
    """A field as it was sent."""

    name: str
    value: str


def parse(raw: bytes) -> list[Field]:
    """The fields of an urlencoded form, in their order.

    Raises:
        MalformedRequest: an escape is broken, something is no UTF-8 or holds a NUL, or there are over 2,000 fields.
    """
    pairs = [pair for pair in raw.split(b"&") if pair]
    if len(pairs) > MOST_FIELDS:
        raise MalformedRequest(f"A form may have {MOST_FIELDS} fields; send fewer.")
    return [Field(_text(name), _text(value)) for name, _, value in (pair.partition(b"=") for pair in pairs)]


def _text(raw: bytes) -> str:
    if _BROKEN.search(raw):
        raise MalformedRequest("The form has a broken percent escape; encode it as a browser does.")
    plain = _ESCAPE.sub(lambda found: bytes((int(found[1], 16),)), raw.replace(b"+", b" "))
    try:
        text = plain.decode("utf-8")
    except UnicodeDecodeError:
        raise MalformedRequest("The form is not in UTF-8; encode it as a browser does.") from None
    if "\x00" in text:
        raise MalformedRequest("The form holds a NUL character; leave it out.")
    return text
