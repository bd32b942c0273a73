"""What may no longer be called when its turn comes is a failed try that says so and names no address."""

from typing import Any

from controlplane.workers.dispatcher import Dispatcher
from controlplane.workers.launcher import Launcher
from tests.app import in_process
from tests.postgres import Database
from tests.receiver import Receiver

ERROR = "callback_url_refused: its host leads to a loopback address, which HOLDSHORT_CALLBACK_ALLOW must allow"


async def test_a_callback_to_it_is_tried_again_by_the_schedule(database: Database, told: Receiver, sql: Any):
    async with in_process(database) as api:
        approval = await api.asked(callback_url=told.url)
        await api.decide(approval)
    async with in_process(database, open_mode=False) as api:
        dispatcher = Dispatcher(api.runtime)
        await dispatcher.step()
        await dispatcher.drain()
    row = await sql.fetchrow("SELECT * FROM deliveries")
    assert (row["status"], row["attempts"], row["last_status"], row["last_error"]) == ("pending", 1, None, ERROR)
    assert told.got == []
    async with in_process(database) as api:
        await sql.execute("UPDATE deliveries SET due_at = clock_timestamp()")
        dispatcher = Dispatcher(api.runtime)
        await dispatcher.step()
        await dispatcher.drain()
    assert len(told.got) == 1


async def test_a_run_is_not_given_to_it_and_stays_in_the_queue(database: Database, told: Receiver, sql: Any):
    node = {
        "node_id": "node-1",
        "base_url": f"http://127.0.0.1:{told.port}",
        "reasoners": [{"name": "work"}],
        "features": {"replay": True, "fence": True},
    }
    async with in_process(database) as api:
        assert (await api.post("/nodes/register", node)).status_code == 201
        assert (await api.post("/execute/async/node-1.work", {"input": {}})).status_code == 202
    async with in_process(database, open_mode=False) as api:
        launcher = Launcher(api.runtime)
        await launcher.step()
        await launcher.drain()
    row = await sql.fetchrow(
        "SELECT e.status, d.due_at, d.last_error FROM executions e JOIN dispatches d USING (execution_id)"
    )
    assert (row["status"], row["last_error"]) == ("queued", ERROR)
    assert row["due_at"] is not None
    assert told.got == []
