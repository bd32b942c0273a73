import asyncio
import functools
import threading
from typing import Any

import pytest
from holdshort import (
    Agent,
    Client,
    ExecutionFinished,
    HandedBack,
    NoExecution,
    StaleInstance,
    StepMismatch,
    StepTooLarge,
)
from holdshort._core import Call, Reply, Unreachable
from holdshort.testing import ControlPlane, RunFailed

from sdk.python.tests.programs import Killed, dying, restarted
from sdk.python.tests.support import eventually

MIB = 1024 * 1024


class Counted:
    """Work that says how often it was done."""

    def __init__(self) -> None:
        self.times = 0

    async def __call__(self, result: Any = "done") -> Any:
        self.times += 1
        return result

    def plain(self, result: Any = "done") -> Any:
        self.times += 1
        return result


async def test_a_restarted_run_gets_the_stored_result(plane: ControlPlane, agent: Agent) -> None:
    work = Counted()
    for each in (agent, restarted(plane)):
        async with dying(each):
            assert await each.step("a", work, {"x": (1, 2)}) == {"x": [1, 2]}
            assert await each.step("b", work.plain, None) is None
    assert work.times == 2
    kept = [(step.name, step.occurrence, step.position, step.result) for step in plane.steps("run-1")]
    assert kept == [("a", 1, 1, {"x": [1, 2]}), ("b", 1, 2, None)]


@pytest.mark.parametrize("stored", [False, True])
async def test_a_result_is_stored_before_it_is_seen(plane: ControlPlane, stored: bool) -> None:
    work, seen = Counted(), []

    async def code(agent: Agent) -> None:
        async with agent.execution("run-1"):
            seen.append(await agent.step("a", work))

    dying = Killed(plane, 1, stored=stored)
    first = Agent("contract-reviewer", "1")
    first.use_transport(dying)  # type: ignore[arg-type]
    dying.main = asyncio.create_task(code(first))
    with pytest.raises(asyncio.CancelledError):
        await dying.main
    assert (seen, len(plane.steps("run-1"))) == ([], stored)
    await code(restarted(plane))
    assert (seen, work.times) == (["done"], 1 if stored else 2)


async def test_of_two_results_the_stored_one_is_returned(plane: ControlPlane, agent: Agent) -> None:
    with Client(transport=plane.blocking_transport) as client:
        async with agent.execution("run-1", None) as run:
            run.stored_steps = 0  # what another try stores from now on is not read
            kept = client.keep_step("run-1", "a", "first", occurrence=1, previous="")
            assert await agent.step("a", lambda: "second") == "first"
    assert plane.steps("run-1") == [kept]


async def test_a_lost_reply_stores_nothing_twice(plane: ControlPlane) -> None:
    class Lossy:
        lost = 0

        async def exchange(self, call: Call[Any]) -> Reply:
            reply = await plane.transport.exchange(call)
            if call.path.endswith("/steps") and call.method == "POST" and self.lost < 3:
                self.lost += 1
                raise Unreachable("reset")
            return reply

        async def aclose(self) -> None:
            pass

    work, agent = Counted(), Agent("n", "1")
    agent.use_transport(Lossy())  # type: ignore[arg-type]
    async with agent.execution("run-1"):
        assert await agent.step("a", work) == "done"
    assert (work.times, len(plane.steps("run-1"))) == (1, 1)


async def test_what_is_raised_is_not_stored_and_tried_again(plane: ControlPlane, agent: Agent) -> None:
    async def breaks(message: str) -> None:
        raise OSError(message)

    work = Counted()
    async with dying(agent):
        with pytest.raises(OSError, match="no net"):
            await agent.step("a", breaks, "no net")
        await agent.step("b", work, 1)
    again = restarted(plane)
    async with again.execution("run-1"):
        assert await again.step("a", work, "there") == "there"
        assert await again.step("b", work, 1) == 1
    assert work.times == 2
    assert [step.name for step in plane.steps("run-1")] == ["b", "a"]


