"""Processes that die in the middle of a run, and random programs of tasks and steps for them."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any

import msgspec
from holdshort import Agent, Run
from holdshort._core import Call, Reply
from holdshort.testing import ControlPlane

RUN = "run-1"
NAMES = ("fetch", "parse", "send")
RETRIES = 50
MANY = 1000


def restarted(plane: ControlPlane) -> Agent:
    """The agent in another process."""
    return plane.connect(Agent("contract-reviewer", "1.0.1"))


@asynccontextmanager
async def dying(agent: Agent, execution_id: str = RUN) -> AsyncIterator[Run]:
    """A run whose process ends with the block: nothing is reported."""
    with suppress(KeyboardInterrupt):
        async with agent.execution(execution_id) as run:
            yield run
            raise KeyboardInterrupt


class Op(msgspec.Struct, frozen=True):
    """One thing that a task does; `site` tells each place in the program from every other."""

    kind: str
    site: str
    name: str = ""
    inner: tuple[Any, ...] = ()
    flaky: bool = False


def program(rng: Random, depth: int = 3, site: str = "") -> tuple[Op, ...]:
    return tuple(_op(rng, depth, f"{site}.{number}") for number in range(rng.randint(1, 4)))


def _op(rng: Random, depth: int, site: str) -> Op:
    kinds = ["step", "step", "optional", "retried", "hidden", "spawned", "forked", "loop", "nap"]
    kinds += ["direct", "completed", "shared"]
    kind = rng.choice(kinds + ["tasks", "tasks", "group", "background"] * (depth > 0))
    name, flaky = rng.choice(NAMES), rng.random() < 0.3
    if kind in {"direct", "completed", "loop", "forked"}:
        many = 3 if kind == "forked" else rng.randint(2, 4)
        inner = tuple(Op("step", f"{site}-{n}", name, flaky=flaky) for n in range(many))
        return Op(kind, site, name, inner, flaky)
    if kind in {"tasks", "group", "background"}:
        bodies = 1 if kind == "background" else rng.randint(2, 3)
        return Op(kind, site, name, tuple(program(rng, depth - 1, f"{site}.{n}") for n in range(bodies)))
    return Op(kind, site, name)


def calls(ops: tuple[Op, ...], most: int = 1) -> Counter[str]:
    """How often each site's work may be done.

    Args:
        ops: what one task does.
        most: once, or any number behind a fork whose way was another one in an earlier try.
    """
    counted: Counter[str] = Counter()
    for op in ops:
        if op.kind in {"tasks", "group", "background"}:
            counted.update(sum((calls(body, most) for body in op.inner), Counter()))
        elif op.kind != "nap":
            times = {"shared": 3, "hidden": MANY}.get(op.kind, 1)
            counted.update({each.site: max(most, times) for each in (op, *op.inner)})
        most = MANY if op.kind == "forked" else most
    return counted


class Killed:
    """A transport of a process that dies at one of its steps, before or after it was stored.

    Args:
        plane: that it would reach.
        at: the how-many-eth step it dies at; None for never.
        stored: whether that one is stored.
    """

    def __init__(self, plane: ControlPlane, at: int | None, *, stored: bool) -> None:
        self._plane, self._at, self._stored = plane, at, stored
        self._told = 0
        self.main: asyncio.Task[Any] | None = None
        self.dead = False

    async def exchange(self, call: Call[Any]) -> Reply:
        if call.method == "POST" and call.path.endswith("/steps"):
            self._told += 1
            if self._told == self._at and self.main:
                if self._stored:
                    await self._plane.transport.exchange(call)
                self.dead = True
                self.main.cancel()
        if self.dead:
            await asyncio.Event().wait()
        return await self._plane.transport.exchange(call)

    async def aclose(self) -> None:
        pass


class Attempt:
    """One process that runs a program.

    Args:
        plane: where steps are stored.
        rng: of its timing and its failures.
        transport: how it reaches the plane.
    """

    def __init__(self, plane: ControlPlane, rng: Random, transport: Killed) -> None:
        self._rng = rng
        self._transport = transport
        self.agent = Agent("n", "1")
        self.agent.use_transport(transport)  # type: ignore[arg-type]
        self.done: Counter[str] = Counter()
        self.wrong: list[tuple[str, Any]] = []

    def run(self, ops: tuple[Op, ...], new_loop: Callable[[], asyncio.AbstractEventLoop] | None = None) -> bool:
        """True when it came to its end."""
        with asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(self._main(ops))

    async def _main(self, ops: tuple[Op, ...]) -> bool:
        self._transport.main = asyncio.current_task()
        try:
            async with self.agent.execution(RUN):
                await self._body(ops)
        except asyncio.CancelledError:
            assert self._transport.dead
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            return False
        return True

    async def _body(self, ops: tuple[Op, ...]) -> None:
        background: list[asyncio.Task[None]] = []
        for op in ops:
            if op.kind == "background":
                background.append(asyncio.create_task(self._body(op.inner[0])))
            else:
                await getattr(self, f"_{op.kind}")(op)
        await asyncio.gather(*background)

    async def _work(self, site: str, flaky: bool = False) -> dict[str, str]:
        await self._some_time()
        if flaky and self._rng.random() < 0.4:
            raise ConnectionError(site)
        self.done[site] += 1
        return {"site": site}

    async def _some_time(self) -> None:
        for _ in range(self._rng.choice((0, 0, 1, 2, 5, 11))):
            await asyncio.sleep(0)

    def _same(self, op: Op, result: Any) -> None:
        if result != {"site": op.site}:
            self.wrong.append((op.site, result))

    async def _step(self, op: Op) -> None:
        self._same(op, await self.agent.step(op.name, self._work, op.site))

    async def _optional(self, op: Op) -> None:
        try:
            self._same(op, await self.agent.step(op.name, self._work, op.site, True))
        except ConnectionError as error:
            assert str(error) == op.site  # noqa: PT017  # whose error it is

    async def _retried(self, op: Op) -> None:
        for _ in range(RETRIES):
            with suppress(ConnectionError):
                self._same(op, await self.agent.step(op.name, self._work, op.site, flaky=True))
                break
            await self._some_time()

    async def _hidden(self, op: Op) -> None:
        """Nobody can see that these calls are the same: the work may be done again, but nothing behind it."""
        for _ in range(RETRIES):
            with suppress(ConnectionError):
                self._same(op, await self.agent.step(op.name, lambda: self._work(op.site, True)))
                break

    async def _spawned(self, op: Op) -> None:
        for _ in range(RETRIES):
            with suppress(ConnectionError):
                (result,) = await asyncio.gather(self.agent.step(op.name, self._work, op.site, True))
                self._same(op, result)
                break

    async def _loop(self, op: Op) -> None:
        for each in op.inner:
            await self._optional(each)

    async def _forked(self, op: Op) -> None:
        """Its way depends on whether something raised, which may be otherwise the next time."""
        first, then, otherwise = op.inner
        try:
            self._same(first, await self.agent.step(first.name, self._work, first.site, True))
        except ConnectionError:
            first = otherwise
        await self._step(then)
        if first is otherwise:
            self._same(otherwise, await self.agent.step("otherwise", self._work, otherwise.site))
        else:
            self._same(op, await self.agent.step("so", self._work, op.site))

    async def _nap(self, op: Op) -> None:
        await self._some_time()

    async def _direct(self, op: Op) -> None:
        calls = [self.agent.step(each.name, self._work, each.site, each.flaky) for each in op.inner]
        for each, result in zip(op.inner, await asyncio.gather(*calls, return_exceptions=True), strict=True):
            if not isinstance(result, ConnectionError):
                self._same(each, result)

    async def _completed(self, op: Op) -> None:
        calls = [self.agent.step(each.name, self._work, each.site) for each in op.inner]
        results = [(await each)["site"] for each in asyncio.as_completed(calls)]
        if sorted(results) != sorted(each.site for each in op.inner):
            self.wrong.append((op.site, results))

    async def _shared(self, op: Op) -> None:
        """The same work in three tasks at once: equal calls, one result each."""
        results = await asyncio.gather(*(self.agent.step(op.name, self._work, op.site) for _ in range(3)))
        for result in results:
            self._same(op, result)

    async def _tasks(self, op: Op) -> None:
        await asyncio.gather(*(self._napping(each) for each in op.inner))

    async def _group(self, op: Op) -> None:
        async with asyncio.TaskGroup() as group:
            for each in op.inner:
                group.create_task(self._napping(each))

    async def _napping(self, ops: tuple[Op, ...]) -> None:
        await self._some_time()
        await self._body(ops)
