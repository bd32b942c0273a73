"""A flood of keys that were never made: looked up one at a time, while every other key is looked up at once."""

import asyncio
from collections.abc import Sequence

from controlplane.domain.keys import ENTROPY_BYTES, Presented, mint, read
from controlplane.runtime.key_book import KeyBook
from controlplane.storage.keys import Found


class Slow:
    """A look-up that takes until it is let go, and knows no key."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.now = 0
        self.most = 0
        self.release = asyncio.Event()

    async def find(self, key_ids: Sequence[str], known: bool) -> list[Found]:
        assert not known
        self.begun.extend(key_ids)
        self.now += 1
        self.most = max(self.most, self.now)
        await self.release.wait()
        self.now -= 1
        return []


def invented(number: int) -> Presented:
    presented = read(mint(number.to_bytes(ENTROPY_BYTES, "big"))[1])
    assert presented is not None
    return presented


async def test_suspects_stand_in_line_and_others_do_not():
    slow = Slow()
    book = KeyBook(slow.find)
    suspects = [asyncio.create_task(book.recognise(invented(each), suspect=True)) for each in range(50)]
    others = [asyncio.create_task(book.recognise(invented(each))) for each in range(100, 103)]
    for _ in range(100):  # far more turns than it takes all of them to begin
        await asyncio.sleep(0)
    assert len(slow.begun) == 4  # one of the suspects, and all of the others
    slow.release.set()
    assert await asyncio.gather(*suspects, *others) == [None] * 53
    assert len(slow.begun) == 53
    assert slow.most == 4


async def test_an_id_that_is_nobodys_is_looked_up_once_for_a_while():
    slow = Slow()
    slow.release.set()
    book = KeyBook(slow.find)
    for _ in range(10):
        assert await book.recognise(invented(1), suspect=True) is None
        assert await book.recognise(invented(1)) is None
    assert len(slow.begun) == 1