async def test_a_call_that_took_three_tries_is_one_step(plane: ControlPlane, agent: Agent) -> None:
    tries = 0

    async def charge(amount: int) -> int:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise TimeoutError
        return amount

    async def charged(agent: Agent) -> int:
        while True:
            try:
                async with asyncio.timeout(5):
                    return await agent.step("charge", charge, 10)
            except TimeoutError:
                continue

    for each in (agent, restarted(plane)):
        async with dying(each):
            assert await charged(each) == 10
    assert tries == 3
    assert [step.occurrence for step in plane.steps("run-1")] == [1]


async def test_what_went_wrong_for_one_item_is_not_taken_for_the_next(plane: ControlPlane, agent: Agent) -> None:
    sent: list[str] = []

    async def send(to: str) -> str:
        if to == "ann" and "bob" not in sent:
            raise ConnectionError
        sent.append(to)
        return to

    async def all_sent(agent: Agent) -> list[str]:
        results = []
        for to in ("ann", "bob", "cid"):
            try:
                results.append(await agent.step("send", send, to))
            except ConnectionError:
                results.append("")
        return results

    seen = []
    for each in (agent, restarted(plane), restarted(plane)):
        async with dying(each):
            seen.append(await all_sent(each))
    assert seen == [["", "bob", "cid"], ["ann", "bob", "cid"], ["ann", "bob", "cid"]]
    assert sent == ["bob", "cid", "ann"]


async def test_each_of_a_list_gets_its_own_result_also_when_others_were_not_done(
    plane: ControlPlane, agent: Agent
) -> None:
    done: list[int] = []
    held = asyncio.Event()

    async def fetch(number: int, hold: int) -> int:
        if number <= hold:
            await held.wait()
        done.append(number)
        return number * number

    async def all_of(agent: Agent, hold: int) -> list[int]:
        async with agent.execution("run-1"):
            return await asyncio.gather(*(agent.step("fetch", fetch, n, hold=hold) for n in range(5)))

    running = asyncio.create_task(all_of(agent, hold=1))
    await eventually(lambda: len(done) == 3 == len(plane.steps("run-1")))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [step.occurrence for step in plane.steps("run-1")] == [3, 4, 5]
    assert await all_of(restarted(plane), hold=-1) == [0, 1, 4, 9, 16]
    assert done == [2, 3, 4, 0, 1]
    assert sorted(step.occurrence for step in plane.steps("run-1")) == [3, 4, 5, 6, 7]


async def test_a_plain_function_does_not_hold_up_the_loop(agent: Agent) -> None:
    loop = asyncio.get_running_loop()
    turned = asyncio.Event()

    def waits() -> str:
        asyncio.run_coroutine_threadsafe(turned.wait(), loop).result(5)
        return "turned"

    async with agent.execution():
        step = asyncio.create_task(agent.step("a", waits))
        await asyncio.sleep(0.01)
        turned.set()
        assert await step == "turned"


async def test_many_plain_steps_leave_the_loops_own_threads_free_and_are_64_at_most(agent: Agent) -> None:
    go_on, lock = threading.Event(), threading.Lock()
    counts = [0]

    def held(number: int) -> int:
        with lock:
            counts.append(counts[-1] + 1)
        go_on.wait(10)
        with lock:
            counts.append(counts[-1] - 1)
        return number

    async with agent.execution():
        steps = asyncio.gather(*(agent.step("a", held, number) for number in range(80)))
        await eventually(lambda: max(counts) == 64)
        assert await asyncio.to_thread(lambda: "free") == "free"
        go_on.set()
        assert await steps == list(range(80))
    assert max(counts) == 64


@pytest.mark.parametrize(
    "function",
    [lambda x: asyncio.sleep(0, x), functools.partial(Counted()), functools.partial(Counted().plain), Counted()],
)
async def test_whatever_can_be_called_is_called(agent: Agent, function: Any) -> None:
    async with agent.execution():
        assert await agent.step("a", function, 3) == 3


async def test_names_of_its_own_arguments_are_the_functions(agent: Agent) -> None:
    async with agent.execution():
        assert await agent.step("a", dict, name="n", fn="f", self=1) == {"name": "n", "fn": "f", "self": 1}


async def test_a_stop_iteration_ends_the_step_and_not_the_wait_for_it(agent: Agent) -> None:
    async with agent.execution():
        with pytest.raises(RuntimeError, match="StopIteration"):
            await agent.step("a", lambda: next(iter(())))


