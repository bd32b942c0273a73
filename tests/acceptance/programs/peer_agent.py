"""An agent written against the unmodified SDK, as its documents say; run by the tests in the SDK's own environment.

Arguments: the control plane's URL, the port to serve on, the node's id, the journal's path, then any number of
`execution_id=request_id` that a former process of this agent paused in.
"""

import asyncio
import json
import math
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from agentfield import Agent
from agentfield.exceptions import ReasonerFailed
from hax import HaxClient

SERVER, PORT, NODE, JOURNAL, *PAUSED = sys.argv[1:]
LONG = 3600.0


def note_down(**line: Any) -> None:
    with Path(JOURNAL).open("a", encoding="utf-8") as journal:
        journal.write(json.dumps(line) + "\n")


def shown(result: Any) -> dict[str, Any]:
    """What `pause` returned, as JSON."""
    return {
        "decision": result.decision,
        "approved": result.approved,
        "feedback": result.feedback,
        "raw_response": result.raw_response,
        "execution_id": result.execution_id,
        "approval_request_id": result.approval_request_id,
    }


@asynccontextmanager
async def picking_up(_: Any) -> AsyncIterator[None]:
    """What a restarted agent does with the pauses that it knows of."""
    tasks = [asyncio.create_task(pick_up(*each.split("="))) for each in PAUSED]
    yield
    for task in tasks:
        task.cancel()


async def pick_up(execution_id: str, request_id: str) -> None:
    note_down(waits_for=request_id)
    result = await app.wait_for_resume(request_id, execution_id=execution_id, timeout=LONG)
    note_down(resumed=request_id, **shown(result))
    async with httpx.AsyncClient() as client:
        body = {"status": "completed", "result": shown(result)}
        reply = await client.post(f"{SERVER}/api/v1/executions/{execution_id}/status", json=body)
        note_down(reported=execution_id, status_code=reply.status_code)


app = Agent(node_id=NODE, agentfield_server=SERVER, version="1.2.3", lifespan=picking_up)


@app.reasoner()
async def once(request_id: str, expires_in_hours: float = 72, timeout: float = LONG) -> dict:
    """Pause once."""
    note_down(started=request_id)
    result = await app.pause(request_id, expires_in_hours=expires_in_hours, timeout=timeout)
    note_down(went_on=request_id, decision=result.decision)
    return shown(result)


@app.reasoner()
async def twice(request_id: str) -> list:
    """Pause twice in one run, with a page of the agent's own for the first."""
    first = await app.pause(f"{request_id}-a", approval_request_url="https://desk.example/a", timeout=LONG)
    second = await app.pause(f"{request_id}-b", timeout=LONG)
    return [shown(first), shown(second)]


@app.reasoner()
async def revise(request_id: str, same_id: bool) -> list:
    """Ask again for as long as changes are requested, under the same id or under a new one each time."""
    results = []
    while not results or results[-1]["decision"] == "request_changes":
        asked = request_id if same_id else f"{request_id}-{len(results) + 1}"
        results.append(shown(await app.pause(asked, timeout=LONG)))
    return results


@app.reasoner()
async def noting(request_id: str) -> str:
    """Leave notes around a pause."""
    app.note("before — the pause", tags=["first"])
    await app.pause(request_id, timeout=LONG)
    app.note("after the pause")
    return "noted"


@app.reasoner()
async def endless(name: str) -> str:
    """Work until somebody stops it."""
    note_down(started=name)
    try:
        await asyncio.sleep(LONG)
    except asyncio.CancelledError:
        note_down(stopped=name)
        raise
    return "never"


@app.reasoner()
async def slow(name: str, seconds: float) -> str:
    """Work for a while."""
    note_down(started=name)
    await asyncio.sleep(seconds)
    note_down(ended=name)
    return name


@app.reasoner()
async def returning(kind: str) -> Any:
    """Return what is named, not all of which is JSON."""
    kinds: dict[str, Any] = {
        "nothing": None,
        "false": False,
        "zero": 0,
        "text": "täxt",
        "list": [1, {"a": []}],
        "set": {3},
        "moment": datetime(2026, 1, 1, tzinfo=UTC),
        "object": object(),
        "nul": "a\0b",
        "nan": math.nan,
    }
    return kinds[kind]


@app.reasoner()
async def failing(kind: str) -> str:
    """Fail in the ways that the SDK has for it."""
    if kind == "outcome":
        raise ReasonerFailed("half of it failed", result={"done": 1, "left": 1}, error_details={"reason": "half_done"})
    raise ValueError("no such account")


@app.reasoner()
async def calling(target: str, argument: Any) -> Any:
    """Call another function through the control plane."""
    return {"answer": await app.call(target, **argument)}


@app.reasoner()
async def nesting(request_id: str) -> Any:
    """Call a function of this agent that pauses, without the control plane between them."""
    return {"inner": await once(request_id=request_id)}


@app.reasoner()
async def by_service(service: str, execution_context: Any = None) -> dict:
    """Create the request at a review service first, as the SDK's documents say, and pause for its answer."""
    client = HaxClient(api_key="hax_test_key", base_url=service)
    request = await asyncio.to_thread(
        client.create_request,
        type="text-approval-v1",
        payload={"text": "Ship it?"},
        webhook_url=f"{SERVER}/api/v1/webhooks/approval-response",
        metadata={"executionId": execution_context.execution_id},
    )
    return shown(await app.pause(request.id, approval_request_url=request.url, timeout=LONG))


@app.skill()
def double(number: int) -> int:
    """A plain function."""
    return 2 * number


@app.skill()
async def sleepy(seconds: float) -> str:
    """A plain function that takes longer than the control plane waits for an answer to a dispatch."""
    await asyncio.sleep(seconds)
    return "awake"


if __name__ == "__main__":
    app.serve(port=int(PORT), host="127.0.0.1")
