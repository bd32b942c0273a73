"""The database refuses a short-lived question that keeps words after its end, or an answer where none belongs."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from tests.postgres import Database

ASK = (
    "INSERT INTO feedback (unique_id, status, kind, message, public_key, created_at, expires_at, waiter_until)"
    " VALUES ('q', 'pending', 'text', 'm', decode(repeat('01', 32), 'hex'), now(), now() + interval '1 min', now())"
)
END = "status = 'answered', message = NULL, ended_at = now()"
SEALED = "enc = '\\x00', ct = '\\x00'"
REFUSED = {
    "feedback_status": "status = 'done', message = NULL, ended_at = now()",
    "feedback_end_has_a_time": "status = 'cancelled', message = NULL",
    "feedback_words_while_pending": "status = 'cancelled', ended_at = now()",
    "feedback_sealed_whole": f"{END}, ct = '\\x00'",
    "feedback_answer_of_an_end": f"status = 'expired', message = NULL, ended_at = now(), {SEALED}",
    "feedback_answered_in_time": f"status = 'answered', message = NULL, ended_at = expires_at, {SEALED}",
    "feedback_public_key": "public_key = '\\x00'",
}


@pytest.fixture
async def sql(database: Database) -> AsyncIterator[Any]:
    connection = await database.connect()
    await connection.execute(ASK)
    yield connection
    await connection.close()


async def test_each_check_refuses_what_it_is_there_for(sql: Any):
    for name, change in REFUSED.items():
        with pytest.raises(asyncpg.CheckViolationError) as refused:
            await sql.execute(f"UPDATE feedback SET {change}")
        assert refused.value.constraint_name == name
    await sql.execute(f"UPDATE feedback SET {END}, {SEALED}")
