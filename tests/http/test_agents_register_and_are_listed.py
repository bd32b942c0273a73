"""Agents register, give signs of life and go, ours and those of others; callers see who is there."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.app import Api, problem
from tests.http.refusals import faults, send

HERE = "http://127.0.0.1:9001"
OURS = {
    "node_id": "reviewer",
    "instance_id": "i1",
    "base_url": HERE + "/",
    "version": "1.0.0",
    "reasoners": [
        {"name": "review", "timeout_seconds": 1.5, "resume": "at_start", "input_schema": {"type": "object"}},
        {"name": "sum"},
    ],
    "features": {"replay": True, "fence": True},
    "max_concurrent": 8,
}
# As programs of other products send it: ids under other names, null for nothing, and much that is not ours.
OTHERS: dict[str, Any] = {
    "id": "reviewer",
    "team_id": "default",
    "base_url": HERE,
    "version": "0.1.0",
    "reasoners": [
        {
            "id": "review",
            "input_schema": {"type": "object", "properties": {"document": {"type": "string"}}},
            "output_schema": {},
            "memory_config": None,
            "name": "A name, for people",
            "tags": None,
        }
    ],
    "skills": [{"id": "add", "input_schema": {}, "tags": []}, {"id": "review", "input_schema": None}],
    "proposed_tags": [],
    "instance_id": "",
    "communication_config": {"protocols": ["http"], "websocket_endpoint": "", "heartbeat_interval": "5s"},
    "health_status": "healthy",
    "lifecycle_status": "starting",
    "last_heartbeat": "2026-01-01T00:00:00.000000Z",
    "registered_at": "0001-01-01T00:00:00Z",
    "features": {"ab_testing": False, "compliance": False, "experimental": {}},
    "metadata": {"deployment": {"tags": {"language": "python"}}, "custom": {"replay": "yes"}},
    "callback_discovery": {"mode": "python-sdk", "callback_candidates": [HERE]},
}


async def register(api: Api, body: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    reply = await api.post("/nodes/register", (OURS if body is None else body) | changes)
    assert reply.status_code == 201, reply.text
    return dict(reply.json())


async def only_node(api: Api) -> dict[str, Any]:
    (node,) = (await api.get("/nodes")).json()["nodes"]
    return dict(node)


async def instances(api: Api, node_id: str = "reviewer") -> dict[str, str]:
    node = (await api.get(f"/nodes/{node_id}")).json()
    return {each["instance_id"]: each["status"] for each in node["instances"]}


async def patch(api: Api, path: str, body: Any = None) -> Any:
    return await api.client.patch(f"/api/v1{path}", json={} if body is None else body)


async def test_one_of_ours_is_told_its_lease_and_listed(api: Api):
    assert await register(api) == {
        "success": True,
        "message": "registered",
        "node_id": "reviewer",
        "instance_id": "i1",
        "lease_seconds": 15,
        "heartbeat_seconds": 5.0,
    }
    node = await only_node(api)
    (instance,) = node.pop("instances")
    moments = {name: node.pop(name) for name in ("registered_at", "updated_at")}
    assert node == {
        "node_id": "reviewer",
        "version": "1.0.0",
        "max_concurrent": 8,
        "owner": None,
        "reasoners": [
            {"name": "review", "timeout_seconds": 1.5, "resume": "at_start"},
            {"name": "sum", "timeout_seconds": None, "resume": "when_decided"},
        ],
    }
    moments |= {name: instance.pop(name) for name in ("lease_until", "registered_at", "seen_at")}
    assert all(datetime.fromisoformat(each).tzinfo is not None for each in moments.values())
    assert instance == {
        "instance_id": "i1",
        "base_url": HERE,
        "version": "1.0.0",
        "status": "live",
        "reasoners": ["review", "sum"],
        "replay": True,
        "fence": True,
        "lease_seconds": 15.0,
        "gone_at": None,
        "gone_reason": None,
    }
    detail = (await api.get("/nodes/reviewer")).json()
    assert [each["input_schema"] for each in detail["reasoners"]] == [{"type": "object"}, None]


async def test_one_of_others_is_taken_as_it_comes(api: Api):
    told = await register(api, OTHERS)
    assert (told["node_id"], told["lease_seconds"], told["heartbeat_seconds"]) == ("reviewer", 90, 30.0)
    assert told["instance_id"].startswith("inst_")
    assert "resolved_base_url" not in told
    node = await only_node(api)
    assert [each["name"] for each in node["reasoners"]] == ["review", "add"]
    (instance,) = node["instances"]
    assert (instance["instance_id"], instance["replay"], instance["fence"]) == (told["instance_id"], False, False)


NULLS = ["version", "reasoners", "skills", "features", "instance_id", "lease_seconds", "max_concurrent", "node_id"]


async def test_null_is_nothing(api: Api):
    await register(api, {"id": "reviewer", "base_url": HERE} | dict.fromkeys(NULLS))
    node = await only_node(api)
    assert (node["version"], node["reasoners"], node["max_concurrent"]) == ("", [], None)
    assert (await register(api, OURS, features={"replay": None, "fence": None}))["lease_seconds"] == 90


async def test_a_program_may_name_its_own_lease(api: Api):
    told = await register(api, lease_seconds=2.5)
    assert (told["lease_seconds"], told["heartbeat_seconds"]) == (2, pytest.approx(2.5 / 3))
    assert (await register(api, OTHERS, lease_seconds=3600))["lease_seconds"] == 3600


async def test_both_names_of_a_node_must_be_one(api: Api):
    assert (await register(api, id="reviewer"))["node_id"] == "reviewer"
    reply = await api.post("/nodes/register", OURS | {"id": "other"})
    assert (reply.status_code, [each["field"] for each in faults(reply)]) == (422, ["id"])


async def test_without_an_id_each_registration_is_an_instance(api: Api):
    first, second = [await register(api, OTHERS, base_url=f"{HERE}{path}") for path in ("/a", "/b")]
    assert await instances(api) == {first["instance_id"]: "live", second["instance_id"]: "live"}
    third = await register(api, OTHERS, base_url=HERE + "/b")
    assert (await instances(api))[second["instance_id"]] == "gone"
    assert (await instances(api))[third["instance_id"]] == "live"


async def test_only_short_schemas_are_kept(api: Api):
    long, short = ({"x": "a" * size} for size in (16 * 1024, 16 * 1024 - 8))
    reasoners = [{"name": "long", "input_schema": long}, {"name": "odd", "input_schema": [1]}]
    reasoners += [{"name": f"r{number}", "input_schema": short} for number in range(20)]
    await register(api, reasoners=reasoners)
    detail = (await api.get("/nodes/reviewer")).json()
    kept = [each["name"] for each in detail["reasoners"] if each["input_schema"] is not None]
    assert kept == [f"r{number}" for number in range(16)]
    assert len(detail["reasoners"]) == 22


async def test_a_body_of_8_mib_is_taken_and_a_byte_more_is_not(api: Api):
    good = b'{"id": "n", "base_url": "http://127.0.0.1:9", "metadata": "%s"}'
    room = 8 * 1024 * 1024 - len(good) + 2
    reply = await send(api, "/nodes/register", good % (b"x" * room))
    assert reply.status_code == 201, reply.text[:200]
    reply = await send(api, "/nodes/register", good % (b"x" * (room + 1)))
    assert problem(reply) == (413, "body_too_large")


async def test_a_sign_of_life_is_answered(api: Api):
    await register(api)
    before = datetime.now(UTC)
    for body in ({"instance_id": "i1", "status": "ready", "timestamp": "now", "version": "1"}, {"status": "odd"}, {}):
        told = (await api.post("/nodes/reviewer/heartbeat", body)).json()
        assert (told["success"], told["lease_seconds"]) == (True, 15)
        assert abs(datetime.fromisoformat(told["timestamp"]) - before) < timedelta(minutes=1)
    bare = await api.client.post("/api/v1/nodes/reviewer/heartbeat", headers={"Content-Type": "application/json"})
    assert bare.status_code == 200
    assert await instances(api) == {"i1": "live"}


async def test_who_is_unknown_or_gone_is_told_to_register_again(api: Api):
    for path, body in (("reviewer", {}), ("reviewer", {"instance_id": "i1"})):
        assert problem(await api.post(f"/nodes/{path}/heartbeat", body)) == (404, "node_not_found")
    await register(api)
    assert problem(await api.post("/nodes/reviewer/heartbeat", {"instance_id": "i2"})) == (404, "node_not_found")
    assert (await api.post("/nodes/reviewer/shutdown", {"instance_id": "i1"})).status_code == 202
    for body in ({"instance_id": "i1"}, {}, {"instance_id": ""}):
        assert problem(await api.post("/nodes/reviewer/heartbeat", body)) == (404, "node_not_found")
        assert problem(await patch(api, "/nodes/reviewer/status", body)) == (404, "node_not_found")
    await register(api)
    assert await instances(api) == {"i1": "live"}


async def test_a_draining_one_is_there_and_shown_as_such(api: Api):
    await register(api)
    await api.post("/nodes/reviewer/heartbeat", {"instance_id": "i1", "status": "draining"})
    assert await instances(api) == {"i1": "draining"}
    await patch(api, "/nodes/reviewer/status", {"phase": "ready"})
    assert await instances(api) == {"i1": "live"}
    await patch(api, "/nodes/reviewer/status", {"phase": "draining"})
    assert await instances(api) == {"i1": "draining"}


async def test_who_says_so_every_few_minutes_has_a_lease_of_300_s(api: Api):
    await register(api, OTHERS)
    reply = await patch(api, "/nodes/reviewer/status", {"phase": "ready", "health_score": 100})
    told = reply.json()
    assert (reply.status_code, told["lease_seconds"]) == (200, 300)
    due = datetime.fromisoformat(told["next_lease_renewal"]) - datetime.now(UTC)
    assert timedelta(seconds=30) < due < timedelta(seconds=200)
    (instance,) = (await only_node(api))["instances"]
    assert instance["lease_seconds"] == 300.0
    bad = await patch(api, "/nodes/reviewer/status", {"phase": 1})
    assert (bad.status_code, [each["field"] for each in faults(bad)]) == (422, ["phase"])


async def test_who_goes_is_gone_at_once_and_still_shown_by_name(api: Api):
    await register(api)
    await register(api, instance_id="i2", base_url=HERE + "/2")
    reply = await api.client.post("/api/v1/nodes/reviewer/shutdown")
    assert (reply.status_code, reply.json()["success"]) == (202, True)
    assert [each["instance_id"] for each in (await only_node(api))["instances"]] == ["i2"]
    assert await instances(api) == {"i2": "live", "i1": "gone"}
    detail = (await api.get("/nodes/reviewer")).json()
    (gone,) = [each for each in detail["instances"] if each["status"] == "gone"]
    assert gone["gone_reason"] == "shutdown"
    assert gone["gone_at"] is not None
    assert problem(await api.post("/nodes/reviewer/shutdown", {"instance_id": "i3"})) == (404, "node_not_found")


async def test_an_unknown_node_is_named_with_those_that_are_known(api: Api):
    await register(api)
    await register(api, node_id="writer", instance_id="w1")
    reply = await api.get("/nodes/nobody")
    assert problem(reply) == (404, "node_not_found")
    assert reply.json()["registered"] == ["reviewer", "writer"]


async def test_pages_of_nodes_hold_each_once(api: Api):
    for number in range(5):
        await register(api, node_id=f"n{number}", instance_id=f"i{number}", base_url=f"{HERE}/{number}")
    await register(api, node_id="n0", instance_id="i0", base_url=f"{HERE}/0")
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = (await api.get("/nodes", limit=2, **cursor)).json()
        found += [node["node_id"] for node in page["nodes"]]
        assert all(len(node["instances"]) == 1 for node in page["nodes"])
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert found == ["n4", "n3", "n2", "n1", "n0"]


async def test_the_instance_of_another_node_is_not_taken_over(api: Api):
    await register(api)
    reply = await api.post("/nodes/register", OURS | {"node_id": "writer"})
    assert (reply.status_code, [each["field"] for each in faults(reply)]) == (422, ["instance_id"])
    assert [node["node_id"] for node in (await api.get("/nodes")).json()["nodes"]] == ["reviewer"]


async def test_what_rests_is_shown_so(api: Api):
    await register(api)
    await api.start("run-1", "reviewer")
    asked = await api.ask("q-1", "run-1", callback_url=HERE + "/cb")
    await api.decide(asked["approval_id"])
    await api.post("/nodes/reviewer/shutdown")
    (shown,) = (await api.get("/deliveries", status="pending")).json()["deliveries"]
    assert (shown["approval_id"], shown["resting"]) == (asked["approval_id"], True)
    again = await api.post(f"/deliveries/{shown['delivery_id']}/redrive")
    assert (again.json()["status"], again.json()["resting"]) == ("pending", False)
