"""An agent program with many runs at once, each of which pauses; run by the tests, with a journal of what it saw.

Arguments: the control plane's URL, the port that callbacks come to, how many runs, the journal's path.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TextIO

import uvicorn
from holdshort import Agent

CALLBACKS = "/webhooks/approval"


async def main(url: str, port: int, runs: int, journal: TextIO) -> None:
    agent = Agent("agent", "1.0.0", url, callback_url=f"http://127.0.0.1:{port}")
    config = uvicorn.Config(_counting(agent.asgi, journal), port=port, log_level="warning", lifespan="on")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    await asyncio.gather(*(_run(agent, number, journal) for number in range(runs)))
    server.should_exit = True
    await serving


async def _run(agent: Agent, number: int, journal: TextIO) -> None:
    async with agent.execution(f"run-{number}", input={"number": number}) as run:
        result = await agent.pause("deploy", payload={"number": number})
        seen = {"decision": result.decision, "feedback": result.feedback, "data": result.data}
        _write(journal, run=run.execution_id, approval=result.approval_id, **seen)
        run.result = seen


def _counting(app: Callable[..., Awaitable[None]], journal: TextIO) -> Callable[..., Awaitable[None]]:
    """The agent's application, with a journal line for each callback that comes."""

    async def counted(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == CALLBACKS:
            _write(journal, callback=dict(scope["headers"])[b"webhook-id"].decode())
        await app(scope, receive, send)

    return counted


def _write(journal: TextIO, **line: Any) -> None:
    journal.write(json.dumps(line) + "\n")
    journal.flush()


if __name__ == "__main__":
    with Path(sys.argv[4]).open("a", encoding="utf-8") as opened:
        asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), opened))
