import asyncio

import pytest

from controlplane.domain.errors import DatabaseUnavailable
from controlplane.runtime import Pulse, Runtime
from controlplane.workers import loop
from controlplane.workers.crew import running
from controlplane.workers.news import Notifier, Tail
from tests.app import in_process, settings_for, until
from tests.postgres import Database

FAULTS = [DatabaseUnavailable(), ValueError("a fault of ours"), TimeoutError(), OSError()]


async def test_a_fault_is_survived_and_the_step_tried_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loop, "POLL_SECONDS", 0.01)
    left, done = list(FAULTS), asyncio.Event()

    async def step() -> float:
        if left:
            raise left.pop()
        done.set()
        return 1.0

    task = asyncio.create_task(loop.repeat("test", step, Pulse()))
    async with asyncio.timeout(5):
        await done.wait()
    assert not task.done()
    task.cancel()


async def test_a_step_that_does_not_end_is_begun_anew(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loop, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(loop, "WATCHDOG_SECONDS", 0.05)
    begun = asyncio.Semaphore(0)

    async def step() -> float:
        begun.release()
        await asyncio.Event().wait()
        return 1.0

    task = asyncio.create_task(loop.repeat("test", step, Pulse()))
    async with asyncio.timeout(5):
        await begun.acquire()
        await begun.acquire()
    task.cancel()


async def test_a_beat_during_a_step_is_not_missed():
    wake, steps = Pulse(), 0

    async def step() -> float:
        nonlocal steps
        steps += 1
        if steps == 1:
            wake.beat()
        return 1000.0

    task = asyncio.create_task(loop.repeat("test", step, wake))
    await until(lambda: steps == 2, seconds=0.9)
    task.cancel()


async def test_the_tail_tells_each_end_once_though_another_transaction_stays_open(database: Database):
    other = await database.connect()
    async with in_process(database) as here, in_process(database) as there:
        tail = Tail(here.runtime)
        await tail.step()
        approvals = [await there.asked(f"q-{number}", f"run-{number}") for number in range(3)]
        told: list[str] = []
        here.runtime.waits.settle = told.extend  # type: ignore[method-assign]
        async with other.transaction():
            await other.execute("SELECT pg_current_xact_id()")
            for approval in approvals:
                await there.decide(approval)
                await tail.step()
                await tail.step()
            assert told == approvals
        await tail.step()
        assert told == approvals
    await other.close()


async def test_many_writes_are_told_to_others_in_few_notifications(database: Database):
    heard: list[str] = []
    listener = await database.connect()
    await listener.add_listener("holdshort", lambda *_: heard.append(""))
    async with in_process(database) as api:
        notifier = Notifier(api.runtime)
        for number in range(20):
            await api.start(f"run-{number}")
        assert await notifier.step() == 1.0
        await until(lambda: heard)
        await notifier.step()
        await listener.fetchval("SELECT 1")
        assert len(heard) == 1
    await listener.close()


async def test_the_tail_has_its_mark_before_anybody_is_served(database: Database, monkeypatch: pytest.MonkeyPatch):
    marked: list[str] = []
    step = Tail.step

    async def noted(self: Tail) -> float:
        pause = await step(self)
        marked.append("marked")
        return pause

    monkeypatch.setattr(Tail, "step", noted)
    runtime = Runtime(settings_for(database))
    async with running(runtime):
        assert marked == ["marked"]
    await runtime.close()
