import asyncio
import os
import signal

import pytest
from mcp import MCPError

from tests.cli.processes import run
from tests.mcp.clients import found, over_http, over_stdio, process_of, refusal, text_of
from tests.mcp.conftest import Plane


async def test_it_asks_goes_on_and_gets_the_decision(plane: Plane, tools: str):
    async with over_http(tools) as client:
        asked = found(await client.call_tool("request_approval", {"title": "Pay?", "payload": {"amount": 12}}))
        assert (asked["status"], asked["approved"], asked["answered"]) == ("pending", False, False)
        assert asked["url"].endswith(f"/inbox/{asked['approval_id']}")
        assert "wait_for_approval" in asked["next_step"]
        waiting = found(
            await client.call_tool("wait_for_approval", {"approval_id": asked["approval_id"], "timeout_seconds": 0})
        )
        assert waiting["status"] == "pending"
        plane.decide(asked["approval_id"], "approved", feedback="Go.")
        result = await client.call_tool("wait_for_approval", {"approval_id": asked["approval_id"]})
    decided = found(result)
    assert (decided["status"], decided["approved"], decided["feedback"]) == ("approved", True, "Go.")
    assert '"status": "approved"' in text_of(result)
    assert plane.seen("executions", decided["execution_id"])["status"] == "succeeded"


async def test_a_wait_shows_progress_and_ends_with_the_decision(plane: Plane, tools: str):
    beats: list[float] = []
    seen = asyncio.Event()

    async def beat(progress: float, total: float | None, message: str | None) -> None:
        assert (total, message) == (50, "waiting for a person")
        beats.append(progress)
        seen.set()

    async with over_http(tools) as client:
        asked = found(await client.call_tool("request_approval", {"title": "Pay?"}))
        which = {"approval_id": asked["approval_id"]}
        waiting = asyncio.create_task(client.call_tool("wait_for_approval", which, progress_callback=beat))
        await asyncio.wait_for(seen.wait(), 20)
        plane.decide(asked["approval_id"], "rejected", feedback="Not now.")
        decided = found(await waiting)
    assert beats
    assert (decided["status"], decided["approved"], decided["feedback"]) == ("rejected", False, "Not now.")


async def test_what_a_killed_server_waited_for_the_next_one_goes_on_with(plane: Plane):
    node = "killed-node"
    async with over_stdio(plane.url, plane.keys.agent, "--node", node) as client:
        asked = found(await client.call_tool("request_approval", {"title": "Pay?"}))
        which = {"approval_id": asked["approval_id"]}
        waiting = asyncio.create_task(client.call_tool("wait_for_approval", which))
        os.kill(process_of(node), signal.SIGKILL)
        with pytest.raises(MCPError, match="Connection closed"):
            await waiting
    plane.decide(asked["approval_id"], "approved")
    async with over_stdio(plane.url, plane.keys.agent, "--node", node, mode="legacy") as client:
        assert found(await client.call_tool("wait_for_approval", which))["approved"]


async def test_changes_are_a_round_of_the_same_question_and_a_rejection_ends_nothing_else(plane: Plane, tools: str):
    async with over_http(tools) as client:
        other = found(await client.call_tool("request_approval", {"title": "Something else?"}))
        first = {"title": "Pay?", "approval_request_id": "pay", "payload": {"amount": 12}}
        asked = found(await client.call_tool("request_approval", first))
        assert found(await client.call_tool("request_approval", first))["approval_id"] == asked["approval_id"]
        plane.decide(asked["approval_id"], "request_changes", feedback="Less.")
        second = {**first, "payload": {"amount": 11}}
        again = found(await client.call_tool("request_approval", second))
        assert (again["round"], again["status"], again["execution_id"]) == (2, "pending", asked["execution_id"])
        plane.decide(again["approval_id"], "rejected")
        assert found(await client.call_tool("request_approval", second))["status"] == "rejected"
        said = refusal(await client.call_tool("request_approval", {**second, "payload": {"amount": 10}}))
        assert "approval_request_conflict" in said
        assert "another one" in said
        anew = found(await client.call_tool("request_approval", {**second, "approval_request_id": "pay-less"}))
        assert anew["status"] == "pending"
        still = {"approval_id": other["approval_id"], "timeout_seconds": 0}
        assert found(await client.call_tool("wait_for_approval", still))["status"] == "pending"


