"""Senders are read once for all that come, every two seconds; after four seconds without an answer nobody passes."""

import asyncio

import pytest
import structlog

from controlplane.domain.errors import DatabaseUnavailable
from controlplane.domain.vault import NONCE_BYTES, sender_secret
from controlplane.domain.webhook_secrets import WebhookSecret
from controlplane.runtime.sender_book import FRESH_SECONDS, STALE_SECONDS, SenderBook
from controlplane.storage.senders import Held, Standing
from tests.app import until
from tests.senders import NEW_VAULT_ALONE, VAULT

SETTINGS = (WebhookSecret("desk", "of-the-settings"), WebhookSecret("", "unnamed"))
JUST_BEFORE = 0.001


def held(sender: str, secret: str, secret_id: str | None = None, seconds_left: float | None = None) -> Held:
    """A secret as it stands in the database."""
    id_ = secret_id or f"whs_{secret}"
    return Held(sender, id_, VAULT.seal(secret, sender_secret(sender, id_), bytes(NONCE_BYTES)), seconds_left)


class Database:
    """What a book reads: what stands, or that nobody answers; and a clock that the test sets."""

    def __init__(self) -> None:
        self.standing = Standing((held("legal", "one"),), frozenset())
        self.away = False
        self.reads = 0
        self.now = 1000.0
        self.gate = asyncio.Event()
        self.gate.set()

    async def read(self) -> Standing:
        self.reads += 1
        await self.gate.wait()
        if self.away:
            raise DatabaseUnavailable
        return self.standing

    def book(self, settings: tuple[WebhookSecret, ...] = SETTINGS) -> SenderBook:
        return SenderBook(self.read, settings, VAULT, lambda: self.now)


@pytest.fixture
def database() -> Database:
    """With one sender."""
    return Database()


async def names(book: SenderBook) -> list[tuple[str, str]]:
    return [(each.sender, each.secret) for each in (await book.known()).secrets]


async def test_those_of_the_database_stand_before_those_of_the_settings(database: Database):
    database.standing = Standing((held("desk", "newer"), held("legal", "one")), frozenset())
    assert await names(database.book()) == [
        ("desk", "newer"),
        ("legal", "one"),
        ("desk", "of-the-settings"),
        ("", "unnamed"),
    ]
    assert await names(database.book(())) == [("desk", "newer"), ("legal", "one")]


async def test_a_sender_that_was_revoked_is_out_by_the_settings_too(database: Database):
    database.standing = Standing((), frozenset({"desk"}))
    assert await names(database.book()) == [("", "unnamed")]


async def test_nothing_is_asked_again_within_two_seconds(database: Database):
    book = database.book()
    await book.known()
    database.standing = Standing((), frozenset())
    database.now += FRESH_SECONDS - JUST_BEFORE
    for _ in range(100):
        assert ("legal", "one") in await names(book)
    assert database.reads == 1
    database.now += JUST_BEFORE
    assert ("legal", "one") not in await names(book)
    assert database.reads == 2


async def test_all_who_come_at_once_wait_for_one_look(database: Database):
    book = database.book()
    database.gate.clear()
    waiting = [asyncio.create_task(book.known()) for _ in range(50)]
    await until(lambda: database.reads)
    waiting[0].cancel()
    database.gate.set()
    ends = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(ends[0], asyncio.CancelledError)
    assert len({id(end) for end in ends[1:]}) == 1
    assert database.reads == 1


async def test_what_is_known_holds_on_for_four_seconds_and_not_longer(database: Database):
    book = database.book()
    await book.known()
    database.away = True
    database.now += STALE_SECONDS - JUST_BEFORE
    assert ("legal", "one") in await names(book)
    assert database.reads == 2
    database.now += JUST_BEFORE
    with pytest.raises(DatabaseUnavailable):
        await book.known()
    database.away = False
    assert ("legal", "one") in await names(book)


async def test_without_any_look_nothing_holds_not_even_the_settings(database: Database):
    database.away = True
    with pytest.raises(DatabaseUnavailable):
        await database.book().known()


async def test_a_secret_ends_in_its_second_whoever_answers(database: Database):
    book = database.book()
    database.standing = Standing((held("legal", "new"), held("legal", "old", seconds_left=1.0)), frozenset())
    assert ("legal", "old") in await names(book)
    database.away = True
    database.now += 1.0 - JUST_BEFORE
    assert ("legal", "old") in await names(book)
    database.now += JUST_BEFORE
    with pytest.raises(DatabaseUnavailable):
        await book.known()
    database.away, database.standing = False, Standing((held("legal", "new"),), frozenset())
    assert ("legal", "old") not in await names(book)


async def test_an_answer_that_took_too_long_is_none(database: Database):
    book = database.book()
    database.gate.clear()
    waiting = asyncio.create_task(book.known())
    await until(lambda: database.reads)
    database.now += STALE_SECONDS
    database.gate.set()
    with pytest.raises(DatabaseUnavailable):
        await waiting


async def test_what_cannot_be_opened_is_left_out_and_said_once(database: Database):
    elsewhere = NEW_VAULT_ALONE.seal("x", sender_secret("crm", "whs_x"), bytes(NONCE_BYTES))
    moved = held("legal", "one")
    database.standing = Standing(
        (Held("crm", "whs_x", elsewhere, None), Held("crm", moved.secret_id, moved.sealed, None), held("legal", "two")),
        frozenset(),
    )
    book = database.book(())
    with structlog.testing.capture_logs() as said:
        for _ in range(3):
            assert await names(book) == [("legal", "two")]
            database.now += FRESH_SECONDS
    assert (await book.known()).unreadable
    assert [(line["event"], line["ids"]) for line in said] == [("senders_unreadable", ["whs_x", "whs_one"])]


async def test_without_a_master_key_the_settings_still_hold(database: Database):
    known = await SenderBook(database.read, SETTINGS, None, lambda: database.now).known()
    assert (known.secrets, known.unreadable) == (SETTINGS, True)


async def test_secrets_that_are_never_tried_are_said_by_sender(database: Database):
    database.standing = Standing(tuple(held("desk", str(number)) for number in range(5)), frozenset())
    with structlog.testing.capture_logs() as said:
        await database.book().known()
    assert [(line["event"], line["sender"]) for line in said] == [("webhook_secret_is_never_tried", "desk")]


async def test_a_look_under_way_ends_with_its_process(database: Database):
    book = database.book()
    database.gate.clear()
    waiting = asyncio.create_task(book.known())
    await until(lambda: database.reads)
    book.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
