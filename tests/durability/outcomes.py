"""What came of planned runs: how each ended, what it was asked, and how often it did what."""

import asyncio
import json
from collections import Counter
from typing import Any

from tests.durability.agents import Agents
from tests.durability.journal import Tally, deeds, taken, tally
from tests.durability.plans import Plan

LEFT = "SELECT count(*) FROM executions WHERE ended_at IS NULL OR outcome_pending"
RELEASED = """
    SELECT execution_id, (data ->> 'fence')::int AS fence, data ->> 'reason' AS reason
    FROM history WHERE type = 'execution.released'
"""


async def all_over(connection: Any, *busy: "asyncio.Task[Any]") -> bool:
    """Whether every run has ended; raises what ended a task that was to go on."""
    for task in busy:
        if task.done():
            task.result()
    return bool(await connection.fetchval(LEFT) == 0)


async def check(connection: Any, plans: dict[str, Plan], programs: Agents, killed: set[int]) -> Tally:
    """Each run ended as its answers say, asked what it had to and nothing more, and did its steps, each once."""
    found = await connection.fetch("SELECT execution_id, status, error, result #>> '{}' AS result FROM executions")
    stored = await connection.fetch("SELECT execution_id, name, result #>> '{}' AS token FROM steps ORDER BY position")
    asked = await connection.fetch(
        "SELECT execution_id, approval_request_id, round, status FROM approvals ORDER BY requested_at, approval_id"
    )
    assert {row["execution_id"] for row in found} == set(plans)
    for row in found:
        run, plan = row["execution_id"], plans[row["execution_id"]]
        tokens = [step["token"] for step in stored if step["execution_id"] == run]
        result = {"number": plan.number, "decisions": plan.decisions, "steps": tokens}
        assert (row["status"], row["error"]) == (plan.status, None), plan
        assert json.loads(row["result"]) == result, plan
        assert [step["name"] for step in stored if step["execution_id"] == run] == plan.steps
        assert [tuple(each)[1:] for each in asked if each["execution_id"] == run] == [
            (each.request, each.round, each.decision) for each in plan.answers
        ]
    counted = tally(programs.reader.look(), [step["token"] for step in stored], killed)
    assert counted.wrong == []
    assert (
        counted.runs_of_steps
        == counted.steps + counted.in_flight + counted.unsaved
        == len(deeds(programs.reader.lines))
    )
    return counted


async def released(connection: Any, programs: Agents) -> Counter[str]:
    """How many runs were released for which reason, where every instance was let stop.

    What one took it handed back itself; all that went with it was still on its way when it stopped to listen.
    """
    held = taken(programs.reader.look())
    rows = await connection.fetch(RELEASED)
    due = ["handed_back" if (row["execution_id"], row["fence"]) in held else "instance_gone" for row in rows]
    wrong = [tuple(row) for row, reason in zip(rows, due, strict=True) if row["reason"] != reason]
    assert wrong == [], (wrong, programs.said())
    return Counter(due)
