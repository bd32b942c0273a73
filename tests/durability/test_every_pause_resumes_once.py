"""The control plane is killed again and again while agents pause and people decide: every pause resumes, once."""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.durability import pausing_agent
from tests.durability.conftest import Figures
from tests.durability.invariants import broken, lost, settled
from tests.durability.plane import Plane, Webhook, free_port, planes, until
from tests.durability.wire import Reply, Wire, in_lanes
from tests.postgres import Database

LANES = 12
DECISIONS = ("approved", "request_changes", "rejected")
SENDER_TRIES_FOR_SECONDS = 240.0


class Taken(NamedTuple):
    """A decision that a sender was told has been taken, how often it was sent, and what the last answer was."""

    run: str
    decision: str
    tries: int
    reply: Reply


@pytest.mark.parametrize(
    ("pauses", "kills"),
    [
        pytest.param(30, 2, id="quick"),
        pytest.param(1_000, 10, id="long", marks=[pytest.mark.proof, pytest.mark.timeout(900)]),
    ],
)
async def test_through_restarts_of_the_control_plane(
    database: Database, figures: Figures, tmp_path: Path, pauses: int, kills: int
):
    connection = await database.connect()
    journal = tmp_path / "journal"
    with planes(database.url) as (plane,), agent(plane, pauses, journal) as process:
        asked = "SELECT count(*) FROM approvals"
        await until(lambda: at_least(connection, asked, pauses // 2), seconds=60)
        await restart(plane)
        await until(lambda: at_least(connection, asked, pauses), seconds=120)
        decided = await decide_through_kills(plane, pauses, kills - 1)
        await asyncio.to_thread(process.wait, 120)
        assert process.returncode == 0
        await until(lambda: settled(connection), seconds=60)
    resumed, callbacks = read(journal)
    check(resumed, decided, pauses)
    answered = [(each.reply.body["approval_id"], each.decision) for each in decided]
    assert await lost(connection, answered) == []
    ends = dict(await connection.fetch("SELECT execution_id, status FROM executions"))
    assert ends == {each.run: "cancelled" if each.decision == "rejected" else "succeeded" for each in decided}
    assert await broken(connection) == []
    await connection.close()
    figures(
        "pauses through kills of the control plane",
        pauses=pauses,
        kills=kills,
        resumed=len(resumed),
        resumed_twice=len(resumed) - len({line["run"] for line in resumed}),
        decisions_sent_again=sum(each.tries > 1 for each in decided),
        of_them_committed_before_the_answer=sum(each.reply.body.get("replayed", False) for each in decided),
        callbacks=sum(callbacks.values()),
        callbacks_repeated=sum(callbacks.values()) - len(callbacks),
    )


def check(resumed: list[dict[str, Any]], decided: list[Taken], pauses: int) -> None:
    """Each run went on exactly once, with its own decision, words and data."""
    assert Counter(line["run"] for line in resumed) == {f"run-{number}": 1 for number in range(pauses)}
    seen = {line["run"]: (line["decision"], line["feedback"], line["data"]) for line in resumed}
    assert seen == {each.run: (each.decision, f"for {each.run}", {"run": each.run}) for each in decided}


async def decide_through_kills(plane: Plane, pauses: int, kills: int) -> list[Taken]:
    """Decide every pause over many connections, while the server is killed after each equal share of them."""
    taken = 0
    every = pauses // (kills + 1)

    async def decide(wire: Wire, number: int) -> Taken:
        nonlocal taken
        run, decision = f"run-{number}", DECISIONS[number % len(DECISIONS)]
        webhook = Webhook(run, "deploy", decision, feedback=f"for {run}", response={"run": run})
        reply, tries = await webhook.post_until_taken(wire, patience=SENDER_TRIES_FOR_SECONDS)
        assert (reply.status, reply.body["status"]) == (200, "processed"), reply
        taken += 1
        return Taken(run, decision, tries, reply)

    async def reached(count: int) -> bool:
        return taken >= count

    deciding = asyncio.create_task(in_lanes(plane.url, range(pauses), decide, lanes=LANES))
    for kill in range(kills):
        await until(lambda share=every * (kill + 1): reached(share), seconds=60, every=0.001)
        await restart(plane)
    return await deciding


async def restart(plane: Plane) -> None:
    """SIGKILL, and a new process on the same port."""
    await asyncio.to_thread(plane.kill)
    await asyncio.to_thread(plane.start)


async def at_least(connection: Any, query: str, count: int) -> bool:
    found: int = await connection.fetchval(query)
    return found >= count


@contextmanager
def agent(plane: Plane, runs: int, journal: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """The agent's process; ended at the end of the block if it has not ended before."""
    arguments = [plane.url, str(free_port()), str(runs), str(journal)]
    process = subprocess.Popen([sys.executable, pausing_agent.__file__, *arguments], env={})
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def read(journal: Path) -> tuple[list[dict[str, Any]], Counter[str]]:
    """The agent's own words: every resume, and how often each callback came."""
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    callbacks = Counter(line["callback"] for line in lines if "callback" in line)
    return [line for line in lines if "run" in line], callbacks
