import json
from typing import Any

import httpx
import pytest

from tests.app import Api, problem
from tests.http.refusals import faults, send

STEPS = "/executions/run-1/steps"
MIB = 1024 * 1024
FALSY = [b"null", b"false", b"0", b"-0", b"0.0", b'""', b"[]", b"{}"]
SPELLED = [b'{"b" : 1.0,"a":1e2 , "a\\u00e9": "\\/"}', b"[1.10, 12345678901234567890123]"]


def step(name: str = "s", result: Any = 1, **fields: Any) -> dict[str, Any]:
    return {"name": name, "occurrence": 1, "previous": "", "result": result, **fields}


async def under(api: Api, fence: str, body: dict[str, Any]) -> httpx.Response:
    return await api.client.post(f"/api/v1{STEPS}", json=body, headers={"X-Holdshort-Fence": fence})


async def give(sql: Any, fence: int) -> None:
    """Have the runs in the hands of an instance that knows fences."""
    await sql.execute("UPDATE executions SET dispatched = true, fenced = true, fence = $1", fence)


async def test_a_step_is_201_and_again_200_with_what_is_kept(api: Api):
    await api.start()
    first, again = [await api.post(STEPS, step(result=result)) for result in ({"a": 1.10}, "another")]
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    kept = first.json()
    assert kept.pop("at").endswith("Z")
    assert kept == {"name": "s", "occurrence": 1, "position": 1, "previous": "", "result": {"a": 1.10}}
    assert (await api.get(STEPS)).json() == {"steps": [first.json()], "next_after": None}


async def test_no_previous_is_null(api: Api):
    await api.start()
    body = step()
    del body["previous"]
    assert (await api.post(STEPS, body)).json()["previous"] is None
    assert (await api.post(STEPS, step(previous=None))).status_code == 200
    assert problem(await api.post(STEPS, step())) == (409, "step_mismatch")


async def test_results_leave_as_the_bytes_that_came(api: Api):
    await api.start()
    for number, result in enumerate(FALSY + SPELLED, 1):
        reply = await send(api, STEPS, b'{"name": "s", "occurrence": %d, "result":  %s  }' % (number, result))
        assert reply.status_code == 201
        assert b'"result":%s,"at"' % result in reply.content
    listed = (await api.get(STEPS)).content
    assert [listed.count(b'"result":%s,"at"' % result) for result in FALSY + SPELLED] == [1] * 10


async def test_names_have_their_whole_length(api: Api):
    await api.start()
    longest = step("\U0001f680" * 200, occurrence=2**31 - 1, previous="\n" * 256)
    kept = (await api.post(STEPS, longest)).json()
    assert {name: kept[name] for name in longest} == longest


async def test_a_result_may_have_a_mebibyte_and_not_a_byte_more(api: Api):
    await api.start()
    for number, (size, expected) in enumerate([(MIB, 201), (MIB + 1, 413)], 1):
        result = b'"%s"' % (b"x" * (size - 2))
        reply = await send(api, STEPS, b'{"name": "s", "occurrence": %d, "result": %s }' % (number, result))
        assert reply.status_code == expected
    assert problem(reply) == (413, "step_too_large")
    assert reply.json()["limit_bytes"] == MIB
    (kept,) = (await api.get(STEPS)).json()["steps"]
    assert (kept["occurrence"], len(kept["result"])) == (1, MIB - 2)


async def test_a_body_may_have_eight_mebibytes_and_not_a_byte_more(api: Api):
    await api.start()
    for more, expected in ((0, (413, "step_too_large")), (1, (413, "body_too_large"))):
        head, tail = b'{"name": "s", "occurrence": 1, "result": "', b'"}'
        raw = head + b"x" * (8 * MIB - len(head) - len(tail) + more) + tail
        assert problem(await send(api, STEPS, raw)) == expected


