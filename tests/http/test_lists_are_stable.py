import asyncio
from typing import Any

from tests.app import Api, in_process
from tests.keys import make_keys, sent
from tests.postgres import Database
from tests.receiver import receiver


async def pages(api: Api, path: str, name: str, **query: Any) -> list[list[dict[str, Any]]]:
    """Every page of a list, each asked for with the cursor of the one before."""
    found: list[list[dict[str, Any]]] = []
    cursor: dict[str, str] = {}
    while True:
        reply = await api.get(path, **query, **cursor)
        assert reply.status_code == 200, reply.text
        found.append(reply.json()[name])
        if reply.json()["next_cursor"] is None:
            return found
        cursor = {"cursor": reply.json()["next_cursor"]}


async def asked(api: Api, count: int, **fields: Any) -> list[str]:
    """So many pending approvals of as many runs, oldest first."""
    return [await api.asked(f"q-{number}", f"run-{number}", **fields) for number in range(count)]


async def test_pages_hold_every_row_once_newest_first(api: Api):
    approvals = await asked(api, 7)
    found = await pages(api, "/approvals", "approvals", limit=3)
    assert [len(page) for page in found] == [3, 3, 1]
    assert [row["approval_id"] for page in found for row in page] == approvals[::-1]
    assert [len(page) for page in await pages(api, "/approvals", "approvals", limit=7)] == [7]
    assert len((await api.get("/approvals", limit=200)).json()["approvals"]) == 7


async def test_rows_that_come_and_are_decided_shift_no_page(api: Api):
    approvals = await asked(api, 6)
    first = (await api.get("/approvals", limit=2, status="pending")).json()
    await api.asked("q-new", "run-new")
    for decided in (approvals[5], approvals[2]):
        await api.decide(decided)
    second = (await api.get("/approvals", limit=2, status="pending", cursor=first["next_cursor"])).json()
    third = (await api.get("/approvals", limit=2, status="pending", cursor=second["next_cursor"])).json()
    shown = [row["approval_id"] for page in (first, second, third) for row in page["approvals"]]
    assert shown == [approvals[number] for number in (5, 4, 3, 1, 0)]
    assert third["next_cursor"] is None


async def test_rows_of_one_moment_are_told_apart(api: Api, sql: Any):
    approvals = await asked(api, 5)
    await sql.execute("UPDATE approvals SET requested_at = '2026-01-01T00:00:00.123456Z'")
    found = await pages(api, "/approvals", "approvals", limit=2)
    assert [row["approval_id"] for page in found for row in page] == approvals[::-1]


async def test_by_deadline_the_soonest_is_first(api: Api):
    hours = [5, 1, 3, 2, 4]
    for number, each in enumerate(hours):
        await api.asked(f"q-{number}", f"run-{number}", expires_in_hours=each)
    found = await pages(api, "/approvals", "approvals", limit=2, order="deadline", status="pending")
    assert [row["execution_id"] for page in found for row in page] == ["run-1", "run-3", "run-2", "run-4", "run-0"]


async def test_filters_name_what_is_shown(api: Api):
    approvals = await asked(api, 3)
    await api.start("other", "node-2")
    other = (await api.ask("q-0", "other", title="Pay 100% of it_"))["approval_id"]
    await api.decide(approvals[0])
    expected = {
        ("status", "approved"): {approvals[0]},
        ("node_id", "node-2"): {other},
        ("execution_id", "run-1"): {approvals[1]},
        ("approval_request_id", "q-0"): {approvals[0], other},
        ("q", "RUN-2"): {approvals[2]},
        ("q", "100% of"): {other},
        ("q", "of it_"): {other},
        ("q", "%"): {other},
        ("q", "_"): {other, *approvals},
        ("q", other): {other},
        ("q", ""): {other, *approvals},
        ("q", "nothing"): set(),
    }
    for (name, value), wanted in expected.items():
        shown = (await api.get("/approvals", **{name: value})).json()["approvals"]
        assert {row["approval_id"] for row in shown} == wanted, (name, value)
    both = await api.get("/approvals", status="pending", approval_request_id="q-0")
    assert [row["approval_id"] for row in both.json()["approvals"]] == [other]


async def test_an_approval_is_shown_whole_without_its_callback(api: Api):
    approval = await api.asked(
        title="T", description="D", payload={"a": 1.10}, callback_url="http://127.0.0.1:9/", callback_secret="s" * 20
    )
    reply = await api.get(f"/approvals/{approval}")
    shown = reply.json()
    assert (shown["title"], shown["description"], shown["payload"]) == ("T", "D", {"a": 1.10})
    assert len(shown["payload_digest"]) == 64
    assert shown["request_url"] == f"http://127.0.0.1/inbox/{approval}"
    assert "callback" not in reply.text.replace("callback_changed", "")
    assert "s" * 20 not in reply.text
    assert shown["history"][0]["type"] == "approval.requested"


async def test_links_echo_no_stranger_s_host(database: Database):
    async with in_process(database) as api:
        path = f"/api/v1/approvals/{await api.asked()}"
    key = sent((await asyncio.to_thread(make_keys, database)).review)
    async with in_process(database, open_mode=False) as api:
        reply = await api.client.get(path, headers=key | {"Host": "evil.example"})
        assert reply.json()["request_url"] is None
    async with in_process(database, open_mode=False, public_url="https://approvals.example") as api:
        shown = (await api.client.get(path, headers=key)).json()
        approval = shown["approval_id"]
        assert shown["request_url"] == f"https://approvals.example/inbox/{approval}"


async def test_runs_deliveries_and_early_answers_are_paged_too(database: Database, sql: Any):
    async with receiver() as told, in_process(database) as api:
        for number, approval in enumerate(await asked(api, 5, callback_url=told.url)):
            await api.decide(approval)
            await api.webhook({"requestId": f"early-{number}", "decision": "approved"})
        for path, name, key in (
            ("/executions", "executions", "execution_id"),
            ("/deliveries", "deliveries", "execution_id"),
            ("/parked", "parked", "approval_request_id"),
        ):
            found = await pages(api, path, name, limit=2)
            assert [len(page) for page in found] == [2, 2, 1]
            prefix = "early" if name == "parked" else "run"
            assert [row[key] for page in found for row in page] == [f"{prefix}-{number}" for number in (4, 3, 2, 1, 0)]
        await sql.execute("UPDATE executions SET updated_at = now() - interval '25 h' WHERE execution_id = 'run-3'")
        stale = (await api.get("/executions", stale=True)).json()["executions"]
        assert [row["execution_id"] for row in stale] == ["run-3"]
        assert (await api.get("/executions", node_id="nobody")).json()["executions"] == []
        assert len((await api.get("/deliveries", status="pending")).json()["deliveries"]) == 5
