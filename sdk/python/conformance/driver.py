"""The Python SDK behind a pipe: reads one JSON request a line, answers one a line, and serves an agent meanwhile.

It is driven by the scenarios of sdk/conformance/scenarios.json, as the drivers of the other languages are. Environment:
HOLDSHORT_URL, NODE, PORT, CALLBACK, and HOLDSHORT_API_KEY where the control plane wants a key. Ends with its input.
"""

import asyncio
import json
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
from agent_script import Performer
from client_ops import ClientOps, told
from holdshort import Agent
from holdshort._serving import server_for

DRAIN_SECONDS = 1
Op = Callable[[dict[str, Any]], Awaitable[Any]]


class Driver:
    """Answers requests side by side, each in a task that another request may cancel.

    Args:
        ops: what can be asked for, by name.
    """

    def __init__(self, ops: dict[str, Op]) -> None:
        self._ops = ops | {"cancel": self._cancel}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def take(self, line: str) -> None:
        """Begin what a line asks for."""
        request = json.loads(line)
        task = asyncio.create_task(self._answer(request))
        self._tasks[request["id"]] = task
        task.add_done_callback(lambda _: self._tasks.pop(request["id"], None))

    async def _answer(self, request: dict[str, Any]) -> None:
        try:
            answer = {"ok": await self._ops[request["op"]](request.get("args", {}))}
        except asyncio.CancelledError:
            answer = {"error": {"kind": "Cancelled", "is": [], "code": "cancelled", "status": None}}
        except BaseException as error:  # whatever it was is the answer
            answer = {"error": told(error)}
        say({"id": request["id"], **answer})

    async def _cancel(self, args: dict[str, Any]) -> None:
        task = self._tasks.get(args["id"])
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def say(message: dict[str, Any]) -> None:
    """Write one line, whole."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def read(loop: asyncio.AbstractEventLoop, driver: Driver, ended: asyncio.Event) -> None:
    """Hand each line of the input to the loop; a thread of its own, which a blocking read does not keep alive."""
    for line in sys.stdin:
        loop.call_soon_threadsafe(driver.take, line)
    loop.call_soon_threadsafe(ended.set)


async def registered(health: str) -> None:
    """Return once the agent listens and the control plane knows it."""
    async with httpx.AsyncClient() as http:
        while not await _registered(http, health):
            await asyncio.sleep(0.01)


async def _registered(http: httpx.AsyncClient, health: str) -> bool:
    try:
        return bool((await http.get(health)).json()["registered"])
    except httpx.TransportError:
        return False


async def main() -> None:
    """Serve, say so, and answer until the input ends."""
    base = f"http://127.0.0.1:{os.environ['PORT']}"
    agent = Agent(os.environ["NODE"], "1", callback_url=base, callback=os.environ["CALLBACK"])  # type: ignore[arg-type]
    performer = Performer(agent)
    # What `agent.run` serves with, beside which the input is read.
    server = server_for(agent, "127.0.0.1", int(os.environ["PORT"]), DRAIN_SECONDS)
    serving = asyncio.create_task(server.serve())
    await registered(f"{base}/health")
    ended = asyncio.Event()
    async with ClientOps(os.environ["NODE"]) as client:
        driver = Driver(client.ops | performer.ops)
        loop = asyncio.get_running_loop()
        threading.Thread(target=read, args=(loop, driver, ended), daemon=True).start()
        say({"ready": True})
        await ended.wait()
    server.should_exit = True
    await serving


if __name__ == "__main__":
    asyncio.run(main())
