import asyncio
import os
import signal
from contextlib import suppress

import httpx
import pytest
from mcp import MCPError
from mcp.client.client import Client

from tests.mcp.clients import RIGHT, found, over_http, over_stdio, process_of, refusal, text_of
from tests.mcp.conftest import Plane

CODE = " 493 201 "


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_it_gets_the_bare_answer(plane: Plane, tools: str, mode: str):
    asked = {"message_for_user": "The code?", "unique_id": f"code-{mode}", "kind": "secret"}
    async with over_http(tools, mode=mode) as client:
        waiting = asyncio.create_task(client.call_tool("human_feedback", asked))
        assert (await plane.asked(f"code-{mode}"))["kind"] == "secret"
        await plane.answered(f"code-{mode}", CODE)
        result = await waiting
    assert text_of(result) == CODE
    assert found(result) == {"result": CODE}


async def test_a_choice_is_one_of_its_options_and_progress_is_shown(plane: Plane, tools: str):
    beats = asyncio.Event()

    async def beat(progress: float, total: float | None, message: str | None) -> None:
        beats.set()

    asked = {"message_for_user": "Where?", "unique_id": "where", "options": ["eu", "us"]}
    async with over_http(tools) as client:
        waiting = asyncio.create_task(client.call_tool("human_feedback", asked, progress_callback=beat))
        assert (await plane.asked("where"))["options"] == ["eu", "us"]
        await asyncio.wait_for(beats.wait(), 20)
        assert plane.submit("where", "asia").status_code == 422
        await plane.answered("where", "EU")
        assert text_of(await waiting) == "eu"


async def test_nobody_is_never_a_yes(tools: str):
    asked = {"message_for_user": "Go on?", "unique_id": "nobody", "kind": "yes_no", "timeout_seconds": 5}
    async with over_http(tools) as client:
        said = refusal(await client.call_tool("human_feedback", asked))
        assert "request_expired" in said
        assert "not a yes" in said
        assert "request_id_used" in refusal(await client.call_tool("human_feedback", asked))


async def cancelled(client: Client, plane: Plane, unique_id: str) -> None:
    asked = {"message_for_user": "The code?", "unique_id": unique_id}
    waiting = asyncio.create_task(client.call_tool("human_feedback", asked))
    await plane.asked(unique_id)
    waiting.cancel()
    with suppress(asyncio.CancelledError):
        await waiting
    await plane.withdrawn(unique_id)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_call_that_is_given_up_withdraws_its_question(plane: Plane, tools: str, mode: str):
    async with over_http(tools, mode=mode) as client:
        await cancelled(client, plane, f"given-up-{mode}")


async def test_a_caller_that_is_gone_without_a_word_withdraws_its_question(plane: Plane, tools: str):
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    called = {"name": "human_feedback", "arguments": {"message_for_user": "The code?", "unique_id": "gone"}}
    async with httpx.AsyncClient(headers=RIGHT, timeout=30) as http:
        greeted = await http.post(tools, json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
        session = {"mcp-session-id": greeted.headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}
        await http.post(tools, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=session)
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": called}
        async with http.stream("POST", tools, json=call, headers=session) as reply:
            assert reply.status_code == 200
            await plane.asked("gone")
        await plane.withdrawn("gone")


async def test_over_stdio_a_call_that_is_given_up_and_an_end_of_the_server_withdraw_it(plane: Plane):
    node = "feedback-node"
    async with over_stdio(plane.url, plane.keys.agent, "--node", node) as client:
        await cancelled(client, plane, "given-up-stdio")
        asked = {"message_for_user": "The code?", "unique_id": "killed"}
        waiting = asyncio.create_task(client.call_tool("human_feedback", asked))
        await plane.asked("killed")
        os.kill(process_of(node), signal.SIGKILL)
        with pytest.raises(MCPError, match="Connection closed"):
            await waiting
        await plane.withdrawn("killed")


async def test_the_same_id_twice_is_an_error_and_the_first_call_goes_on(plane: Plane, tools: str):
    asked = {"message_for_user": "The code?", "unique_id": "twice"}
    async with over_http(tools) as client:
        waiting = asyncio.create_task(client.call_tool("human_feedback", asked))
        await plane.asked("twice")
        said = refusal(await client.call_tool("human_feedback", asked))
        assert "duplicate_request" in said
        assert "another" in said
        await plane.answered("twice", "493201")
        assert text_of(await waiting) == "493201"


BAD: list[tuple[dict[str, object], str]] = [
    ({}, "message_for_user"),
    ({"message_for_user": "?", "timeout_seconds": 4}, "timeout_seconds"),
    ({"message_for_user": "?", "timeout_seconds": 1801}, "timeout_seconds"),
    ({"message_for_user": "?", "unique_id": "a b"}, "unique_id"),
    ({"message_for_user": "?", "options": ["a", "a"]}, "options"),
    ({"message_for_user": "?", "kind": "captcha"}, "kind"),
]


async def test_bad_input_is_an_error_that_names_what_is_wrong(tools: str):
    async with over_http(tools) as client:
        for arguments, said in BAD:
            assert said in refusal(await client.call_tool("human_feedback", arguments)), arguments
