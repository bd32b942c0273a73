"""Texts of agents and senders: what hides in them made visible, lines kept, and links only where they lead to the web.

A mark stands in the place of its character, so nothing that reorders, hides or pretends to be empty reaches a page.
"""

import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import urlsplit

from msgspec import Struct

from controlplane.domain.errors import FieldFault
from controlplane.domain.urls import check_http_url

# Beyond these a text is hostile: its marks become plain text, which costs a page less.
MOST_MARKS = 200
MOST_LINKS = 50

_EMOJI = "\u2190-\u2bff\U0001f000-\U0001faff"
# Controls, format characters that show nothing, fillers that look empty, selectors that can carry a text.
_UNSEEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_HIDDEN = re.compile(
    f"(?P<one>[{_UNSEEN}]|(?<![{_EMOJI}\ufe0f])\u200d|\u200d(?![{_EMOJI}])|(?<=[\ufe00-\ufe0f])\ufe0f)(?P=one)*"
)
_URL = rf"https?://[^\s<>\"'`\\^{{|}}{_UNSEEN}\u200d]+"
_LINK = re.compile(
    rf"\[(?P<words>[^\[\]\n]{{1,200}})\]\((?P<target>https?://[^\s()<>\"'`\\{_UNSEEN}]+)\)|(?P<bare>{_URL})"
)
_TRAILING = ".,;:!?)]}*_"


class Piece(Struct, frozen=True):
    """A part of a text: plain, a mark (`mark` says of what), or a link (`href`; `host` where the text hides it)."""

    text: str
    mark: str | None = None
    href: str | None = None
    host: str | None = None


def pieces(text: str) -> list[Piece]:
    """A text with its hidden characters marked."""
    return list(_marked(text.replace("\r\n", "\n"), [MOST_MARKS]))


def prose(text: str) -> list[Piece]:
    """As `pieces`, with links: addresses of http and https, and `[words](address)`."""
    text, found, end, left = text.replace("\r\n", "\n"), [], 0, [MOST_MARKS]
    for count, match in enumerate(_LINK.finditer(text)):
        if count == MOST_LINKS:
            break
        linked = _linked(match)
        if linked is None:
            continue
        found += [*_marked(text[end : match.start()], left), linked]
        end = match.start() + len((match["bare"] and linked.text) or match[0])
    return [*found, *_marked(text[end:], left)]


def has_hidden(text: str) -> bool:
    """Whether something in a text does not show."""
    return _HIDDEN.search(text.replace("\r\n", "\n")) is not None


def host_of(url: str) -> str:
    """The host of an address as browsers ask for it, so that letters of another script do not pass for ours."""
    host = urlsplit(url).hostname or ""
    try:
        return host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        return host.encode("ascii", "backslashreplace").decode()


def web_address(url: str | None) -> str | None:
    """An address that may be a link; None for every other one."""
    try:
        return None if url is None else check_http_url("url", url)
    except FieldFault:
        return None


def _linked(match: re.Match[str]) -> Piece | None:
    bare = match["bare"]
    if bare is None:
        href = web_address(match["target"])
        words = "".join(piece.text for piece in _marked(match["words"], [MOST_MARKS]))
        return None if href is None else Piece(words, href=href, host=host_of(href))
    href = web_address(bare.rstrip(_TRAILING))
    if href is None:
        return None
    plain = href.isascii() and "@" not in urlsplit(href).netloc
    return Piece(href, href=href, host=None if plain else host_of(href))


def _marked(text: str, left: list[int]) -> Iterator[Piece]:
    """The pieces of a text without links; `left` counts down the marks that may still be drawn."""
    end, plain = 0, []
    for match in _HIDDEN.finditer(text):
        plain.append(text[end : match.start()])
        end = match.end()
        count, word = len(match[0]), _code(match["one"])
        shown = word if count == 1 else f"{word} \u00d7{count}"
        left[0] -= 1
        if left[0] < 0:
            plain.append(f"⟨{shown}⟩")
            continue
        if before := "".join(plain):
            yield Piece(before)
        plain = []
        yield Piece(shown, mark=_named(match["one"]))
    if rest := "".join([*plain, text[end:]]):
        yield Piece(rest)


def _code(character: str) -> str:
    return f"U+{ord(character):04X}"


def _named(character: str) -> str:
    name = unicodedata.name(character, "").lower() or "control character"
    return f"A hidden character stands here: {name}"
