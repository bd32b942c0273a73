"""The protocol's own client, in front of `holdshort mcp` as a process of its own."""

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from tests.cli.processes import running

STRICT = ("-W", "error", "-m", "controlplane.cli", "mcp")
TOKEN = "a-token-of-some-length"
RIGHT = {"authorization": f"Bearer {TOKEN}", "accept": "application/json, text/event-stream"}


@asynccontextmanager
async def over_stdio(url: str, key: str, *arguments: str, mode: str = "auto") -> AsyncIterator[Client]:
    """A client of a `holdshort mcp` that it starts itself, as an agent's program does."""
    environ = {"HOLDSHORT_URL": url, "HOLDSHORT_API_KEY": key}
    started = StdioServerParameters(command=sys.executable, args=[*STRICT, *arguments], env=environ)
    async with Client(started, mode=mode) as client:
        yield client


@contextmanager
def served(url: str, key: str) -> Iterator[str]:
    """A `holdshort mcp --http`, and its address."""
    environ = {"HOLDSHORT_URL": url, "HOLDSHORT_API_KEY": key, "HOLDSHORT_MCP_TOKEN": TOKEN, "PYTHONWARNINGS": "error"}
    with running("mcp", "--http", "--port", "0", **environ) as server:
        yield server.wait_for(r"(http://127\.0\.0\.1:\d+/mcp)")[1]
        server.terminate()
        assert "493201" not in "".join(server.printed()).replace(" ", ""), "an answer was written"
        assert not [line for line in server.printed() if "Traceback" in line or "Warning" in line], server.seen


@asynccontextmanager
async def over_http(address: str, *, mode: str = "legacy") -> AsyncIterator[Client]:
    """A client of a `holdshort mcp --http`; as most speak the protocol it has sessions, in its newest form none."""
    async with (
        httpx2.AsyncClient(headers={"authorization": f"Bearer {TOKEN}"}, timeout=30, trust_env=False) as http,
        Client(streamable_http_client(address, http_client=http), mode=mode) as client,
    ):
        yield client


def process_of(mark: str) -> int:
    """The child of this process whose arguments have this word."""
    children = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    pids = {int(pid) for listed in children for pid in listed.read_text().split()}
    (found,) = [pid for pid in pids if mark.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")]
    return found


def text_of(result: CallToolResult) -> str:
    """The text of a result."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def found(result: CallToolResult) -> dict[str, Any]:
    """A result's structured content."""
    assert not result.is_error, text_of(result)
    assert result.structured_content is not None
    return result.structured_content


def refusal(result: CallToolResult) -> str:
    """The text of a result that is an error."""
    assert result.is_error, result
    return text_of(result)
