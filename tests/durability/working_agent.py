"""An agent program that works, asks and goes on, as users write them; the tests run it, kill it and start it again.

Arguments: the control plane's URL, the port to serve on, the journal's path, and where this process shall die of
itself: `before` or `after` it has acknowledged a run, or `-`.
"""

import asyncio
import os
import random
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from holdshort import Agent
from holdshort._asgi import AgentApp, Message, Receive, Scope, Send
from holdshort._runs import current_run
from msgspec import Struct

from tests.durability.journal import Journal

NODE = "agent"
ACCEPTED = 202
AT_ONCE = 16
DRAIN_SECONDS = 4
LIMIT_SECONDS = 3.0
QUICKEST, SLOWEST = 0.05, 0.6


class Question(Struct, frozen=True):
    """What a run asks."""

    id: str
    hours: float = 72.0
    on_expiry: Literal["cancel", "resume"] = "cancel"


class Worker:
    """The program's functions, with a journal of each call of a step."""

    def __init__(self, app: Agent, journal: Journal) -> None:
        self.app = app
        self.journal = journal

    async def work(self, number: int, questions: list[Question], seconds: float | None = None) -> dict[str, Any]:
        """Prepare, ask each question as often as changes are requested, work after each answer; or clean up."""
        steps: list[str] = []
        decisions: list[list[Any]] = []

        async def do(step: str) -> None:
            await asyncio.sleep(pace(f"before {step}", number) if seconds is None else 0)
            steps.append(await self.app.step(step, self.deed, step, number, seconds))

        await do("prepare")
        await do("analyse")
        for question in questions:
            result = await self.ask(question, number, decisions)
            while result.changes_requested:
                await do(f"revise {question.id}")
                result = await self.ask(question, number, decisions)
            if result.rejected or (result.expired and question.on_expiry == "cancel"):
                await do("clean up")
                break
            await do(f"after {question.id}")
        return {"number": number, "decisions": decisions, "steps": steps}

    async def ask(self, question: Question, number: int, decisions: list[list[Any]]) -> Any:
        result = await self.app.pause(
            question.id,
            payload={"number": number},
            expires_in_hours=question.hours,
            on_expiry=question.on_expiry,
        )
        decisions.append([question.id, result.round, result.decision, result.feedback])
        return result

    async def gated(self, gate: str) -> dict[str, Any]:
        """A step that ends when a file is there, and a question after it; how it was left is written down."""
        with self.left():
            return await self.wait_and_ask(gate)

    async def wait_and_ask(self, gate: str) -> dict[str, Any]:
        first = await self.app.step("wait", self.wait_for, gate)
        result = await self.app.pause("go on", payload={"first": first})
        return {"first": first, "decision": result.decision}

    async def limited(self, seconds: float) -> dict[str, Any]:
        """A question, and work of so many seconds after it."""
        with self.left():
            result = await self.app.pause("limited")
            await self.app.step("work", self.deed, "work", 0, seconds)
            return {"decision": result.decision}

    async def deed(self, step: str, number: int, seconds: float | None) -> str:
        """Work for a while; what it returns is new each time."""
        return await self._journalled(step, asyncio.sleep(pace(step, number) if seconds is None else seconds))

    async def wait_for(self, gate: str) -> str:
        return await self._journalled("wait", _there(Path(gate)))

    @contextmanager
    def left(self) -> Iterator[None]:
        how = "returned"
        try:
            yield
        except BaseException as end:
            how = type(end).__name__
            raise
        finally:
            self.journal.write("left", run=self.app.execution_id, how=how)

    async def _journalled(self, step: str, work: Any) -> str:
        run = current_run.get()
        assert run is not None
        deed, token = uuid4().hex, uuid4().hex
        self.journal.write("begin", deed=deed, run=run.execution_id, fence=run.fence, step=step)
        await work
        self.journal.write("end", deed=deed, token=token)
        return token


def pace(what: str, number: int) -> float:
    """How long something takes, the same each time."""
    return random.Random(f"{what} {number}").uniform(QUICKEST, SLOWEST)


async def _there(path: Path) -> None:
    while not await asyncio.to_thread(path.exists):
        await asyncio.sleep(0.01)


class JournalledApp(AgentApp):
    """The agent's application, which writes down each run that it is given and takes, and dies where it is told to."""

    def __init__(self, agent: Agent, journal: Journal, dies: str) -> None:
        super().__init__(agent)
        self._journal = journal
        self._dies = dies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith("/reasoners/"):
            await super().__call__(scope, receive, send)
            return
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        given = {"run": headers["x-execution-id"], "fence": int(headers["x-holdshort-fence"])}
        self._journal.write("given", **given, steps=int(headers["x-holdshort-steps"]))
        if self._dies == "before":
            os.kill(os.getpid(), signal.SIGKILL)

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == ACCEPTED:
                self._journal.write("taken", **given)
            await send(message)

        await super().__call__(scope, receive, answer)
        if self._dies == "after":
            os.kill(os.getpid(), signal.SIGKILL)


def main(url: str, port: int, path: str, dies: str) -> None:
    app = Agent(NODE, "1.0.0", url, max_concurrent=AT_ONCE)
    journal = Journal(path)
    worker = Worker(app, journal)
    for function in (worker.work, worker.gated):
        app.reasoner()(function)
    app.reasoner(timeout_seconds=LIMIT_SECONDS)(worker.limited)
    app._app = JournalledApp(app, journal, dies)
    app.run(port=port, drain_seconds=DRAIN_SECONDS)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4])
