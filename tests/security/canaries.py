"""Canaries: texts that must not be found, and a searcher that knows the forms in which a text may appear."""

import base64
import html
import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote, quote_plus

# What a token without its ends still is: shorter ones would be found by chance.
LEAST = 16


class Found(NamedTuple):
    """A canary where it should not be: its name, in which form, and where."""

    canary: str
    form: str
    place: str


class Aviary:
    """Every canary that was planted, and how much was searched for them.

    One name may have several texts: a key of each scope is one name.
    """

    def __init__(self) -> None:
        self.planted: dict[str, set[str]] = {}
        self._made: dict[str, str] = {}
        self._needles: dict[str, dict[bytes, str]] = {}
        self.places = 0
        self.bytes = 0

    @property
    def count(self) -> int:
        """How many texts were planted."""
        return sum(map(len, self.planted.values()))

    def plant(self, name: str, text: str | None = None) -> str:
        """A canary under a name: the given text, or one that nothing else has, the same each time."""
        planted = text or self._made.setdefault(name, f"{name.replace('_', '')}x{os.urandom(12).hex()}")
        if planted not in self.planted.setdefault(name, set()):
            self.planted[name].add(planted)
            self._needles.setdefault(name, {}).update(forms(planted))
        return planted

    def search(self, place: str, content: bytes | str, *, allowed: Iterable[str] = ()) -> list[Found]:
        """Every canary in a content but those that may be there."""
        raw = content if isinstance(content, bytes) else content.encode(errors="surrogateescape")
        self.places += 1
        self.bytes += len(raw)
        may = set(allowed)
        return [
            Found(name, form, place)
            for name, needles in self._needles.items()
            if name not in may
            for needle, form in needles.items()
            if needle in raw
        ]


def forms(text: str) -> dict[bytes, str]:
    """The forms of a text, and of its longest run of the characters of base64, that are looked for."""
    core = max(re.findall(r"[A-Za-z0-9](?:[A-Za-z0-9+/]*[A-Za-z0-9])?", text), key=len, default="")
    assert len(core) >= LEAST, "too short: it would be found by chance"
    found: dict[bytes, str] = {}
    for each in dict.fromkeys((text, core)):
        for needle, form in _forms(each):
            found.setdefault(needle, form)
    return found


def _forms(text: str) -> Iterator[tuple[bytes, str]]:
    raw = text.encode()
    yield raw, "raw"
    yield raw.hex().encode(), "hex"
    yield raw.hex().upper().encode(), "hex"
    yield quote(text, safe="").encode(), "URL-encoded"
    yield quote_plus(text).encode(), "URL-encoded"
    yield "".join(f"%{byte:02X}" for byte in raw).encode(), "URL-encoded"
    yield json.dumps(text)[1:-1].encode(), "JSON-escaped"
    yield json.dumps(text, ensure_ascii=False)[1:-1].encode(), "JSON-escaped"
    yield json.dumps(json.dumps(text))[3:-3].encode(), "JSON-escaped"
    yield repr(text)[1:-1].encode(), "repr"
    yield repr(raw)[2:-1].encode(), "repr"
    yield html.escape(text).encode(), "HTML-escaped"
    yield raw[::-1], "reversed"
    yield text.encode("utf-16-le"), "UTF-16"
    for offset in range(3):
        # What stands before it shifts the groups of three bytes; the characters at both ends depend on neighbours.
        shifted = base64.b64encode(b"\0" * offset + raw)
        inner = shifted[4 if offset else 0 : len(shifted) - 4]
        yield inner, "base64"
        yield inner.translate(bytes.maketrans(b"+/", b"-_")), "base64"