async def test_another_session_never_finds_an_answer_that_was_not_its_own(plane: Plane, tools: str):
    asked = {"title": "Deploy?", "approval_request_id": "deploy"}
    async with over_http(tools) as client:
        first = found(await client.call_tool("request_approval", asked))
        plane.decide(first["approval_id"], "approved")
    async with over_http(tools) as client:
        second = found(await client.call_tool("request_approval", asked))
        assert (second["status"], second["approval_id"] != first["approval_id"]) == ("pending", True)
        resumed = {**asked, "execution_id": first["execution_id"]}
        assert found(await client.call_tool("request_approval", resumed))["approved"]


async def test_a_deadline_is_never_a_yes(plane: Plane, tools: str):
    async with over_http(tools) as client:
        asked = found(await client.call_tool("request_approval", {"title": "Pay?", "expires_in_hours": 1 / 3600}))
        ended = found(await client.call_tool("wait_for_approval", {"approval_id": asked["approval_id"]}))
    assert (ended["status"], ended["approved"]) == ("expired", False)
    assert "not an approval" in ended["next_step"]


BAD: list[tuple[str, dict[str, object], str]] = [
    ("request_approval", {}, "title"),
    ("request_approval", {"title": "x" * 201}, "title"),
    ("request_approval", {"title": "x", "expires_in_hours": 0}, "expires_in_hours"),
    ("request_approval", {"title": "x", "on_expiry": "approve"}, "on_expiry"),
    ("request_approval", {"title": "x", "execution_id": "../nodes"}, "execution_id"),
    ("request_approval", {"title": "x", "execution_id": ".."}, "execution_id"),
    ("wait_for_approval", {"approval_id": "apr_unknown"}, "approval_not_found"),
    ("wait_for_approval", {"approval_id": "../nodes"}, "approval_not_found"),
    ("wait_for_approval", {"approval_id": ".."}, "approval_not_found"),
    ("wait_for_approval", {"approval_id": "apr_unknown", "timeout_seconds": 601}, "0 to 600"),
]


async def test_bad_input_is_an_error_that_names_what_is_wrong(tools: str):
    async with over_http(tools) as client:
        for tool, arguments, said in BAD:
            assert said in refusal(await client.call_tool(tool, arguments)), arguments


async def test_a_control_plane_that_is_away_is_an_error_that_says_how_to_go_on():
    async with over_stdio("http://127.0.0.1:9", "") as client:
        said = refusal(await client.call_tool("wait_for_approval", {"approval_id": "apr_1"}))
        assert "cannot be reached" in said
        assert "apr_1 again" in said
        asked = {"title": "Pay?", "approval_request_id": "pay"}
        assert "same approval_request_id" in refusal(await client.call_tool("request_approval", asked))


async def test_the_newest_protocol_has_no_session_and_works_as_well(plane: Plane, tools: str):
    asked = {"title": "Pay?", "approval_request_id": "pay-it"}
    async with over_http(tools, mode="auto") as client:
        first = found(await client.call_tool("request_approval", asked))
        waiting = asyncio.create_task(client.call_tool("wait_for_approval", {"approval_id": first["approval_id"]}))
        plane.decide(first["approval_id"], "approved")
        assert found(await waiting)["approved"]
        assert found(await client.call_tool("request_approval", asked))["status"] == "pending"
        again = {**asked, "execution_id": first["execution_id"]}
        assert found(await client.call_tool("request_approval", again))["approved"]


def test_what_is_no_key_is_said_before_anything_starts(plane: Plane, tools: str):
    done = run("mcp", HOLDSHORT_URL=plane.url, HOLDSHORT_API_KEY="not-a-key")
    assert done.returncode == 2
    assert "holds no key" in done.stderr