async def test_a_coroutine_that_comes_too_late_is_closed(agent: Agent) -> None:
    left, made = asyncio.Event(), []
    loop = asyncio.get_running_loop()

    def slowly() -> Any:
        asyncio.run_coroutine_threadsafe(left.wait(), loop).result(5)
        made.append(Counted()())
        return made[0]

    async with agent.execution():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await agent.step("a", slowly)
        left.set()
        await eventually(lambda: made and made[0].cr_frame is None)


async def test_a_step_inside_a_step_is_part_of_it(plane: ControlPlane, agent: Agent) -> None:
    async def outer() -> list[Any]:
        inner = [agent.step("inner", Counted(), number) for number in (1, 2)]
        return [*await asyncio.gather(*inner), await asyncio.to_thread(agent.step_sync, "inner", Counted().plain, 3)]

    async with agent.execution("run-1"):
        assert await agent.step("outer", outer) == [1, 2, 3]
        assert await agent.step("after", Counted()) == "done"
    assert [step.name for step in plane.steps("run-1")] == ["outer", "after"]


@pytest.mark.parametrize("size", [MIB, MIB + 1])
async def test_a_result_is_at_most_a_mebibyte_of_json(plane: ControlPlane, agent: Agent, size: int) -> None:
    async with agent.execution("run-1"):
        if size <= MIB:
            assert len(await agent.step("a", lambda: "x" * (size - 2))) == size - 2
            return
        with pytest.raises(StepTooLarge, match=r"'a' is 1,048,577 bytes of JSON, and 1,048,576 is the most"):
            await agent.step("a", lambda: "x" * (size - 2))
    assert plane.steps("run-1") == []
    assert not [call for call in plane.calls if call.startswith("POST") and call.endswith("/steps")]


async def test_stored_steps_are_read_once_page_by_page_and_only_when_there_may_be_some(
    plane: ControlPlane, agent: Agent
) -> None:
    def reads() -> int:
        return sum(call == "GET /api/v1/executions/run-1/steps" for call in plane.calls)

    work = Counted()
    async with agent.execution():
        await agent.step("a", work)
    assert not [call for call in plane.calls if call.startswith("GET")]
    async with dying(agent):
        for number in range(5):
            await agent.step("large", work, str(number) * (MIB - 2))
        for number in range(250):
            await agent.step("small", work, number)
    assert (work.times, reads()) == (256, 1)
    again = restarted(plane)
    async with again.execution("run-1"):
        for number in range(5):
            assert (await again.step("large", work, str(number) * (MIB - 2)))[0] == str(number)
        assert [await again.step("small", work, number) for number in range(250)] == list(range(250))
    # 4 MiB and 200 steps a page: three large ones, then the rest of what fits, then what is left.
    assert (work.times, reads()) == (256, 1 + 3)


async def test_a_run_dispatched_without_steps_reads_none(plane: ControlPlane, agent: Agent) -> None:
    async with agent.execution("run-1") as run:
        run.stored_steps = 0
        await agent.step("a", Counted())
    assert not [call for call in plane.calls if call.startswith("GET")]


async def test_outside_a_run_there_are_no_steps(agent: Agent) -> None:
    with pytest.raises(NoExecution):
        agent.step("a", Counted())
    with pytest.raises(NoExecution):
        agent.step_sync("a", Counted().plain)
    async with agent.execution():
        with pytest.raises(NoExecution, match="block the event loop"):
            agent.step_sync("a", Counted().plain)
        with pytest.raises(NoExecution, match="step_sync"):
            await asyncio.to_thread(lambda: agent.step("a", Counted()))


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", "a\0", "\ud800", "a\u2028"])
async def test_a_name_that_could_not_be_stored_is_refused_before_anything_is_done(agent: Agent, name: str) -> None:
    work = Counted()
    async with agent.execution():
        with pytest.raises(ValueError, match="1-200 characters"):
            agent.step(name, work)
        await agent.step("x" * 200, work)
    assert work.times == 1


async def test_after_an_operators_end_nothing_is_stored(plane: ControlPlane, agent: Agent) -> None:
    async with dying(agent):
        plane.cancel("run-1")
        with pytest.raises(ExecutionFinished):
            await agent.step("a", Counted())
    assert plane.steps("run-1") == []


