"""What a step returns is the same value whether it was done or found."""

import dataclasses
import datetime as dt
import decimal
import enum
import functools
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypedDict, Union
from uuid import UUID

import msgspec
import pytest
from holdshort import Agent
from holdshort.testing import ControlPlane

from sdk.python.tests.programs import dying, restarted


class Clause(msgspec.Struct):
    number: int
    at: dt.datetime


@dataclasses.dataclass
class Party:
    name: str
    clauses: list[Clause]


class Row(TypedDict):
    amount: decimal.Decimal
    day: dt.date


class Colour(enum.Enum):
    RED = "red"


class Model:
    """Looks like one of pydantic's models, which are known by these two."""

    def __init__(self, number: int) -> None:
        self.number = number

    def model_dump(self, mode: str, **_: bool) -> dict[str, Any]:
        assert mode == "json"
        return {"number": self.number}

    @classmethod
    def model_validate(cls, value: dict[str, Any]) -> "Model":
        if value["number"] < 0:
            raise ValueError("number is negative")
        return cls(value["number"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and other.number == self.number

    __hash__ = None  # type: ignore[assignment]


NOW = dt.datetime(2030, 1, 1, 12, 30, tzinfo=dt.UTC)
CLAUSE = Clause(7, NOW)


def returning(kind: Any, value: Any) -> Callable[[], Any]:
    def function() -> Any:
        return value

    function.__annotations__["return"] = kind
    return function


def coroutine_of(kind: Any, value: Any) -> Callable[[], Any]:
    async def function() -> Any:
        return value

    function.__annotations__["return"] = kind
    return function


TYPED = [
    (Clause, CLAUSE),
    (Party, Party("ann", [CLAUSE])),
    (Row, {"amount": decimal.Decimal("1.10"), "day": NOW.date()}),
    (list[Clause] | None, [CLAUSE]),
    (list[Clause] | None, None),
    (dict[int, Colour], {3: Colour.RED}),
    (tuple[int, bytes], (1, b"\xff\0")),
    (frozenset[str], frozenset("ab")),
    (dt.datetime, NOW),
    (UUID, UUID(int=5)),
    (float, 3.0),
    (Model, Model(4)),
    (list[Model], [Model(4), Model(5)]),
    (Any, {"a": [1, 2.5, "ü", None, True]}),
    (None, None),
]


@pytest.mark.parametrize(("kind", "value"), TYPED)
@pytest.mark.parametrize("make", [returning, coroutine_of])
async def test_annotated_results(plane: ControlPlane, agent: Agent, make: Any, kind: Any, value: Any) -> None:
    seen = []
    for each in (agent, restarted(plane)):
        async with dying(each):
            seen.append(await each.step("a", make(kind, value)))
    assert seen == [value, value]
    assert [type(each) for each in seen] == [type(value)] * 2


class Unknown:
    pass


PLAIN = [
    ((1, {2: b"x"}), Any, [1, {"2": "eA=="}]),
    (CLAUSE, Any, {"number": 7, "at": "2030-01-01T12:30:00Z"}),
    ([1, 2], Iterable[int], [1, 2]),
    ([1, 2], Unknown, [1, 2]),
    ([1, 2], Union[set[int], list[int]], [1, 2]),  # noqa: UP007  # as older code writes it
    ([1, 2], "NotDefinedAnywhere", [1, 2]),
    (2**80, Any, 2**80),
]


@pytest.mark.parametrize(("value", "kind", "plain"), PLAIN)
async def test_results_without_a_type_that_json_is_converted_to(
    plane: ControlPlane, agent: Agent, value: Any, kind: Any, plain: Any
) -> None:
    for each in (agent, restarted(plane)):
        async with dying(each):
            assert await each.step("a", returning(kind, value)) == plain


async def test_annotations_of_other_callables(agent: Agent) -> None:
    class Maker:
        def method(self) -> Clause:
            return CLAUSE

        def __call__(self) -> Clause:
            return CLAUSE

        async def later(self) -> Clause:
            return CLAUSE

    def starts() -> Awaitable[Clause]:
        return Maker().later()

    async with agent.execution():
        for number, function in enumerate([Maker().method, Maker(), starts, functools.partial(Maker().method)]):
            assert await agent.step(f"{number}", function) == CLAUSE
        assert await agent.step("class", Clause, 7, NOW) == CLAUSE


BAD = [float("nan"), float("inf"), {"a": [None, float("-inf")]}, object(), {"a": {1j}}, "\ud800", Mapping]
LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize("value", [*BAD, LOOP], ids=lambda value: type(value).__name__)
async def test_what_is_no_json_is_told_and_not_stored(plane: ControlPlane, agent: Agent, value: Any) -> None:
    async with agent.execution("run-1"):
        with pytest.raises(TypeError, match=r"^the result of step 'a' is no JSON, so nothing was stored: \S"):
            await agent.step("a", lambda: value)
        assert await agent.step("b", lambda: [None]) == [None]
    assert [step.name for step in plane.steps("run-1")] == ["b"]


@pytest.mark.parametrize(("kind", "value"), [(int, "x"), (Clause, {"number": 1}), (Model, {"number": -1})])
async def test_what_is_not_as_annotated_is_told_and_not_stored(
    plane: ControlPlane, agent: Agent, kind: Any, value: Any
) -> None:
    async with agent.execution("run-1"):
        with pytest.raises(TypeError, match=r"^the result of step 'a' is not what its annotation says: \S"):
            await agent.step("a", returning(kind, value))
    assert plane.steps("run-1") == []
