"""What an agent is to be told rests while it is away, and goes to where it comes back; nobody else is told it."""

import asyncio
from typing import Any

import pytest

from controlplane.domain.deliveries import Attempt, DeliveryStatus, target_of
from controlplane.domain.executions import ExecutionStatus
from controlplane.domain.nodes import Beat
from controlplane.services import deliveries, following
from controlplane.storage import outbox
from controlplane.storage.deliveries import get
from tests.factories import OPERATOR
from tests.services.agents import HERE, THERE, Agents
from tests.services.store import Rows, Store

PATH = "/webhooks/approval"
DELIVERY = "SELECT url, target, resting, attempts, due_at <= clock_timestamp() AS due, status FROM deliveries"


async def asked(store: Store, base_url: str = HERE, execution_id: str = "run-1") -> str:
    """A pending approval whose callback goes to an agent at this address."""
    await store.start(execution_id)
    return (await store.ask("a", execution_id, callback_url=base_url + PATH)).approval_id


async def decided(store: Store, base_url: str = HERE, execution_id: str = "run-1") -> str:
    approval_id = await asked(store, base_url, execution_id)
    await store.decide(approval_id)
    return approval_id


async def delivery(rows: Rows) -> dict[str, Any]:
    found = await rows.sql.fetchrow(DELIVERY)
    assert found is not None
    return dict(found)


async def callback(rows: Rows) -> str:
    return str(await rows.value("SELECT callback_url FROM approvals"))


def at(base_url: str, **changes: Any) -> dict[str, Any]:
    """A delivery that is due there, with all its tries before it."""
    fields = {"url": base_url + PATH, "target": target_of(base_url), "resting": False, "attempts": 0, "due": True}
    return fields | {"status": "pending"} | changes


def rests(base_url: str, attempts: int = 0) -> dict[str, Any]:
    return at(base_url, resting=True, attempts=attempts)


GOES = {"shutdown": lambda agents: agents.shut_down("i1"), "lease": lambda agents: agents.silence("i1")}


@pytest.mark.parametrize("goes", GOES)
async def test_decided_while_it_is_away_it_is_told_where_it_comes_back(
    agents: Agents, store: Store, rows: Rows, goes: str
):
    await agents.register("i1", HERE)
    await decided(store)
    await GOES[goes](agents)
    assert await delivery(rows) == rests(HERE)
    assert await store.claim() == []
    assert await agents.follow() == 0
    await agents.register("i2", THERE)
    async with store.tx() as conn:
        assert await following.move_deliveries(conn, nodes=1, limit=1) == 1
    assert store.changes.due
    assert await delivery(rows) == at(THERE)
    (claimed,) = await store.claim()
    assert claimed.url == THERE + PATH


async def test_decided_after_it_came_back_it_is_told_there_at_once(agents: Agents, store: Store, rows: Rows):
    await agents.register("i1", HERE)
    approval_id = await asked(store)
    await agents.silence("i1")
    await agents.register("i2", THERE)
    assert await agents.follow() == 1
    assert await callback(rows) == THERE + PATH
    await store.decide(approval_id)
    assert await delivery(rows) == at(THERE)
    moved = await rows.sql.fetch("SELECT * FROM history WHERE type = 'approval.callback_changed'")
    assert [(row["approval_id"], row["actor_kind"], row["node_id"]) for row in moved] == [
        (approval_id, "system", "node-1")
    ]
    assert await agents.follow() == 0
    assert not await rows.value("SELECT bool_or(callbacks_left) FROM instances")


async def test_its_secret_goes_with_it(agents: Agents, store: Store):
    await agents.register("i1", HERE)
    await store.start()
    secret = "a-secret-of-enough-characters"
    approval = await store.ask("a", callback_url=HERE + PATH, callback_secret=secret)
    await agents.silence("i1")
    await agents.register("i2", THERE)
    await agents.follow()
    await store.decide(approval.approval_id)
    (claimed,) = await store.claim()
    assert (claimed.url, claimed.secret) == (THERE + PATH, secret)


