"""`app.ai` against a server that speaks as OpenAI's do, over a real socket."""

import asyncio
import dataclasses
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypedDict

import msgspec
import pytest
from holdshort import Agent, AiAnswerInvalid, AiFailed, MissingExtra, ModelUnknown, NoExecution
from holdshort._ai import _litellm
from holdshort.testing import ControlPlane, RunFailed

from sdk.python.tests.programs import dying, restarted

# Importing litellm for the first time compiles thousands of files.
pytestmark = pytest.mark.timeout(300)

KEY = "sk-never-to-be-stored"
MODEL = "openai/gpt-x"


@pytest.fixture(scope="module", autouse=True)
def litellm() -> Any:
    """Imported before the first test, so that no test's own times are of that."""
    return _litellm()


class Provider:
    """Answers with what is put into `answers`, one after the other, the last one for ever."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.answers: list[tuple[int, Any]] = [(200, "hello")]
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                provider.asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                provider.keys.append(self.headers["authorization"])
                status, answer = provider.answers.pop(0) if len(provider.answers) > 1 else provider.answers[0]
                body = json.dumps(answer if isinstance(answer, dict) else completion(answer)).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.options = {"api_base": f"http://127.0.0.1:{self._server.server_port}/v1", "api_key": KEY}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def completion(text: str | None, finish: str = "stop") -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    choices = [{"index": 0, "finish_reason": finish, "message": message}]
    known = {"id": "c1", "object": "chat.completion", "created": 1, "model": "gpt-x"}
    return {**known, "choices": choices, "usage": usage}


def refused(message: str, code: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "code": code}}


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider = Provider()
    yield provider
    provider.close()


class Clause(msgspec.Struct):
    number: int
    text: str = "none"


class Review(msgspec.Struct):
    risky: bool
    clauses: list[Clause] = []


@dataclasses.dataclass
class Party:
    default: str
    age: int = 3


class Row(TypedDict):
    amount: float


async def test_a_restarted_run_asks_nothing_again(
    plane: ControlPlane, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDSHORT_AI_MODEL", MODEL)
    for _ in range(2):
        each = restarted(plane)
        async with dying(each):
            assert await each.ai(system="be brief", user="hi", temperature=0.5, **provider.options) == "hello"
    (asked,) = provider.asked
    assert asked["model"] == "gpt-x"
    assert asked["messages"] == [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
    assert asked["temperature"] == 0.5
    assert "response_format" not in asked
    assert provider.keys == [f"Bearer {KEY}"]
    (step,) = plane.steps("run-1")
    assert (step.name, step.result) == ("ai", "hello")


class Recorded:
    """Keeps every byte that is sent to the control plane."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self.sent = b""

    async def exchange(self, call: Any) -> Any:
        self.sent += repr(call).encode()
        return await self._plane.transport.exchange(call)

    async def aclose(self) -> None:
        pass


