"""Code that asks for other steps than the stored ones ends its run, before anything is done."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest
from holdshort import Agent, StepMismatch
from holdshort._step_book import Book, Place, kept_at
from holdshort._wire import Step
from holdshort.testing import ControlPlane, RunFailed

from sdk.python.tests.programs import dying, restarted

Code = Callable[[Agent], Coroutine[Any, Any, Any]]


def doing(done: list[str], agent: Agent) -> Callable[[str], Awaitable[str]]:
    async def work(name: str) -> str:
        await asyncio.sleep(0)
        done.append(name)
        return name

    return lambda name: agent.step(name, work, name)


def in_order(*names: str) -> Code:
    async def code(agent: Agent) -> None:
        for name in names:
            assert await doing(DONE, agent)(name) == name

    return code


def side_by_side(*branches: Code) -> Code:
    async def code(agent: Agent) -> None:
        await asyncio.gather(*(branch(agent) for branch in branches))

    return code


def swallowing(code: Code) -> Code:
    async def calmly(agent: Agent) -> None:
        with suppress(Exception):
            await code(agent)

    return calmly


def gathering(code: Code) -> Code:
    async def collects(agent: Agent) -> None:
        await asyncio.gather(code(agent), return_exceptions=True)

    return collects


def hiding(code: Code) -> Code:
    async def looks_away(agent: Agent) -> None:
        task = asyncio.create_task(code(agent))
        with suppress(BaseException):
            await asyncio.wait((task,))
        await asyncio.gather(task, return_exceptions=True)

    return looks_away


DONE: list[str] = []


async def replayed(plane: ControlPlane, before: Code, after: Code) -> None:
    first = plane.connect(Agent("contract-reviewer", "1"))
    async with dying(first):
        await before(first)
    DONE.clear()
    again = restarted(plane)
    async with again.execution("run-1"):
        await after(again)


CHANGED = [
    (in_order("a", "b"), in_order("b", "a"), ("a", "b")),
    (in_order("a", "b"), in_order("a", "x", "b"), ("b", "x")),
    (in_order("a", "b", "c"), in_order("a", "c"), ("b", "c")),
    (in_order("a", "b"), in_order("a", "B"), ("b", "B")),
    (in_order("a", "a", "b"), in_order("a", "b"), ("a", "b")),
    (in_order("a"), in_order("b"), ("a", "b")),
    (side_by_side(in_order("a", "b"), in_order("a", "c")), side_by_side(in_order("a", "c")), ("b", "c")),
]


@pytest.mark.parametrize(("before", "after", "names"), CHANGED)
async def test_changed_code_is_found_out_and_fails_its_run(
    plane: ControlPlane, before: Code, after: Code, names: tuple[str, str]
) -> None:
    with pytest.raises(StepMismatch) as mismatch:
        await replayed(plane, before, after)
    assert (mismatch.value.expected, mismatch.value.got) == names
    assert DONE == []
    run = plane.execution("run-1")
    assert (run.status, run.status_reason) == ("failed", "step_mismatch")
    for name in names:
        assert f"{name!r}" in run.error


def waiting(code: Code) -> Code:
    async def waits_elsewhere(agent: Agent) -> None:
        task = asyncio.create_task(code(agent))
        done, _ = await asyncio.wait((task,))
        if task in done and not task.exception():
            return
        await asyncio.Event().wait()

    return waits_elsewhere


@pytest.mark.parametrize("around", [swallowing, gathering, hiding, waiting])
async def test_code_that_takes_errors_as_they_come_does_not_succeed(plane: ControlPlane, around: Any) -> None:
    for names in ("ab", "acd"):
        agent = restarted(plane)

        @agent.reasoner()
        async def review(names: str, agent: Agent = agent) -> None:
            await around(in_order(*names))(agent)
            await agent.pause("x")

        call = asyncio.create_task(plane.call(agent, "review", "run-1", names=names))
        if names == "ab":
            await plane.asked()
            await agent.asgi._calls.stop()
        DONE.clear()
        with pytest.raises(RunFailed) as failure:
            await call
    assert failure.value.code == "step_mismatch"
    assert plane.execution("run-1").status_reason == "step_mismatch"
    assert DONE == []


async def test_after_a_mismatch_no_task_of_the_run_does_anything(plane: ControlPlane) -> None:
    async def after(agent: Agent) -> None:
        await gathering(in_order("b"))(agent)
        await gathering(in_order("x"))(agent)

    with pytest.raises(StepMismatch, match=r"'a'.*'b'"):
        await replayed(plane, gathering(in_order("a")), after)
    assert DONE == []
    assert plane.execution("run-1").status_reason == "step_mismatch"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (in_order("a", "b"), in_order("a", "b", "c")),
        (in_order("a", "b"), in_order("a")),
        (in_order(), in_order("a")),
        (side_by_side(in_order("a"), in_order("b")), side_by_side(in_order("a"), in_order("b"), in_order("c"))),
    ],
)
async def test_code_that_only_goes_further_goes_on(plane: ControlPlane, before: Code, after: Code) -> None:
    await replayed(plane, before, after)
    assert plane.execution("run-1").status == "succeeded"


async def test_mismatch_in_a_plain_reasoner(plane: ControlPlane) -> None:
    for names, code in (("ab", "handed_back"), ("ba", "step_mismatch")):
        agent = restarted(plane)

        @agent.reasoner()
        def review(agent: Agent = agent, names: str = names, code: str = code) -> None:
            with suppress(BaseException):
                for name in names:
                    agent.step_sync(name, str, name)
            if code == "handed_back":
                agent.pause_sync("x")

        call = asyncio.create_task(plane.call(agent, "review", "run-1"))
        if code == "handed_back":
            await plane.asked()
            await agent.asgi._calls.stop()
        with pytest.raises(RunFailed) as failure:
            await call
        assert failure.value.code == code
    assert plane.execution("run-1").status_reason == "step_mismatch"


def stored(name: str, occurrence: int, at: Place, proof: str = "") -> Step:
    return Step(name=name, occurrence=occurrence, position=1, previous=kept_at(at, proof))


NAMES = ["a", "a#1", "a!b", "a/b/1", "#1", "!a", "/a/1", "a=1", "", "%23", "~", "a#1!b", "=abc"]


def test_no_two_ways_have_the_same_name() -> None:
    """Whatever people call their steps, a place is never taken for another one."""
    book = Book()
    ways = {"", *(f"{name}#1" for name in NAMES)}
    made: list[str] = []
    for _ in range(2):
        here = [Place(way) for way in sorted(ways)]
        made = [book.raised(place, name).here for place in here for name in NAMES]
        made += [book.forked(place, name, rank).here for place in here for name in NAMES for rank in (1, 11)]
        assert len(set(made)) == len(made)
        assert not set(made) & {f"{name}#1" for name in NAMES}
        ways |= set(made)
    assert max(map(len, made)) < 244  # with a proof the control plane takes 256


def test_a_stored_place_is_read_as_it_was_kept() -> None:
    for name in NAMES:
        for proof in ("", "0123456789ab"):
            start = Book().forked(Book().raised(Place(), name), name, 3)
            book = Book()
            book.open([step := stored(name, 1, start, proof)])
            assert book.find(start, name, "") == step
            assert book.find(Place(), name, "") is None
