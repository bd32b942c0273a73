import json
import sys
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from tests.mcp.clients import TOKEN, found, over_http
from tests.mcp.conftest import Plane

EXAMPLES = Path(__file__).parents[2] / "examples" / "mcp"
TOOLS = ["human_feedback", "request_approval", "wait_for_approval", "ask"]


def shown(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((EXAMPLES / name).read_text("utf-8"))
    server: dict[str, Any] = document["mcpServers"]["holdshort"]
    return server


async def test_a_client_starts_it_and_sees_the_tools_with_what_they_take_and_return(plane: Plane):
    server = shown("mcp.json")
    environ = server["env"] | {"HOLDSHORT_URL": plane.url, "HOLDSHORT_API_KEY": plane.keys.agent}
    command = str(Path(sys.executable).parent / server["command"])
    async with Client(StdioServerParameters(command=command, args=server["args"], env=environ)) as client:
        tools = (await client.list_tools()).tools
        asked = found(await client.call_tool("request_approval", {"title": "Pay?"}))
    assert [tool.name for tool in tools] == TOOLS
    for tool in tools:
        assert tool.description
        assert tool.output_schema
        assert "ctx" not in tool.input_schema["properties"]
    assert plane.seen("approvals", asked["approval_id"])["node_id"] == "assistant"


async def test_over_http_a_client_shows_the_token(tools: str):
    server = shown("http.json")
    assert server["headers"]["Authorization"].replace("${HOLDSHORT_MCP_TOKEN}", TOKEN) == f"Bearer {TOKEN}"
    assert server["url"].endswith("/mcp")
    async with over_http(tools) as client:
        assert len((await client.list_tools()).tools) == len(TOOLS)
