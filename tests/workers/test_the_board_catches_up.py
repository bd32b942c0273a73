"""Whatever a process has missed, its board of short-lived questions is right after one look, and says what changed."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controlplane.domain.answers import Choices, Kind
from controlplane.domain.feedback import FeedbackStatus, Question
from controlplane.runtime import Asked, Resolved
from controlplane.workers.feedback_board import BoardKeeper
from tests.app import Api, in_process
from tests.feedback import Asker, submit
from tests.postgres import Database

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
async def api(database: Database) -> AsyncIterator[Api]:
    """An application whose board nobody keeps."""
    async with in_process(database) as made:
        yield made


def question(unique_id: str) -> Question:
    times: dict[str, Any] = {"created_at": NOW, "expires_at": NOW + timedelta(seconds=300)}
    choices = Choices(kind=Kind.TEXT)
    return Question(unique_id=unique_id, message="m", choices=choices, session_id=None, execution_id=None, **times)


async def test_one_look_puts_all_of_it_right(api: Api, database: Database):
    board, keeper, asker = api.runtime.board, BoardKeeper(api.runtime), Asker()
    for unique_id in ("answered", "late", "left", "withdrawn", "stays"):
        await asker.ask(api.client, unique_id)
    await keeper._look_anew()
    assert [each.unique_id for each in board.questions()] == ["answered", "late", "left", "withdrawn", "stays"]
    board.add([question("never known")])
    await asker.ask(api.client, "new")
    await submit(api.client, "x", "answered")
    await api.client.delete("/api/v1/human-feedback/withdrawn")
    sql = await database.connect()
    for unique_id, moment in (("late", "expires_at"), ("left", "waiter_until")):
        await sql.execute(f"UPDATE feedback SET {moment} = clock_timestamp() WHERE unique_id = $1", unique_id)
    await sql.close()
    with board.listening() as ear:
        await keeper._look_anew()
        changes = await ear.take(0)
        await keeper._look_anew()
        assert await ear.take(0) == []
    assert changes is not None
    assert [each.question.unique_id for each in changes if isinstance(each, Asked)] == ["new"]
    assert {each for each in changes if isinstance(each, Resolved)} == {
        Resolved("answered", FeedbackStatus.ANSWERED),
        Resolved("late", FeedbackStatus.EXPIRED),
        Resolved("left", FeedbackStatus.CANCELLED),
        Resolved("withdrawn", FeedbackStatus.CANCELLED),
        Resolved("never known", FeedbackStatus.CANCELLED),
    }
    assert [each.unique_id for each in board.questions()] == ["stays", "new"]


async def test_whoever_is_too_slow_looks_anew(api: Api):
    board = api.runtime.board
    with board.listening() as slow:
        for first in range(0, 12_000, 1_000):
            board.add([question(str(number)) for number in range(first, first + 1_000)])
        assert await slow.take(0) is None
        assert len(board.questions()) == 12_000
        board.remove({"7": FeedbackStatus.ANSWERED, "none": FeedbackStatus.EXPIRED})
        assert await slow.take(0) == [Resolved("7", FeedbackStatus.ANSWERED)]
