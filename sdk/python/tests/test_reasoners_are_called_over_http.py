import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

import httpx
import msgspec
import pytest
from holdshort import Agent
from holdshort.testing import ControlPlane
from litestar import Litestar, asgi
from litestar.types import Receive, Scope, Send

from sdk.python.tests.support import Wire, eventually, serving


class Clause(msgspec.Struct):
    number: int
    text: str = ""


class Outline(msgspec.Struct):
    text: str


@pytest.fixture
async def http(agent: Agent) -> AsyncIterator[httpx.AsyncClient]:
    @agent.reasoner("review", timeout_seconds=5)
    async def _(
        document: str,
        clauses: list[Clause] | None = None,
        mode: Literal["fast", "slow"] = "fast",
        limit: Annotated[int, msgspec.Meta(ge=1)] = 3,
    ) -> dict[str, Any]:
        return {"document": document, "clauses": [each.number for each in clauses or []], "mode": mode, "limit": limit}

    @agent.reasoner()
    async def breaks() -> None:
        raise RuntimeError("no such file")

    @agent.reasoner()
    async def unstorable() -> object:
        return object()

    @agent.reasoner()
    async def awaits_a_cancelled_task() -> None:
        task = asyncio.create_task(asyncio.Event().wait())
        task.cancel()
        await task

    @agent.reasoner()
    async def asks() -> str:
        return (await agent.pause("x")).decision

    async with serving(agent.asgi) as url, httpx.AsyncClient(base_url=url) as client:
        yield client


async def test_the_result_and_its_execution(plane: ControlPlane, http: httpx.AsyncClient) -> None:
    answer = await http.post("/reasoners/review", json={"document": "d", "clauses": [{"number": 7}]})
    assert answer.status_code == 200
    body = answer.json()
    assert (body["status"], body["result"]["clauses"], body["result"]["limit"]) == ("succeeded", [7], 3)
    kept = plane.execution(body["execution_id"])
    assert (kept.status, kept.reasoner, kept.result) == ("succeeded", "review", body["result"])
    assert kept.input == {"document": "d", "clauses": [{"number": 7}]}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "document"),
        ({"document": 3}, "document"),
        ({"document": "d", "clauses": [{"number": "x"}]}, "clauses[0].number"),
        ({"document": "d", "mode": "medium"}, "mode"),
        ({"document": "d", "limit": 0}, "limit"),
        ({"document": "d", "other": 1}, "other"),
        ([], "input"),
        ("text", "input"),
    ],
)
async def test_input_that_does_not_fit_names_the_field(
    plane: ControlPlane, http: httpx.AsyncClient, given: Any, field: str
) -> None:
    answer = await http.post("/reasoners/review", json=given)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["errors"][0]["field"] == field
    assert "Traceback" not in answer.text
    assert plane.calls == []


async def test_a_run_that_raises_is_an_error_without_a_traceback(plane: ControlPlane, http: httpx.AsyncClient) -> None:
    answer = await http.post("/reasoners/breaks", headers={"X-Execution-ID": "run-1"})
    assert answer.status_code == 500
    body = answer.json()
    assert (body["error"], body["execution_id"], body["execution_status"]) == ("run_failed", "run-1", "failed")
    assert body["message"] == "RuntimeError: no such file"
    assert "Traceback" not in answer.text
    assert plane.execution("run-1").error == body["message"]
    for number, name in enumerate(("unstorable", "awaits_a_cancelled_task")):
        answer = await http.post(f"/reasoners/{name}", headers={"X-Execution-ID": f"failed-{number}"})
        assert (answer.status_code, plane.execution(f"failed-{number}").status) == (500, "failed")


async def test_a_caller_that_goes_away_does_not_end_the_run(plane: ControlPlane, http: httpx.AsyncClient) -> None:
    named = {"X-Execution-ID": "run-1"}
    calling = asyncio.create_task(http.post("/reasoners/asks", headers=named))
    await plane.asked()
    calling.cancel()
    await asyncio.gather(calling, return_exceptions=True)
    again = asyncio.create_task(http.post("/reasoners/asks", headers=named))
    plane.decide("x", "approved")
    assert (await again).json() == {"execution_id": "run-1", "status": "succeeded", "result": "approved"}
    assert len(plane.approvals()) == 1


async def test_a_rejected_run_says_so(plane: ControlPlane, http: httpx.AsyncClient) -> None:
    calling = asyncio.create_task(http.post("/reasoners/asks", headers={"X-Execution-ID": "run-1"}))
    plane.decide(await plane.asked(), "rejected", "no")
    assert (await calling).json() == {"execution_id": "run-1", "status": "cancelled", "result": "rejected"}
    calling = asyncio.create_task(http.post("/reasoners/asks", headers={"X-Execution-ID": "run-2"}))
    await plane.asked()
    plane.cancel("run-2", "stop it")
    answer = await calling
    assert (answer.status_code, answer.json()["error"]) == (409, "execution_cancelled")
    assert answer.json()["execution_status"] == "cancelled"


