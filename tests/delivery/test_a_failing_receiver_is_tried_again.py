import asyncio
import socket
from typing import Any

from controlplane.domain.deliveries import DeliveryStatus
from controlplane.workers.dispatcher import Dispatcher
from tests.app import Api, in_process, problem
from tests.postgres import Database
from tests.receiver import Receiver, drip, hang, receiver, reply

SCHEDULE = [1, 5, 30, 120, 600, 1800, 3600, 3600, 3600]
GAP = "SELECT extract(epoch FROM due_at - last_attempt_at)::float FROM deliveries"
MB = b"x" * 10_000_000


async def only(api: Api) -> dict[str, Any]:
    """The only delivery."""
    (row,) = (await api.get("/deliveries")).json()["deliveries"]
    return dict(row)


async def settled(sql: Any, status: str, count: int = 1) -> None:
    """Return once so many deliveries have a state and nobody holds them."""
    query = "SELECT count(*) FROM deliveries WHERE status = $1 AND lease_until IS NULL AND attempts > 0"
    async with asyncio.timeout(15):
        while await sql.fetchval(query, status) < count:
            await asyncio.sleep(0.01)


async def step(dispatcher: Dispatcher) -> None:
    """Send what is due, to its end."""
    await dispatcher.step()
    await dispatcher.drain()


async def test_by_the_schedule_until_three_days_have_passed_then_dead_then_redriven(
    still: Api, told: Receiver, sql: Any
):
    told.answers = [reply(500, b"no")]
    dispatcher = Dispatcher(still.runtime)
    await still.decide(await still.asked(callback_url=told.url))
    for attempt, pause in enumerate(SCHEDULE, 1):
        await step(dispatcher)
        row = await only(still)
        assert (row["status"], row["attempts"], row["last_status"]) == ("pending", attempt, 500)
        assert 0.8 * pause - 0.1 <= await sql.fetchval(GAP) <= 1.2 * pause + 1
        await step(dispatcher)
        assert len(told.got) == attempt
        await sql.execute("UPDATE deliveries SET due_at = clock_timestamp()")
    await sql.execute("UPDATE deliveries SET told_at = told_at - interval '72 h'")
    await step(dispatcher)
    row = await only(still)
    assert (row["status"], row["last_error"]) == ("dead", "status 500")
    assert len({got.raw for got in told.got}) == len({got.headers["webhook-id"] for got in told.got}) == 1
    (dead,) = (await still.get("/deliveries", status="dead")).json()["deliveries"]
    told.answers = [reply(204, b"")]
    again = await still.post(f"/deliveries/{dead['delivery_id']}/redrive")
    assert (again.json()["status"], again.json()["attempts"]) == ("pending", 0)
    await step(dispatcher)
    assert (await only(still))["status"] == "delivered"
    refused = await still.post(f"/deliveries/{dead['delivery_id']}/redrive")
    assert problem(refused) == (409, "delivery_settled")
    assert problem(await still.post("/deliveries/dlv_none/redrive")) == (404, "delivery_not_found")
    types = {row["type"] for row in await sql.fetch("SELECT type FROM history")}
    assert {"delivery.dead", "delivery.redriven", "delivery.delivered"} <= types


async def test_the_first_try_again_comes_after_a_second_by_itself(api: Api, told: Receiver, sql: Any):
    told.answers = [reply(503), reply(200)]
    await api.decide(await api.asked(callback_url=told.url))
    first, second = await told.wait_for(2)
    assert 0.7 < second.at - first.at < 4
    await settled(sql, DeliveryStatus.DELIVERED)


async def test_not_resolved_is_not_delivered(still: Api, told: Receiver):
    dispatcher = Dispatcher(still.runtime)
    bodies = {b'{"resolved": false}': "pending", b'{"status": "received", "resolved": true}': "delivered"}
    bodies |= {b"": "delivered", b"not json": "delivered", b'["error", 500]': "delivered", b"[" * 9000: "delivered"}
    for number, (body, status) in enumerate(bodies.items()):
        told.answers = [reply(200, body)]
        await still.decide(await still.asked("q", f"run-{number}", callback_url=told.url))
        await step(dispatcher)
        newest = (await still.get("/deliveries", limit=1)).json()["deliveries"][0]
        assert newest["status"] == status, body


async def test_each_kind_of_trouble_ends_within_its_deadline(still: Api, told: Receiver, sql: Any):
    released = asyncio.Event()
    async with (
        receiver() as hanging,
        receiver() as dripping,
        receiver() as huge,
        receiver() as moved,
        receiver() as gone,
    ):
        hanging.answers, dripping.answers, huge.answers = [hang(released)], [drip(released)], [reply(200, MB)]
        moved.answers = [reply(301, b"", f"Location: {told.url}")]
        gone.answers = [reply(410)]
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            urls = {
                "hanging": hanging.url,
                "dripping": dripping.url,
                "huge": huge.url,
                "moved": moved.url,
                "gone": gone.url,
                "refused": f"http://127.0.0.1:{closed.getsockname()[1]}/",
                "nameless": "http://no-such-name.invalid/",
            }
            for name, url in urls.items():
                await still.decide(await still.asked("q", name, callback_url=url))
            begun = asyncio.get_running_loop().time()
            await step(Dispatcher(still.runtime))
            assert asyncio.get_running_loop().time() - begun < 8
        released.set()
    rows = {row["execution_id"]: row for row in (await still.get("/deliveries")).json()["deliveries"]}
    assert {name: row["status"] for name, row in rows.items()} == {
        "hanging": "pending",
        "dripping": "pending",
        "huge": "delivered",
        "moved": "pending",
        "gone": "dead",
        "refused": "pending",
        "nameless": "pending",
    }
    assert rows["moved"]["last_status"] == 301
    assert all(rows[name]["last_error"] for name in urls if name != "huge")
    assert told.got == []


