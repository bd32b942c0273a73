"""An agent as a program of its own, to be killed: it is told its callback mode, and takes a free port."""

import os
import sys

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


if __name__ == "__main__":
    app.run(port=int(sys.argv[1]))
