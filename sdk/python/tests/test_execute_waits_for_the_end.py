import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from holdshort import (
    AsyncClient,
    Client,
    ConnectionFailed,
    Execution,
    IdempotencyConflict,
    InvalidField,
    NotFound,
    Queued,
    Registration,
)
from holdshort._calling import Calling
from holdshort._core import Call, Reply
from holdshort._wire import Executed
from holdshort.testing import ControlPlane
from holdshort.testing._book import Ran

from sdk.python.tests.support import Wire, eventually, serving

Do = Callable[..., Awaitable[Any]]


@pytest.fixture(autouse=True)
async def registered(plane: ControlPlane) -> None:
    async with AsyncClient(transport=plane.transport) as client:
        await client.register_node(
            Registration(
                node_id="reviewer",
                base_url="http://agent.test",
                instance_id="one",
                version="1",
                reasoners=[{"name": "review", "resume": "when_decided"}],
                features={"replay": True, "fence": True},
            )
        )


@pytest.fixture(params=[AsyncClient, Client])
async def do(request: pytest.FixtureRequest, plane: ControlPlane) -> AsyncIterator[Do]:
    """Calls a method of either client."""
    blocking = Client(transport=plane.blocking_transport)
    awaited = AsyncClient(transport=plane.transport)

    async def call(method: str, *args: Any, **kwargs: Any) -> Any:
        if request.param is Client:
            return await asyncio.to_thread(getattr(blocking, method), *args, **kwargs)
        return await getattr(awaited, method)(*args, **kwargs)

    yield call
    blocking.close()
    await awaited.aclose()


async def made(plane: ControlPlane) -> Ran:
    """The run that a call made."""
    await eventually(lambda: plane._book.executions)
    (run,) = plane._book.executions.values()
    return run


def end(plane: ControlPlane, run: Ran, result: Any) -> None:
    with plane._changing():
        run.fence += 1
        plane._book.report(run, "succeeded", result, None)


async def test_the_run_at_its_end(plane: ControlPlane, do: Do) -> None:
    calling = asyncio.create_task(do("execute", "reviewer", "review", {"document": "d"}))
    run = await made(plane)
    assert (run.node_id, run.reasoner, run.input, run.status) == ("reviewer", "review", {"document": "d"}, "queued")
    end(plane, run, {"good": True})
    ended = await calling
    assert isinstance(ended, Execution)
    assert (ended.execution_id, ended.status, ended.result) == (run.execution_id, "succeeded", {"good": True})
    assert ended.dispatched


async def test_as_it_stands_when_the_time_is_up(plane: ControlPlane, do: Do) -> None:
    for wait in (0, 0.05):
        stands = await do("execute", "reviewer", "review", wait=wait, idempotency_key="k")
        assert (stands.status, stands.final) == ("queued", False)
    again = asyncio.create_task(do("execute", "reviewer", "review", wait=30, idempotency_key="k"))
    end(plane, await made(plane), 1)
    assert (await again).result == 1


async def test_at_once_without_waiting(plane: ControlPlane, do: Do) -> None:
    first = await do("execute_async", "reviewer", "review", [1], idempotency_key="k")
    again = await do("execute_async", "reviewer", "review", [1], idempotency_key="k")
    other = await do("execute_async", "reviewer", "review", [1])
    assert isinstance(first, Queued)
    assert (first.status, first.target) == ("queued", "reviewer.review")
    assert again.execution_id == first.execution_id
    assert other.execution_id != first.execution_id
    assert (await do("get_execution", first.execution_id)).input == [1]


async def test_what_cannot_be_run_is_an_error_that_says_what_can(do: Do) -> None:
    with pytest.raises(NotFound) as refused:
        await do("execute", "unknown", "review")
    assert (refused.value.code, refused.value.details["registered"]) == ("node_not_found", ["reviewer"])
    with pytest.raises(NotFound) as refused:
        await do("execute_async", "reviewer", "revue")
    assert (refused.value.code, refused.value.details["registered"]) == ("reasoner_not_found", ["review"])
    await do("execute_async", "reviewer", "review", 1, idempotency_key="k")
    with pytest.raises(IdempotencyConflict):
        await do("execute", "reviewer", "review", 2, idempotency_key="k")
    for key in ("x" * 256, "a\nb", "\u00e9"):
        with pytest.raises(InvalidField, match="idempotency_key"):
            await do("execute", "reviewer", "review", idempotency_key=key)