async def test_decided_before_its_callback_had_moved_it_follows_after_one_try(agents: Agents, store: Store, rows: Rows):
    await agents.register("i1", HERE)
    approval_id = await asked(store)
    await agents.silence("i1")
    await agents.register("i2", THERE)
    await store.decide(approval_id)
    (claimed,) = await store.claim()
    assert claimed.url == HERE + PATH
    assert await store.settle(claimed, Attempt(error="connection refused"))
    assert await delivery(rows) == rests(HERE, attempts=1) | {"due": False}
    assert await agents.follow() == 1
    assert await delivery(rows) == at(THERE)


async def test_a_try_in_flight_can_no_longer_settle_once_it_rests(agents: Agents, store: Store, rows: Rows):
    await agents.register("i1", HERE)
    await decided(store)
    (claimed,) = await store.claim()
    await agents.shut_down()
    for attempt in (Attempt(200), Attempt(500), Attempt(410)):
        assert not await store.settle(claimed, attempt)
    assert not await store.mark_writing(claimed)
    assert await delivery(rows) == rests(HERE, attempts=1)
    assert await rows.value("SELECT lease_until IS NULL FROM deliveries")


async def test_a_try_that_arrived_before_it_went_is_delivered(agents: Agents, store: Store, rows: Rows):
    await agents.register("i1", HERE)
    await decided(store)
    await store.deliver()
    await agents.shut_down()
    assert (await delivery(rows))["status"] == "delivered"


async def test_a_failed_try_and_an_end_that_meet_leave_it_resting(
    agents: Agents, store: Store, rows: Rows, watcher: Rows
):
    for number, first in enumerate(("settle", "go")):
        run, base = f"run-{number}", f"http://127.0.0.1:{9100 + number}"
        await agents.register(f"m{number}", base)
        await decided(store, base, run)
        (claimed,) = await store.claim()
        settle, go = store.settle(claimed, Attempt(500)), agents.shut_down(f"m{number}")
        async with rows.holding("SELECT 1 FROM deliveries WHERE delivery_id = $1 FOR UPDATE", claimed.delivery_id):
            tasks = await watcher.queue(*((settle, go) if first == "settle" else (go, settle)))
        await asyncio.gather(*tasks)
        assert await rows.value("SELECT resting FROM deliveries WHERE delivery_id = $1", claimed.delivery_id), first


@pytest.mark.parametrize("attempt", [Attempt(error="connection refused"), Attempt(200, b'{"resolved": false}')])
async def test_what_fails_at_an_address_that_its_agent_has_left_rests(
    agents: Agents, store: Store, rows: Rows, attempt: Attempt
):
    await agents.register("i1", HERE)
    await agents.silence("i1")
    await decided(store)
    (claimed,) = await store.claim()
    assert await store.settle(claimed, attempt)
    assert (await delivery(rows))["resting"]
    async with store.tx() as conn:
        assert await outbox.next_due_in(conn) is None


async def test_what_fails_elsewhere_is_tried_again(agents: Agents, store: Store, rows: Rows):
    await agents.register("i1", HERE)
    await agents.silence("i1")
    await decided(store, f"{HERE}s")
    (claimed,) = await store.claim()
    assert await store.settle(claimed, Attempt(500))
    assert not (await delivery(rows))["resting"]


async def test_what_fails_while_another_is_at_that_address_is_tried_again(agents: Agents, store: Store, rows: Rows):
    await agents.register("i1", HERE)
    await agents.register("i2", HERE)
    await decided(store)
    (claimed,) = await store.claim()
    assert await store.settle(claimed, Attempt(500))
    assert not (await delivery(rows))["resting"]
    async with store.tx() as conn:
        pause = await outbox.next_due_in(conn)
    assert pause is not None


async def test_what_has_ended_rests_no_more_than_before(agents: Agents, store: Store, rows: Rows):
    await agents.register("i1", HERE)
    await agents.silence("i1")
    await decided(store)
    (claimed,) = await store.claim()
    assert await store.settle(claimed, Attempt(410))
    assert await delivery(rows) == at(HERE, attempts=1, status="dead")


async def test_a_new_process_at_the_same_address_is_told_there_at_once(agents: Agents, store: Store, rows: Rows):
    await agents.register("i1", HERE)
    await decided(store)
    (claimed,) = await store.claim()
    await store.settle(claimed, Attempt(error="connection refused"))
    assert not (await delivery(rows))["due"]
    await agents.register("i2", HERE)
    assert store.changes.due
    assert await delivery(rows) == at(HERE)