async def test_after_a_rejection_the_code_may_clean_up_in_steps(plane: ControlPlane, agent: Agent) -> None:
    async with agent.execution("run-1") as run:
        waiting = asyncio.create_task(agent.pause("x"))
        plane.decide(await plane.asked(), "rejected")
        assert (await waiting).rejected
        run.result = await agent.step("refund", Counted(), (1, 2))
    assert (plane.execution("run-1").status, plane.execution("run-1").result) == ("cancelled", [1, 2])
    assert plane.steps("run-1") == []


async def test_a_step_that_nobody_awaits_ends_with_its_run(plane: ControlPlane, agent: Agent) -> None:
    async with agent.execution("run-1"):
        left = asyncio.create_task(agent.step("a", lambda: asyncio.sleep(60)))
        late = agent.step("b", Counted())
        await asyncio.sleep(0.01)
    with pytest.raises(asyncio.CancelledError):
        await left
    with pytest.raises(NoExecution, match="over"):
        await late
    assert plane.steps("run-1") == []


@pytest.mark.parametrize("end", [StaleInstance, HandedBack])
async def test_a_run_that_was_given_away_does_no_more_steps(agent: Agent, end: Any) -> None:
    work = Counted()
    async with dying(agent) as run:
        run.interrupt(end())
        with pytest.raises(end):
            await agent.step("a", work)
    assert work.times == 0


@pytest.mark.parametrize("plain", [True, False])
async def test_nothing_is_done_until_it_is_sure_that_the_run_is_still_ours(
    plane: ControlPlane, agent: Agent, plain: bool
) -> None:
    work, known = Counted(), asyncio.Event()
    async with dying(agent) as run:
        run.confirmed = known.wait
        step = asyncio.to_thread(agent.step_sync, "a", work.plain) if plain else agent.step("a", work)
        doing = asyncio.create_task(step)
        await asyncio.sleep(0.02)
        assert work.times == 0
        run.interrupt(StaleInstance())
        known.set()
        with pytest.raises(StaleInstance):
            await doing
    assert (work.times, plane.steps("run-1")) == (0, [])


async def test_a_result_that_is_refused_fails_the_run(plane: ControlPlane, agent: Agent) -> None:
    @agent.reasoner()
    async def unstorable() -> None:
        await agent.step("a", lambda: float("nan"))

    with pytest.raises(RunFailed, match="TypeError: the result of step 'a' is no JSON"):
        await plane.call(agent, "unstorable", "run-1")
    assert plane.execution("run-1").status == "failed"


async def test_many_steps_cost_no_memory_of_what_is_behind(agent: Agent) -> None:
    async with agent.execution() as run:
        for number in range(100):
            await agent.step(f"step {number}", Counted())
        assert len(run.steps._chains._ranks) == len(run.steps._book._numbers) == 0


async def test_other_arguments_than_stored_are_told(
    plane: ControlPlane, agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    for each, day in ((agent, "mon"), (restarted(plane), "tue")):
        async with dying(each):
            assert await each.step("a", Counted(), day) == "mon"
    assert [record.message for record in caplog.records] == [
        "the stored result of step 'a' of run-1 was made with other arguments than this call has"
    ]


async def test_the_routes_of_steps(plane: ControlPlane) -> None:
    with Client(transport=plane.blocking_transport) as client:
        client.create_execution("n", "run-1")
        first = client.keep_step("run-1", "a", {"b": None}, occurrence=1, previous="")
        assert client.keep_step("run-1", "a", "other", occurrence=1, previous="") == first
        with pytest.raises(StepMismatch) as moved:
            client.keep_step("run-1", "a", {}, occurrence=1, previous="b#1")
        assert moved.value.details == {"previous": ""}
        with pytest.raises(StepTooLarge):
            client.keep_step("run-1", "b", "x" * MIB, occurrence=1)
        second = client.keep_step("run-1", "b", None, occurrence=1)
        page = client.list_steps("run-1", limit=1)
        assert (page.steps, page.next_after) == ([first], 1)
        page = client.list_steps("run-1", after=1)
        assert (page.steps, page.next_after) == ([second], None)