async def test_nodes_are_shown_with_their_instances(do: Do) -> None:
    (listed,) = (await do("list_nodes")).nodes
    assert listed == await do("get_node", "reviewer")
    assert [(each.instance_id, each.base_url, each.status) for each in listed.instances] == [
        ("one", "http://agent.test", "live")
    ]
    await do("heartbeat", "reviewer", "one", status="draining")
    assert (await do("get_node", "reviewer")).instances[0].status == "draining"
    assert (await do("hand_back", "reviewer", "one", [("run-1", 1)])).handed_back == []
    await do("shutdown_node", "reviewer", "one")
    assert (await do("get_node", "reviewer")).instances[0].status == "gone"
    with pytest.raises(NotFound):
        await do("heartbeat", "reviewer", "one")


@pytest.mark.parametrize("kind", [AsyncClient, Client])
async def test_restarts_of_the_control_plane_are_not_noticed(plane: ControlPlane, wire: Wire, kind: type) -> None:
    """Two restarts over real sockets, one of them longer than the client's own patience."""

    def blocking(url: str) -> Execution:
        with Client(url, patience=1) as client:
            return client.execute("reviewer", "review", [1], wait=30)

    async def awaited(url: str) -> Execution:
        async with AsyncClient(url, patience=1) as client:
            return await client.execute("reviewer", "review", [1], wait=30)

    held = "POST /api/v1/execute/reviewer.review"
    async with AsyncExitStack() as first:
        url = await first.enter_async_context(serving(wire))
        call = asyncio.to_thread(blocking, url) if kind is Client else awaited(url)
        calling = asyncio.create_task(call)
        run = await made(plane)
        with plane.away():
            await first.aclose()
    port = int(url.rsplit(":", 1)[1])
    async with AsyncExitStack() as second:
        await second.enter_async_context(serving(wire, port))
        # The first is short, so that it is known that the run was made.
        await eventually(lambda: plane.calls.count(held) >= 3)
        with plane.away():
            await second.aclose()
    longer = threading.Event()
    await asyncio.to_thread(longer.wait, 1.5)
    async with serving(wire, port):
        end(plane, run, "through both")
        assert (await calling).result == "through both"
    assert len(plane._book.executions) == 1


async def test_a_call_that_was_never_taken_fails_in_the_clients_own_time(plane: ControlPlane) -> None:
    with plane.away():
        for wait in (60, None):
            with pytest.raises(ConnectionFailed):
                await AsyncClient(transport=plane.transport, patience=0.05).execute("reviewer", "review", wait=wait)


def test_a_control_plane_that_answers_early_is_not_asked_in_a_loop() -> None:
    calling = Calling("reviewer", "review", None, wait=100, key=None)
    holds = []
    keys = set()
    for now, answered, pause in [(10.0, 10.1, 0.9), (11.0, 61.0, 0), (61.0, 61.1, 0.9), (105.0, 109.8, 0)]:
        call = calling.next(now)
        assert call is not None
        holds.append(call.hold)
        keys.add(call.headers["idempotency-key"])
        assert calling.took(Executed(execution_id="run-1", status="queued"), answered) == pytest.approx(pause)
    assert holds == [1, 50, 49, 5]
    assert len(keys) == 1
    assert calling.next(110.0) is None


def test_without_a_bound_it_is_asked_until_the_end() -> None:
    calling = Calling("reviewer", "review", None, wait=None, key="k")
    for now in (0.0, 1e6, 2e6):
        assert calling.next(now) is not None
        calling.took(Executed(execution_id="run-1", status="waiting"), now + 50)
        assert calling.patience(30) is None
    calling.took(Executed(execution_id="run-1", status="failed"), 3e6)
    assert calling.next(3e6) is None
    assert calling.execution_id == "run-1"


async def test_every_try_of_one_call_has_one_key(plane: ControlPlane) -> None:
    keys: list[str] = []

    class Losing:
        """Takes each call, and loses the first two answers."""

        async def exchange(self, call: Call[Any]) -> Reply:
            reply = await plane.transport.exchange(call)
            if "idempotency-key" in call.headers:
                keys.append(call.headers["idempotency-key"])
            return reply if len(keys) != 1 else Reply(502, {}, b"")

        async def aclose(self) -> None:
            pass

    client = AsyncClient(transport=Losing())  # type: ignore[arg-type]
    await client.execute_async("reviewer", "review")
    await client.execute_async("reviewer", "review")
    assert len(plane._book.executions) == 2
    assert keys[0] == keys[1] != keys[2]
