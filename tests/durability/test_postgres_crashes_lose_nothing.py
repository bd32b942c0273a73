"""PostgreSQL is shut down with no chance to tidy up, under load: what was acknowledged stands, and work goes on."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import asyncpg
import pytest

from controlplane.cli.postgres import Embedded, run_ephemeral
from controlplane.cli.postgres.cluster import Cluster
from controlplane.storage.migrations import migrate
from tests.durability.conftest import Figures
from tests.durability.invariants import broken, lost, settled
from tests.durability.plane import Webhook, ask, planes, until
from tests.durability.receiver import receiver
from tests.durability.wire import Reply, Wire, in_lanes
from tests.postgres import run

LANES = 8
PATIENCE_SECONDS = 90.0
BACK_SECONDS = 6.0
DATABASE = "holdshort"


class Taken(NamedTuple):
    """A decision that was acknowledged: when, after how many tries, and how."""

    at: float
    tries: int
    reply: Reply


@pytest.fixture
def cluster() -> Iterator[Embedded]:
    """A PostgreSQL of this test's own, migrated; whatever server the other tests use."""
    with run_ephemeral(entropy=os.urandom) as embedded:
        run(migrate(embedded.url))
        yield embedded


@pytest.mark.parametrize(
    ("approvals", "crashes"),
    [
        pytest.param(120, 1, id="quick"),
        pytest.param(3_000, 5, id="long", marks=[pytest.mark.proof, pytest.mark.timeout(900)]),
    ],
)
async def test_immediate_shutdown_under_load(cluster: Embedded, figures: Figures, approvals: int, crashes: int):
    taken: list[Taken] = []
    gaps: list[float] = []
    async with receiver() as told:
        with planes(cluster.url, 2) as (first, second):
            numbers = range(approvals)
            await in_lanes(first.url, numbers, lambda wire, n: ask(wire, f"run-{n}", "deploy", callback_url=told.url))
            urls = (first.url, second.url)
            deciding = [asyncio.create_task(decide(url, numbers[part::2], taken)) for part, url in enumerate(urls)]
            begun = time.monotonic()
            for crash in range(1, crashes + 1):
                await until(lambda share=approvals * crash // (crashes + 1): reached(taken, share), every=0.001)
                gaps.append(await crash_and_recover(cluster, taken))
            await asyncio.gather(*deciding)
            seconds = time.monotonic() - begun
            connection = await asyncpg.connect(cluster.url)
            await until(lambda: settled(connection), seconds=PATIENCE_SECONDS)
    answered = [(one.reply.body["approval_id"], one.reply.body["decision"]) for one in taken]
    assert len(answered) == approvals
    missing = await lost(connection, answered)
    assert missing == []
    assert told.all_decisions() == {approval: {decision} for approval, decision in answered}
    assert await broken(connection) == []
    await connection.close()
    figures(
        "immediate shutdowns of PostgreSQL under load",
        approvals=approvals,
        crashes=crashes,
        acknowledged=len(taken),
        lost=len(missing),
        sent_again=sum(one.tries > 1 for one in taken),
        committed_before_the_answer=sum(one.reply.body.get("replayed", False) for one in taken),
        callbacks_repeated=sum(told.copies.values()) - len(told.copies),
        slowest_first_2xx_after_a_crash_s=max(gaps),
        decisions_a_second=approvals / (seconds - sum(gaps)),
    )
    assert max(gaps) <= BACK_SECONDS


async def decide(url: str, numbers: range, taken: list[Taken]) -> None:
    """Approve each of these runs, as often as it takes."""

    async def approve(wire: Wire, number: int) -> None:
        webhook = Webhook(f"run-{number}", "deploy", "approved")
        reply, tries = await webhook.post_until_taken(wire, patience=PATIENCE_SECONDS)
        assert (reply.status, reply.body["status"]) == (200, "processed"), reply
        taken.append(Taken(time.monotonic(), tries, reply))

    await in_lanes(url, numbers, approve, lanes=LANES // 2)


async def reached(taken: list[Any], share: int) -> bool:
    return len(taken) >= share


async def crash_and_recover(embedded: Embedded, taken: list[Taken]) -> float:
    """Crash PostgreSQL and start it on the same data; seconds from the crash to the next acknowledged decision."""
    crashed = time.monotonic()
    await asyncio.to_thread(crash, embedded.cluster)
    await until(lambda: acknowledged_after(taken, crashed + 0.1), every=0.005)
    return min(one.at for one in taken if one.at > crashed + 0.1) - crashed


async def acknowledged_after(taken: list[Taken], moment: float) -> bool:
    return any(one.at > moment for one in taken[-LANES:])


def crash(cluster: Cluster) -> None:
    """SIGQUIT: every backend ends at once and nothing is flushed; the next start recovers from the log."""
    server = cluster._child
    assert server is not None
    server.send_signal(signal.SIGQUIT)
    server.wait(10)
    cluster._child = None  # its end was no fault of the data, as the cluster would take it to be
    cluster.start("", DATABASE)
