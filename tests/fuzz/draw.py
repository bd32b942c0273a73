"""Choices read out of bytes, so that whatever makes bytes (a seed, hypothesis, a guided fuzzer) makes whole cases."""

import random
from collections.abc import Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")

# What parsers trip over: ends, separators, digits, case, and bytes beyond ASCII.
NOISE = b"\x00\t\r\n \"'(),-./0123456789:;=@ABFVZ[\\]_abcdeftuvxz{|}%\x7f\x80\xa0\xc3\xe3\xff"
SNIPPETS = (
    b"\xe3\x80\x82",  # an ideographic full stop
    b"\xef\xbc\x91",  # a full-width 1
    b"\xc2\xad",
    b"\xe2\x84\xaa",  # the Kelvin sign
    b"\xc5\xbf",  # a long s
    b"\xed\xa0\x80",  # half a surrogate pair
    b"\\u0000",
    b"\\ud800",
    b"%00",
    b"%2e",
    b"0x",
    b"1e999",
    b"-0",
    b"\xef\xbb\xbf",
)


class Draw:
    """Reads choices from bytes; where they end, every further choice is the first."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def byte(self) -> int:
        """The next byte, 0 behind the end."""
        at, self._at = self._at, self._at + 1
        return self._data[at] if at < len(self._data) else 0

    def below(self, limit: int) -> int:
        """A number from 0 to under `limit`, which is 65,536 at most."""
        number = self.byte() if limit <= 256 else self.byte() << 8 | self.byte()
        return number % limit

    def number(self, size: int) -> int:
        """A number of `size` bytes."""
        return int.from_bytes(bytes(self.byte() for _ in range(size)))

    def once_in(self, rarity: int) -> bool:
        """True once in a while; never behind the end."""
        return self.below(rarity) == rarity - 1

    def choice(self, items: Sequence[Item]) -> Item:
        """One of some things."""
        return items[self.below(len(items))]

    def several(self, items: Sequence[Item], most: int) -> list[Item]:
        """From none to `most` of some things, in any order, the same one again too."""
        return [self.choice(items) for _ in range(self.below(most + 1))]

    def raw(self, most: int) -> bytes:
        """Up to `most` bytes as they are."""
        length = self.below(most + 1)
        at, self._at = self._at, self._at + length
        return self._data[at : at + length]

    def rest(self) -> bytes:
        """Everything that was not read yet."""
        at, self._at = self._at, len(self._data)
        return self._data[at:]

    def mutated(self, raw: bytes, most: int = 3) -> bytes:
        """The bytes with up to `most` small changes: nearly what it was, and often just no longer that."""
        text = bytearray(raw)
        for _ in range(self.below(most + 1)):
            self._mutate(text)
        return bytes(text)

    def _mutate(self, text: bytearray) -> None:
        at = self.below(len(text) + 1)
        end = min(len(text), at + self.below(12))
        kind = self.below(10)
        if kind < 2:
            text[at : at + 1] = bytes([self.choice(NOISE)])
        elif kind == 2:
            text[at : at + 1] = bytes(byte ^ (1 << self.below(8)) for byte in text[at : at + 1])
        else:
            text[at:end] = self._instead_of(bytes(text[at:end]), kind)

    def _instead_of(self, piece: bytes, kind: int) -> bytes:
        if kind == 3:
            return bytes([self.choice(NOISE)]) + piece
        if kind == 4:
            return self.choice(SNIPPETS) + piece
        if kind == 5:
            return piece + piece
        if kind == 6:
            return piece.swapcase()
        return b"" if kind < 9 else self.raw(6)


def made(seed: int, number: int) -> Iterator[bytes]:
    """Inputs from a seed, short and long ones."""
    source = random.Random(seed)
    for _ in range(number):
        yield source.randbytes(source.randrange(4, 160))