async def test_what_the_agent_does_not_serve(agent: Agent, http: httpx.AsyncClient, plane: ControlPlane) -> None:
    assert (await http.get("/nothing")).status_code == 404
    assert (await http.post("/reasoners/unknown")).json()["error"] == "reasoner_not_found"
    assert (await http.get("/reasoners/review")).headers["allow"] == "POST"
    assert (await http.post("/health")).status_code == 405
    assert (await http.post("/reasoners/review", content=b"{")).status_code == 400
    assert (await http.post("/reasoners/review", content=b"x" * 1_100_000)).status_code == 413
    for bad in (b"a b", b"x" * 129, "\u00e9".encode()):
        answer = await http.post("/reasoners/asks", headers=[(b"x-execution-id", bad)])
        assert answer.status_code == 422
    plane._book.create("another-node", "taken")
    answer = await http.post("/reasoners/asks", headers={"X-Execution-ID": "taken"})
    assert (answer.status_code, answer.json()["error"]) == (409, "execution_exists")
    health = (await http.get("/health")).json()
    assert (health["status"], health["node_id"]) == ("ok", "contract-reviewer")
    assert {"name": "review", "timeout_seconds": 5, "resume": "when_decided"} in health["reasoners"]


async def test_only_work_counts_towards_the_time_limit(plane: ControlPlane, agent: Agent) -> None:
    forever = asyncio.Event()

    @agent.reasoner(timeout_seconds=0.2)
    async def limited() -> None:
        await agent.pause("x")
        await forever.wait()

    calling = asyncio.create_task(agent.asgi.call("limited", {}, "run-1"))
    await plane.asked()
    loop = asyncio.get_running_loop()
    waited_from = loop.time()
    await eventually(lambda: loop.time() - waited_from > 0.3)
    assert plane.execution("run-1").status == "waiting"
    plane.decide("x", "approved")
    answer = await calling
    assert (answer.status, answer.body["error"]) == (500, "execution_timeout")
    assert plane.execution("run-1").status == "timeout"


def test_what_cannot_be_called_by_name_is_refused_at_once(agent: Agent) -> None:
    with pytest.raises(TypeError, match="kwargs"):

        @agent.reasoner()
        async def anything(**kwargs: Any) -> None: ...

    @agent.reasoner()
    async def taken() -> None: ...

    with pytest.raises(ValueError, match="taken"):
        agent.reasoner("taken")(taken)
    with pytest.raises(TypeError, match="parentheses"):
        agent.reasoner(taken)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="callback"):
        Agent("n", "1", callback="poll")  # type: ignore[arg-type]


async def test_an_annotation_no_json_can_become_stops_the_start(agent: Agent) -> None:
    @agent.reasoner()
    async def impossible(either: Clause | Outline) -> None: ...

    sent: list[Any] = []
    messages = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(message["type"])

    await agent.asgi({"type": "lifespan"}, receive, send)
    assert sent == ["lifespan.startup.failed", "lifespan.shutdown.complete"]


async def test_mounted_in_litestar_and_below_a_root_path(plane: ControlPlane, agent: Agent) -> None:
    @agent.reasoner()
    async def hello(name: str) -> str:
        return f"hello {name}"

    @asgi("/agent", is_mount=True, copy_scope=True)
    async def mounted(scope: Scope, receive: Receive, send: Send) -> None:
        await agent.asgi(scope, receive, send)  # type: ignore[arg-type]

    async def below(scope: Any, receive: Any, send: Any) -> None:
        await agent.asgi({**scope, "root_path": "/agent"}, receive, send)

    for app in (Litestar([mounted]), Litestar([asgi("/agent", is_mount=True, copy_scope=True)(agent.asgi)]), below):
        async with serving(app) as url, httpx.AsyncClient(base_url=url) as client:
            answer = await client.post("/agent/reasoners/hello", json={"name": "you"})
            assert answer.json()["result"] == "hello you"
            assert (await client.get("/agent/health")).status_code == 200


async def test_the_whole_way_over_real_sockets_through_a_restart_of_the_control_plane(
    plane: ControlPlane, wire: Wire
) -> None:
    async with serving(wire) as url:
        agent = Agent("n", "1", url)

        @agent.reasoner()
        async def asks() -> str:
            return (await agent.pause("x")).feedback

        waiting = asyncio.create_task(agent.asgi.call("asks", {}, "run-1"))
        await plane.asked()
        await eventually(lambda: "POST /api/v1/approvals/wait" in plane.calls)
    plane.decide("x", "approved", "while it was away")
    async with serving(wire, int(url.rsplit(":", 1)[1])):
        assert (await waiting).body["result"] == "while it was away"
    assert plane.calls.count("POST /api/v1/executions/run-1/request-approval") == 1


async def test_the_callback_alone_resumes_over_real_sockets(plane: ControlPlane, wire: Wire) -> None:
    async with serving(wire) as url:
        agent = Agent("n", "1", url, callback="push")

        @agent.reasoner()
        async def asks() -> str:
            return (await agent.pause("x")).feedback

        async with serving(agent.asgi) as served, httpx.AsyncClient(base_url=served) as client:
            agent.reachable_at(served)
            calling = asyncio.create_task(client.post("/reasoners/asks"))
            approval = await plane.asked()
            plane.decide(approval, "approved", "told")
            assert (await wire.push(approval)).json() == {"resolved": True}
            assert (await calling).json()["result"] == "told"