async def test_a_try_to_the_process_that_was_replaced_can_no_longer_settle(agents: Agents, store: Store, rows: Rows):
    await agents.register("i1", HERE)
    await decided(store)
    (claimed,) = await store.claim()
    await agents.register("i2", HERE)
    assert not await store.settle(claimed, Attempt(error="reset"))
    assert await delivery(rows) == at(HERE)


async def test_replacing_one_leaves_the_callbacks_of_pending_approvals(agents: Agents, store: Store, rows: Rows):
    await agents.register("i1", HERE)
    await asked(store)
    await agents.register("i2", HERE)
    assert await agents.follow() == 0
    assert await callback(rows) == HERE + PATH
    assert "approval.callback_changed" not in await rows.history()


@pytest.mark.parametrize("instance_id", ["i1", "i2"])
async def test_what_rests_is_told_at_the_same_address_when_somebody_is_there_again(
    agents: Agents, store: Store, rows: Rows, instance_id: str
):
    await agents.register("i1", HERE)
    await decided(store)
    await asked(store, HERE, "run-2")
    await agents.silence("i1")
    await agents.register(instance_id, HERE)
    assert await agents.follow() == 1
    assert await delivery(rows) == at(HERE)
    assert await rows.column("SELECT DISTINCT callback_url FROM approvals") == [HERE + PATH]


async def test_it_follows_one_that_changes_its_address(agents: Agents, store: Store, rows: Rows):
    await agents.register("i1", HERE)
    await decided(store)
    await asked(store, HERE, "run-2")
    await agents.register("i1", THERE)
    assert await agents.follow() == 2
    assert await delivery(rows) == at(THERE)
    assert await rows.value("SELECT callback_url FROM approvals WHERE status = 'pending'") == THERE + PATH


async def test_the_newest_that_is_live_is_told(agents: Agents, store: Store, rows: Rows):
    await agents.register("i1", HERE)
    await agents.register("i2", "http://127.0.0.1:9003")
    await agents.register("i3", THERE)
    await agents.register("i4", "http://127.0.0.1:9004")
    await agents.beat("i4", Beat("draining"))
    await decided(store)
    await asked(store, HERE, "run-2")
    await agents.silence("i1")
    assert await agents.follow() == 2
    assert await delivery(rows) == at(THERE)
    assert await rows.value("SELECT callback_url FROM approvals WHERE status = 'pending'") == THERE + PATH


async def test_it_waits_for_a_live_one_of_its_own_node(agents: Agents, store: Store, rows: Rows):
    await agents.register("i1", HERE)
    await agents.register("other", THERE, node_id="node-2")
    await agents.register("i2", "http://127.0.0.1:9003")
    await agents.beat("i2", Beat("draining"))
    await decided(store)
    await asked(store, HERE, "run-2")
    await agents.silence("i1")
    assert await agents.follow() == 0
    assert await delivery(rows) == rests(HERE)
    assert await rows.column("SELECT DISTINCT callback_url FROM approvals") == [HERE + PATH]


async def test_what_belongs_to_one_that_is_there_stays(agents: Agents, store: Store, rows: Rows):
    inner, longer = f"{HERE}/inner", f"{HERE}s"
    await agents.register("outer", HERE)
    await agents.register("inner", inner)
    await agents.register("longer", longer)
    for number, base in enumerate((inner, longer, "http://127.0.0.1:9")):
        await decided(store, base, f"run-{number}")
        await asked(store, base, f"pending-{number}")
    await agents.silence("outer")
    assert await agents.follow() == 0
    assert await rows.column("SELECT DISTINCT resting FROM deliveries") == [False]
    assert not await rows.value("SELECT bool_or(callbacks_left) FROM instances")


async def test_the_nearest_address_is_the_one_that_was_left(agents: Agents, store: Store, rows: Rows):
    inner = f"{HERE}/inner"
    await agents.register("outer", HERE)
    await agents.register("inner", inner)
    await decided(store, inner)
    await asked(store, inner, "run-2")
    await agents.silence("inner")
    assert await agents.follow() == 2
    assert await delivery(rows) == at(HERE)
    await agents.silence("outer")
    assert (await delivery(rows))["resting"]