async def test_no_key_is_ever_stored(plane: ControlPlane, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_API_KEY", "another-secret")
    said = f"Incorrect key {KEY}, nor is {'another-secret'} or bearer-123456"
    provider.answers = [(200, "fine"), (401, refused(said, "invalid_api_key"))]
    recorded, agent = Recorded(plane), Agent("contract-reviewer", "1")
    agent.use_transport(recorded)  # type: ignore[arg-type]

    @agent.reasoner()
    async def review() -> None:
        headers = {"extra_headers": {"x-auth": "bearer-123456"}}
        await agent.ai(user="hi", model=MODEL, **headers, **provider.options)
        await agent.ai(user="again", model=MODEL, **headers, **provider.options)

    with pytest.raises(RunFailed, match="AiFailed"):
        await plane.call(agent, "review", "run-1")
    error = plane.execution("run-1").error
    assert error.startswith("AiFailed: openai/gpt-x could not be asked: AuthenticationError")
    assert error.count("***") == 3
    for secret in (KEY, "another-secret", "bearer-123456", provider.options["api_base"]):
        assert secret.encode() not in recorded.sent
    assert len(provider.asked) == 2


SHAPED = [
    (Review, {"risky": True, "clauses": [{"number": 7, "text": "x"}]}, Review(True, [Clause(7, "x")])),
    (Party, {"default": "ann", "age": 4}, Party("ann", 4)),
    (Row, {"amount": 1.5}, {"amount": 1.5}),
    ({"type": "object", "properties": {"n": {"type": "integer"}}, "title": "a b"}, {"n": 1}, {"n": 1}),
]


@pytest.mark.parametrize(("schema", "answer", "value"), SHAPED)
async def test_an_answer_has_the_form_that_was_asked_for(
    plane: ControlPlane, provider: Provider, schema: Any, answer: Any, value: Any
) -> None:
    provider.answers = [(200, json.dumps(answer))]
    for _ in range(2):
        each = restarted(plane)
        async with dying(each):
            result = await each.ai(user="hi", model=MODEL, schema=schema, name="review", **provider.options)
            assert result == value
            assert type(result) is type(value)
    (asked,) = provider.asked
    sent = asked["response_format"]
    assert (sent["type"], sent["json_schema"]["strict"]) == ("json_schema", True)
    assert sent["json_schema"]["schema"]["type"] == "object"
    (step,) = plane.steps("run-1")
    assert (step.name, step.result) == ("review", answer)


async def test_a_schema_is_sent_as_strict_mode_wants_it(agent: Agent, provider: Provider) -> None:
    provider.answers = [(200, '{"risky":false,"clauses":[]}'), (200, '{"default":"x","age":1}')]
    async with agent.execution():
        await agent.ai(user="hi", model=MODEL, schema=Review, **provider.options)
        await agent.ai(user="hi", model=MODEL, schema=Party, **provider.options)
    review, party = (asked["response_format"]["json_schema"] for asked in provider.asked)
    assert review["name"] == "Review"
    assert review["schema"]["required"] == ["risky", "clauses"]
    assert review["schema"]["additionalProperties"] is False
    clause = review["schema"]["$defs"]["Clause"]
    assert (clause["required"], clause["additionalProperties"]) == (["number", "text"], False)
    assert clause["properties"]["text"] == {"type": "string"}
    assert party["schema"]["required"] == ["default", "age"]


async def test_pydantics_models_are_schemas_too(plane: ControlPlane, provider: Provider) -> None:
    import pydantic  # noqa: PLC0415  # comes with litellm

    class Address(pydantic.BaseModel):
        street: str = pydantic.Field(alias="st")

    class Person(pydantic.BaseModel):
        name: str = pydantic.Field(min_length=2)
        home: Address | None = None

    provider.answers = [(200, '{"name":"ann","home":{"st":"x"}}'), (200, '{"name":"a","home":null}')]
    for _ in range(2):
        each = restarted(plane)
        async with dying(each):
            person = await each.ai(user="hi", model=MODEL, schema=Person, **provider.options)
            assert person == Person(name="ann", home=Address(st="x"))
    assert len(provider.asked) == 1
    sent = provider.asked[0]["response_format"]["json_schema"]["schema"]
    assert sent["required"] == ["name", "home"]
    assert sent["$defs"]["Address"]["additionalProperties"] is False
    async with each.execution("run-2"):
        with pytest.raises(AiAnswerInvalid, match="at least 2 characters"):
            await each.ai(user="hi", model=MODEL, schema=Person, **provider.options)


NUMBERED = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
UNFIT = [
    (Review, '{"risky":"yes"}', "Expected `bool`, got `str`"),
    (Review, '{"clauses":[]}', "missing required field `risky`"),
    (Review, "I think it is risky.", "it is no JSON"),
    (Review, '{"risky":NaN}', "it is no JSON"),
    (Review, "[" * 5000, "it is no JSON"),
    (Review, None, "it has no text"),
    (None, None, "it has no text"),
    (None, "", "it has no text"),
    (NUMBERED, '{"n":"x"}', r"\$\.n: 'x' is not of type 'integer'"),
    (NUMBERED, "{}", "'n' is a required property"),
]


@pytest.mark.parametrize(("schema", "answer", "why"), UNFIT)
async def test_an_answer_that_does_not_fit_is_not_stored_and_asked_for_again(
    plane: ControlPlane, provider: Provider, schema: Any, answer: Any, why: str
) -> None:
    fit = {Review: '{"risky":true}', None: "text"}.get(schema if schema is not NUMBERED else 0, '{"n":1}')
    provider.answers = [(200, completion(answer)), (200, fit)]
    agent = restarted(plane)
    async with dying(agent):
        with pytest.raises(AiAnswerInvalid, match=why) as invalid:
            await agent.ai(user="hi", model=MODEL, schema=schema, **provider.options)
        assert invalid.value.details["answer"] == (answer or "")[:2000]
    assert plane.steps("run-1") == []
    again = restarted(plane)
    async with dying(again):
        await again.ai(user="hi", model=MODEL, schema=schema, **provider.options)
    assert len(provider.asked) == 2
    assert len(plane.steps("run-1")) == 1


async def test_an_answer_that_was_cut_off_says_so(agent: Agent, provider: Provider) -> None:
    provider.answers = [(200, completion('{"risky":', "length"))]
    async with agent.execution():
        with pytest.raises(AiAnswerInvalid, match="cut off, so raise max_tokens"):
            await agent.ai(user="hi", model=MODEL, schema=Review, **provider.options)


async def test_trying_again_in_the_run_is_the_same_step(plane: ControlPlane, provider: Provider) -> None:
    provider.answers = [(200, "no"), (200, '{"risky":true}')]

    async def reviewed(agent: Agent) -> Review:
        while True:
            try:
                return await agent.ai(user="hi", model=MODEL, schema=Review, **provider.options)
            except AiAnswerInvalid:
                continue

    for _ in range(2):
        each = restarted(plane)
        async with dying(each):
            assert await reviewed(each) == Review(True)
    assert len(provider.asked) == 2
    assert [step.occurrence for step in plane.steps("run-1")] == [1]


async def test_questions_side_by_side_get_their_own_answers(plane: ControlPlane, provider: Provider) -> None:
    provider.answers = [(200, "a"), (200, "b"), (200, "c")]
    seen = []
    for _ in range(2):
        each = restarted(plane)
        async with dying(each):
            calls = (each.ai(user=f"{n}", model=MODEL, **provider.options) for n in range(3))
            seen.append(await asyncio.gather(*calls))
    assert seen[0] == seen[1]
    assert sorted(seen[0]) == ["a", "b", "c"]
    assert len(provider.asked) == 3


async def test_inside_a_step_it_is_a_part_of_it(plane: ControlPlane, agent: Agent, provider: Provider) -> None:
    provider.answers = [(200, '{"risky":true}')]

    async def look() -> bool:
        return (await agent.ai(user="hi", model=MODEL, schema=Review, **provider.options)).risky

    async with agent.execution("run-1"):
        assert await agent.step("look", look) is True
    assert [step.name for step in plane.steps("run-1")] == ["look"]


async def test_what_is_missing_is_named(agent: Agent, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    provider.answers = [(200, "3")]
    with pytest.raises(NoExecution):
        agent.ai(user="hi")
    async with agent.execution():
        with pytest.raises(ModelUnknown, match="HOLDSHORT_AI_MODEL"):
            await agent.ai(user="hi", **provider.options)
        with pytest.raises(TypeError, match="messages, stream"):
            agent.ai(user="hi", model=MODEL, stream=True, messages=[])
        for schema in (list[int], int, complex):
            with pytest.raises(TypeError):
                agent.ai(user="hi", model=MODEL, schema=schema)
        with pytest.raises(TypeError, match="no JSON Schema"):
            await agent.ai(user="hi", model=MODEL, schema={"type": 3}, **provider.options)
        with pytest.raises(AiFailed, match="could not be asked") as failed:
            await agent.ai(user="hi", model="nobody", **provider.options)
        assert failed.value.__cause__ is not None
        monkeypatch.setitem(sys.modules, "litellm", None)
        with pytest.raises(MissingExtra, match=r"pip install 'holdshort\[ai\]'"):
            await agent.ai(user="other", model=MODEL, **provider.options)


def test_importing_the_sdk_imports_none_of_it() -> None:
    code = "import sys, holdshort; print([m for m in ('litellm', 'jsonschema', 'pydantic') if m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