async def test_a_slow_receiver_delays_nobody_and_gets_four_at_a_time(api: Api, told: Receiver, sql: Any):
    released = asyncio.Event()
    async with receiver() as slow:
        slow.answers = [hang(released)]
        slow_ones = [await api.asked("q", f"slow-{number}", callback_url=slow.url) for number in range(12)]
        quick_ones = [await api.asked("q", f"quick-{number}", callback_url=told.url) for number in range(12)]
        for approval in slow_ones:
            await api.decide(approval)
        await slow.wait_for(4)
        begun = asyncio.get_running_loop().time()
        for approval in quick_ones:
            await api.decide(approval)
        await told.wait_for(12)
        assert asyncio.get_running_loop().time() - begun < 4
        assert (slow.most_open, len(slow.got)) == (4, 4)
        released.set()
        await settled(sql, DeliveryStatus.DELIVERED, 24)
        assert slow.most_open == 4


async def test_a_try_that_hangs_cannot_settle_what_was_told_elsewhere(still: Api, told: Receiver, sql: Any):
    released = asyncio.Event()
    dispatcher, other = Dispatcher(still.runtime), Dispatcher(still.runtime)
    async with receiver() as old:
        old.answers = [hang(released, reply(410))]
        approval = await still.asked(callback_url=old.url)
        await still.decide(approval)
        await dispatcher.step()
        await old.wait_for(1)
        moved = await still.post(f"/approvals/{approval}/callback", {"callback_url": told.url})
        assert moved.status_code == 200
        await sql.execute("UPDATE deliveries SET due_at = clock_timestamp()")
        await step(other)
        released.set()
        await dispatcher.drain()
    row = await only(still)
    assert (row["status"], row["url"], len(told.got)) == ("delivered", told.url, 1)
    assert {got.headers["webhook-id"] for got in [*old.got, *told.got]} == {row["delivery_id"]}
    assert await sql.fetchval("SELECT count(*) FROM history WHERE type = 'delivery.dead'") == 0


async def test_asking_again_tells_again_at_most_once_a_second(api: Api, told: Receiver, sql: Any):
    approval = await api.asked(callback_url=told.url)
    await api.decide(approval)
    await told.wait_for(1)
    await settled(sql, DeliveryStatus.DELIVERED)
    for _ in range(5):
        assert (await api.ask(callback_url=told.url))["status"] == "approved"
    first, second = await told.wait_for(2)
    assert second.at - first.at > 0.9
    await settled(sql, DeliveryStatus.DELIVERED)
    assert len(told.got) == 2


async def test_a_round_is_told_from_its_first_byte_until_that_try_fails(still: Api, told: Receiver):
    released = asyncio.Event()
    dispatcher = Dispatcher(still.runtime)
    told.answers = [hang(released, reply(500))]
    for execution in ("run-1", "run-2"):
        await still.decide(await still.asked("q", execution, callback_url=told.url), "request_changes")
    await dispatcher.step()
    await told.wait_for(2)
    assert (await still.ask("q", "run-1", callback_url=told.url))["round"] == 2
    released.set()
    await dispatcher.drain()
    again = await still.ask("q", "run-2", callback_url=told.url)
    assert (again["round"], again["status"]) == (1, "request_changes")


async def test_what_a_dead_process_had_claimed_is_sent_when_its_lease_is_over(still: Api, told: Receiver, sql: Any):
    await still.decide(await still.asked(callback_url=told.url))
    claim = "UPDATE deliveries SET fence = 1, attempts = 1, lease_until = clock_timestamp() + interval '15 s'"
    await sql.execute(claim)
    dispatcher = Dispatcher(still.runtime)
    await step(dispatcher)
    assert told.got == []
    await sql.execute("UPDATE deliveries SET lease_until = clock_timestamp()")
    await step(dispatcher)
    assert len(told.got) == 1
    assert (await only(still))["status"] == "delivered"


async def test_a_receiver_that_was_told_before_the_crash_is_told_the_same_again(
    database: Database, told: Receiver, sql: Any
):
    async with in_process(database) as dying:
        await dying.decide(await dying.asked(callback_url=told.url))
        await step(Dispatcher(dying.runtime))
    await sql.execute("UPDATE deliveries SET status = 'pending', settled_at = NULL, lease_until = clock_timestamp()")
    async with in_process(database, workers=True):
        first, second = await told.wait_for(2)
        assert (first.raw, first.headers["webhook-id"]) == (second.raw, second.headers["webhook-id"])
        await settled(sql, DeliveryStatus.DELIVERED)


async def test_an_execution_that_ended_needs_no_telling(still: Api, told: Receiver, sql: Any):
    told.answers = [reply(500)]
    await still.decide(await still.asked(callback_url=told.url))
    dispatcher = Dispatcher(still.runtime)
    await step(dispatcher)
    await still.post("/executions/run-1/status", {"status": "succeeded"})
    await sql.execute("UPDATE deliveries SET due_at = clock_timestamp()")
    await step(dispatcher)
    assert (await only(still))["status"] == "obsolete"
    assert len(told.got) == 1


async def test_a_stop_lets_what_is_being_sent_arrive_and_be_settled(database: Database, told: Receiver, sql: Any):
    released = asyncio.Event()
    told.answers = [hang(released)]
    async with in_process(database, workers=True) as api:
        await api.decide(await api.asked(callback_url=told.url))
        await told.wait_for(1)
        asyncio.get_running_loop().call_later(0.1, released.set)
    assert await sql.fetchval("SELECT status FROM deliveries") == "delivered"
