"""A question that nobody answers ends by itself; its words go with its end, and its answer with its reading."""

import os
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from controlplane.domain.answers import Choices, Kind
from controlplane.domain.errors import AnswerTaken, RequestNotFound
from controlplane.domain.feedback import Asking
from controlplane.domain.sealing import Opener
from controlplane.services import feedback
from tests.factories import AGENT, PERSON
from tests.services.store import Rows, Store

OPENER = Opener(os.urandom(32))
Ask = Callable[[str], Awaitable[None]]
SHIFT = "UPDATE feedback SET {column} = {column} - interval '{seconds} s' WHERE unique_id = $1"


@pytest.fixture
def ask(store: Store) -> Ask:
    """Asks a question of 300 s that may be chosen between."""

    async def asked(unique_id: str) -> None:
        asking = Asking(
            unique_id=unique_id,
            message="Which?",
            choices=Choices(kind=Kind.MULTIPLE_CHOICE, options=("a", "b")),
            public_key=OPENER.public_key,
            session_id="s",
            execution_id="e",
        )
        async with store.tx() as conn:
            await feedback.ask(conn, asking, owner="k", actor=AGENT)

    return asked


async def shift(rows: Rows, unique_id: str, column: str, seconds: float) -> None:
    await rows.sql.execute(SHIFT.format(column=column, seconds=seconds), unique_id)


async def sweep(store: Store) -> int:
    async with store.tx() as conn:
        return await feedback.sweep(conn, limit=100)


async def state(rows: Rows, unique_id: str) -> tuple[Any, ...] | None:
    """Its status, whether it has a sealed answer, and whether any word of the question is left."""
    row = await rows.sql.fetchrow(
        "SELECT status, ct IS NOT NULL, coalesce(message, kind, session_id, execution_id, options::text,"
        " yes_label, public_key::text) IS NOT NULL FROM feedback WHERE unique_id = $1",
        unique_id,
    )
    return None if row is None else tuple(row)


async def test_each_ends_as_it_should_and_only_when_it_should(store: Store, rows: Rows, ask: Ask):
    for unique_id in ("stays", "late", "left"):
        await ask(unique_id)
    assert await sweep(store) == 0
    await shift(rows, "late", "expires_at", 301)
    await shift(rows, "left", "waiter_until", 16)
    assert await sweep(store) == 2
    assert await sweep(store) == 0
    assert await state(rows, "stays") == ("pending", False, True)
    assert await state(rows, "late") == ("expired", False, False)
    assert await state(rows, "left") == ("cancelled", False, False)
    told = await rows.sql.fetch(
        "SELECT type, actor_kind, data ->> 'unique_id' FROM history"
        " WHERE type LIKE 'feedback.%' AND type <> 'feedback.asked' ORDER BY 3"
    )
    assert [tuple(row) for row in told] == [
        ("feedback.expired", "system", "late"),
        ("feedback.cancelled", "system", "left"),
    ]


async def test_a_question_that_somebody_holds_is_left_to_them(store: Store, rows: Rows, ask: Ask):
    await ask("q")
    await shift(rows, "q", "expires_at", 301)
    async with rows.sql.transaction():
        await rows.sql.execute("SELECT 1 FROM feedback FOR UPDATE")
        assert await sweep(store) == 0
    assert await sweep(store) == 1


async def answered(store: Store, ask: Ask, unique_id: str) -> None:
    await ask(unique_id)
    async with store.tx() as conn:
        await feedback.submit(conn, unique_id, "A", actor=PERSON)


async def read(store: Store, unique_id: str) -> str:
    async with store.tx() as conn:
        standing = await feedback.answer(conn, unique_id, owner="k")
    assert standing.sealed is not None
    return OPENER.open(standing.sealed, unique_id)


async def test_an_answer_is_gone_half_a_minute_after_it_was_read_first(store: Store, rows: Rows, ask: Ask):
    await answered(store, ask, "q")
    assert await state(rows, "q") == ("answered", True, False)
    assert await read(store, "q") == "a"
    await shift(rows, "q", "read_at", 20)
    assert await read(store, "q") == "a"
    assert await sweep(store) == 0
    await shift(rows, "q", "read_at", 11)
    assert await sweep(store) == 1
    assert await state(rows, "q") == ("answered", False, False)
    with pytest.raises(AnswerTaken):
        await read(store, "q")


async def test_an_answer_that_nobody_fetched_is_kept_until_its_deadline_at_least(store: Store, rows: Rows, ask: Ask):
    await answered(store, ask, "q")
    for column in ("created_at", "waiter_until", "ended_at"):
        await shift(rows, "q", column, 299)
    await shift(rows, "q", "expires_at", 299)
    assert await sweep(store) == 0
    assert await read(store, "q") == "a"
    await answered(store, ask, "never")
    await shift(rows, "never", "ended_at", 331)
    await shift(rows, "never", "expires_at", 331)
    assert await sweep(store) == 1
    assert await state(rows, "never") == ("answered", False, False)


async def test_after_an_hour_nothing_is_left_of_it(store: Store, rows: Rows, ask: Ask):
    await answered(store, ask, "q")
    await read(store, "q")
    await shift(rows, "q", "ended_at", 3590)
    await shift(rows, "q", "read_at", 3590)
    assert await sweep(store) == 1
    assert await state(rows, "q") == ("answered", False, False)
    await shift(rows, "q", "ended_at", 11)
    assert await sweep(store) == 1
    assert await state(rows, "q") is None
    with pytest.raises(RequestNotFound):
        await read(store, "q")