async def test_a_step_is_refused_with_what_stands(api: Api):
    await api.start()
    assert problem(await api.post("/executions/none/steps", step())) == (404, "execution_not_found")
    await api.post(STEPS, step())
    reply = await api.post(STEPS, step(previous="other"))
    assert problem(reply) == (409, "step_mismatch")
    document = reply.json()
    assert (document["name"], document["occurrence"], document["previous"]) == ("s", 1, "")
    await api.post("/executions/run-1/status", {"status": "succeeded"})
    reply = await api.post(STEPS, step("t"))
    assert problem(reply) == (409, "invalid_state")
    assert (reply.json()["execution_status"], reply.json()["status_reason"]) == ("succeeded", "execution_finished")
    assert len((await api.get(STEPS)).json()["steps"]) == 1


async def test_only_the_present_dispatch_keeps_steps(api: Api, sql: Any):
    await api.start()
    await give(sql, 7)
    for reply in (await api.post(STEPS, step()), await under(api, "6", step()), await under(api, "8", step())):
        assert problem(reply) == (409, "stale_instance")
        assert reply.json()["fence"] == 7
    assert (await under(api, "7", step())).status_code == 201


async def test_the_largest_fence_is_read_whole(api: Api, sql: Any):
    await api.start()
    await give(sql, 2**63 - 1)
    assert problem(await under(api, str(2**63 - 2), step())) == (409, "stale_instance")
    assert (await under(api, str(2**63 - 1), step())).status_code == 201


@pytest.mark.parametrize("fence", ["", " ", "-1", "+1", "1.0", "1e0", "0x1", "1, 1", "x", str(2**63), "9" * 400])
async def test_a_fence_that_is_no_number_is_422(api: Api, fence: str):
    await api.start()
    reply = await under(api, fence, step())
    assert (reply.status_code, faults(reply)) == (
        422,
        [{"field": "X-Holdshort-Fence", "rule": "must be a whole number"}],
    )


async def test_a_fence_sent_twice_is_422(api: Api):
    await api.start()
    headers = [("X-Holdshort-Fence", "0"), ("X-Holdshort-Fence", "0")]
    reply = await api.client.post(f"/api/v1{STEPS}", json=step(), headers=headers)
    assert (reply.status_code, faults(reply)[0]["field"]) == (422, "X-Holdshort-Fence")


async def test_steps_are_paged_in_the_order_they_were_done(api: Api):
    await api.start()
    for number in range(5):
        await api.post(STEPS, step(f"s{9 - number}", number))
    pages, after = [], 0
    while after is not None:
        page = (await api.get(STEPS, after=after, limit=2)).json()
        pages.append([(each["position"], each["name"], each["result"]) for each in page["steps"]])
        after = page["next_after"]
    assert pages == [[(1, "s9", 0), (2, "s8", 1)], [(3, "s7", 2), (4, "s6", 3)], [(5, "s5", 4)]]
    assert (await api.get(STEPS, after=5)).json() == {"steps": [], "next_after": None}
    assert problem(await api.get("/executions/none/steps")) == (404, "execution_not_found")


async def test_a_page_has_two_hundred_steps_and_four_mebibytes_at_most(api: Api, sql: Any):
    await api.start()
    await sql.execute(
        "INSERT INTO steps (execution_id, name, occurrence, position, result)"
        " SELECT 'run-1', 's', n, n, '1' FROM generate_series(1, 201) n"
    )
    page = (await api.get(STEPS)).json()
    assert (len(page["steps"]), page["next_after"]) == (200, 200)
    big = json.dumps("x" * (MIB - 2))
    await sql.execute("UPDATE steps SET result = CAST($1 AS json) WHERE position <= 5", big)
    page = (await api.get(STEPS)).json()
    assert (len(page["steps"]), page["next_after"]) == (4, 4)


async def test_looking_at_steps_waits_for_nobody(api: Api, sql: Any):
    await api.start()
    await api.post(STEPS, step())
    async with sql.transaction():
        await sql.execute("SELECT 1 FROM executions FOR UPDATE")
        assert len((await api.get(STEPS)).json()["steps"]) == 1
