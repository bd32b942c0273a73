"""A program without an agent: it uses the SDK's client alone, and no node's name.

Arguments: the control plane's URL, an execution's id. It starts that run itself, asks, polls for the answer, and then
runs a function of another agent in both of the client's ways; it prints what it saw as one line of JSON.
"""

import asyncio
import json
import sys
from typing import Any

import httpx
from agentfield.client import AgentFieldClient

SERVER, RUN = sys.argv[1:]


async def main() -> dict[str, Any]:
    async with httpx.AsyncClient(base_url=f"{SERVER}/api/v1") as raw:
        await raw.post("/executions", json={"node_id": "bare", "execution_id": RUN})
    client = AgentFieldClient(base_url=SERVER)
    asked = await client.request_approval(RUN, "bare", expires_in_hours=1)
    before = await client.get_approval_status(RUN)
    after = await client.wait_for_approval(RUN, poll_interval=0.1, max_interval=0.5, timeout=60)
    waited = await client.execute("peer.returning", {"kind": "list"})
    blocked = await asyncio.to_thread(client.execute_sync, "peer.double", {"number": 2})
    await client.aclose()
    return {
        "asked": asked.approval_request_id,
        "before": before.status,
        "after": after.status,
        "response": after.response,
        "responded": after.responded_at is not None,
        "waited": [waited["status"], waited["result"]],
        "blocked": [blocked["status"], blocked["result"]],
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main())))
