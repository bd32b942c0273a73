"""An agent as a program of its own, to be killed: it is told its callback mode, and takes a free port."""

import asyncio
import os
import sys
from pathlib import Path

from holdshort import Agent

app = Agent(node_id=os.environ["NODE"], version="1", callback=os.environ["CALLBACK"])  # type: ignore[arg-type]


@app.reasoner()
async def work(request_id: str) -> list[list[object]]:
    """Pauses until no more changes are wanted; what it was told in each round."""
    told: list[list[object]] = []
    while True:
        result = await app.pause(request_id, payload=len(told))
        told.append([result.round, result.decision, result.feedback])
        if not result.changes_requested:
            return told


@app.reasoner()
async def look_up(request_id: str, execution_id: str | None = None) -> list[object]:
    """What was decided, or will be."""
    result = await app.wait_for_resume(request_id, execution_id=execution_id)
    return [result.round, result.decision, result.feedback]


@app.reasoner()
async def ask(request_id: str) -> list[object]:
    """What was decided, and which process saw it."""
    result = await app.pause(request_id)
    return [result.decision, result.feedback, os.getpid()]


@app.reasoner()
async def toil(begun: str, may_end: str) -> int:
    """Works from when it has made one file until another one is there; the process that did it."""
    write_down(Path(begun))
    there = Path(may_end).exists
    while not there():
        await asyncio.sleep(0.01)
    return os.getpid()


@app.reasoner()
async def prepare(begun: str, may_end: str, request_id: str) -> list[int]:
    """Does steps before, beside and behind each other and a question; the process that did each."""
    first = await app.step("first", os.getpid)
    beside = await asyncio.gather(*(app.step("beside", os.getpid) for _ in range(3)))
    long = await app.step("long", toil, begun, may_end)
    await app.pause(request_id)
    return [first, *beside, long, await app.step("last", os.getpid)]


def write_down(file: Path) -> None:
    with file.open("a", encoding="utf-8") as opened:
        opened.write(f"{os.getpid()}\n")


if __name__ == "__main__":
    app.run(port=int(sys.argv[1]))