async def test_what_points_to_an_address_that_is_forgotten_is_tried_there(agents: Agents, store: Store, rows: Rows):
    await agents.register("i1", HERE)
    await decided(store)
    await agents.silence("i1")
    await rows.sql.execute("DELETE FROM instances")
    await agents.register("i2", THERE)
    assert await agents.follow() == 1
    assert await delivery(rows) == at(HERE)


async def test_a_decision_and_the_move_that_meet_tell_it_once(agents: Agents, store: Store, rows: Rows, watcher: Rows):
    await agents.register("i1", HERE)
    approval_id = await asked(store)
    await agents.silence("i1")
    await agents.register("i2", THERE)
    async with rows.holding_run():
        (deciding,) = await watcher.queue(store.decide(approval_id))
        # The run is held by others, so it is left for later.
        assert await Agents(store, watcher).follow() == 0
    await deciding
    assert await agents.follow() == 0
    (claimed,) = await store.claim()
    await store.settle(claimed, Attempt(error="connection refused"))
    assert await agents.follow() == 1
    assert await delivery(rows) == at(THERE)


async def test_what_is_held_by_others_is_moved_later(agents: Agents, store: Store, rows: Rows, watcher: Rows):
    await agents.register("i1", HERE)
    await decided(store)
    await asked(store, HERE, "run-2")
    await agents.silence("i1")
    await agents.register("i2", THERE)
    async with rows.holding("SELECT 1 FROM deliveries d, executions e FOR UPDATE"):
        assert await Agents(store, watcher).follow() == 0
    assert await agents.follow() == 2


async def test_many_are_moved_in_batches(agents: Agents, store: Store, rows: Rows):
    await agents.register("i1", HERE)
    for number in range(5):
        await decided(store, HERE, f"run-{number}")
        await asked(store, HERE, f"pending-{number}")
    await agents.silence("i1")
    await agents.register("i2", THERE)
    assert [await agents.follow(limit=2) for _ in range(4)] == [3, 3, 2, 0]
    assert await rows.column("SELECT DISTINCT url FROM deliveries") == [THERE + PATH]
    assert await rows.column("SELECT DISTINCT callback_url FROM approvals WHERE status = 'pending'") == [THERE + PATH]
    assert await rows.value("SELECT count(*) FROM history WHERE type = 'approval.callback_changed'") == 5


async def test_two_followers_move_each_once(agents: Agents, store: Store, rows: Rows):
    await agents.register("i1", HERE)
    for number in range(8):
        await decided(store, HERE, f"run-{number}")
        await asked(store, HERE, f"pending-{number}")
    await agents.silence("i1")
    await agents.register("i2", THERE)
    while sum(await asyncio.gather(*(agents.follow(limit=3) for _ in range(3)))):
        pass
    assert await rows.column("SELECT DISTINCT fence FROM deliveries") == [2]
    assert await rows.value("SELECT count(*) FROM history WHERE type = 'approval.callback_changed'") == 8


async def test_asking_again_tells_it_at_the_new_address(agents: Agents, store: Store, rows: Rows):
    await agents.register("i1", HERE)
    approval_id = await decided(store)
    await agents.shut_down()
    await store.set_callback(approval_id, THERE + PATH)
    assert await delivery(rows) == at(THERE)


async def test_an_operator_may_send_it_all_the_same(agents: Agents, store: Store, rows: Rows):
    await agents.register("i1", HERE)
    await decided(store)
    await agents.shut_down()
    delivery_id = await rows.value("SELECT delivery_id FROM deliveries")
    async with store.tx() as conn:
        resting = await get(conn, delivery_id)
        again = await deliveries.redrive(conn, delivery_id, OPERATOR)
    assert resting is not None
    assert (resting.resting, again.resting, again.status) == (True, False, DeliveryStatus.PENDING)
    assert await delivery(rows) == at(HERE)


async def test_what_rests_is_obsolete_when_its_run_ends(agents: Agents, store: Store, rows: Rows):
    await agents.register("i1", HERE)
    await decided(store)
    await agents.shut_down()
    await store.report(ExecutionStatus.SUCCEEDED)
    ended = await delivery(rows)
    assert (ended["status"], ended["resting"]) == ("obsolete", False)
    await agents.register("i2", THERE)
    assert await agents.follow() == 0
