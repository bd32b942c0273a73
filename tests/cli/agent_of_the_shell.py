"""An agent whose runs end in every way, as a program of its own."""

import asyncio
import os

from holdshort import Agent

app = Agent(node_id=os.environ["NODE"], version="7")


def plus(a: int, b: int) -> int:
    return a + b


@app.reasoner()
async def add(a: int, b: int) -> int:
    return await app.step("add", plus, a, b)


@app.reasoner()
async def fail() -> None:
    raise ValueError("no \u001b[31m such contract")


@app.reasoner(timeout_seconds=0.2)
async def hang() -> None:
    await asyncio.Event().wait()


@app.reasoner()
async def ask(title: str = "Sign?") -> dict[str, str]:
    result = await app.pause("q", title=title)
    return {"decision": result.decision}


if __name__ == "__main__":
    app.run(port=int(os.environ["PORT"]))
