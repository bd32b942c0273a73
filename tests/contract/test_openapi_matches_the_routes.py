"""The committed description is that of the code, it is whole, and near-valid nonsense after it never ends in a 5xx."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane.app import create_app, description
from controlplane.settings import Settings
from tests.app import in_process
from tests.postgres import Database

COMMITTED = Path(__file__).parents[2] / "sdk" / "openapi.json"
ROUNDS = 40
STATUSES = {
    "start_execution": {"200", "201"},
    "add_note": {"200", "201"},
    "keep_step": {"200", "201"},
    "approval_response": {"200", "202"},
    "execute": {"200", "202"},
    "execute_async": {"202"},
    "register_node": {"201"},
    "shut_down_node": {"202"},
    "ask_feedback": {"200", "201"},
}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return dict(json.loads(COMMITTED.read_bytes()))


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def inside(value: Any) -> Iterator[Any]:
    yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from inside(each)


def test_what_is_committed_is_what_the_code_describes():
    assert COMMITTED.read_bytes() == description(), "run `make openapi`"


def test_every_reference_resolves(document: dict[str, Any]):
    assert document["openapi"].startswith("3.1")
    for each in inside(document):
        reference = each.get("$ref") if isinstance(each, dict) else None
        if isinstance(reference, str):
            found: Any = document
            for part in reference.removeprefix("#/").split("/"):
                found = found[part]


def test_every_route_is_described_once_with_its_parameters_and_answers(document: dict[str, Any]):
    app = create_app(Settings())
    routed = {
        (re.sub(r"{(\w+):str}", r"{\1}", route.path), method.lower())
        for route in app.routes
        for handler in route.route_handlers
        if handler.resolve_include_in_schema()
        for method in handler.http_methods - {"OPTIONS"}
    }
    assert {(path, method) for path, method, _ in operations(document)} == routed
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(names)) == len(names)
    for path, _, operation in operations(document):
        placed = [each["name"] for each in operation.get("parameters", []) if each["in"] == "path"]
        assert placed == re.findall(r"{(\w+)}", path)
        good = {status for status in operation["responses"] if status < "300"}
        assert good == STATUSES.get(operation["operationId"], {"200"})
        assert {"400", "503"} < operation["responses"].keys()
        assert operation["description"]


def test_every_route_that_takes_a_body_describes_it(document: dict[str, Any]):
    bodiless = {"withdraw", "expire", "redrive_delivery"}
    for _, method, operation in operations(document):
        takes = method in {"post", "patch"} and operation["operationId"] not in bodiless
        assert ("requestBody" in operation) == takes


class Nonsense:
    """Values that are right, nearly right and wrong, from a seed."""

    def __init__(self, document: dict[str, Any], seed: int) -> None:
        self._schemas = document["components"]["schemas"]
        self._random = random.Random(seed)

    def body(self, schema: dict[str, Any]) -> Any:
        chance = self._random.random()
        if chance < 0.05:
            return self._anything(2)
        schema = self._schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        fields = schema.get("properties", {"requestId": {}, "decision": {}, "data": {}, "type": {}, "round": {}})
        required = schema.get("required", [])
        return {
            name: self._value(kind)
            for name, kind in fields.items()
            if self._random.random() < (0.95 if name in required else 0.4)
        }

    def text(self) -> str:
        return self._random.choice(
            [
                "",
                "a",
                "run-1",
                "q-1",
                "approved",
                "http://127.0.0.1:9/",
                "apr_x",
                "\u00e9\u4e2d",
                "%00",
                "a" * 300,
                "'\"--",
                "0",
            ]
        )

    def _value(self, schema: dict[str, Any]) -> Any:
        if self._random.random() < 0.15:
            return self._anything(2)
        if "$ref" in schema:
            return self._value(self._schemas[schema["$ref"].rpartition("/")[2]])
        if "anyOf" in schema:
            return self._value(self._random.choice(schema["anyOf"]))
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        return self._of_type(schema)

    def _of_type(self, schema: dict[str, Any]) -> Any:
        kind = schema.get("type")
        if kind in {"integer", "number"}:
            return self._random.choice([0, 1, 2, -1, 2**31 - 1, 2**31, 2**63, 0.5, 1e-9, schema.get("maximum", 3)])
        if kind == "array":
            return [self._value(schema.get("items", {})) for _ in range(self._random.randrange(3))]
        if kind == "string":
            least, most = schema.get("minLength", 0), schema.get("maxLength", 40)
            return self._random.choice([self.text(), "x" * least, "x" * most, "x" * (most + 1), "run-1"])
        return None if kind == "null" else self._anything(3)

    def _anything(self, depth: int) -> Any:
        plain: list[Any] = [None, True, False, 0, -1, 10**20, 1.5, self.text()]
        if not depth or self._random.random() < 0.5:
            return self._random.choice(plain)
        inner = [self._anything(depth - 1) for _ in range(self._random.randrange(3))]
        return inner if self._random.random() < 0.5 else {self.text(): each for each in inner}


async def test_near_valid_nonsense_never_ends_in_a_5xx(document: dict[str, Any], database: Database):
    nonsense, failed, answered = Nonsense(document, seed=20_260_101), [], set()
    async with in_process(database) as api:
        approval = await api.asked()
        for number in range(ROUNDS):
            for path, method, operation in operations(document):
                if path.endswith("/events"):
                    continue
                ids = {"execution_id": "run-1", "node_id": "node-1", "delivery_id": "dlv_1", "target": "node-1.a"}
                where = path.format(approval_id=approval, unique_id="a", **ids)
                query = {
                    each["name"]: nonsense.text() for each in operation.get("parameters", []) if each["in"] == "query"
                }
                query = {name: value for name, value in query.items() if number % 2 and name != "wait"}
                content = operation.get("requestBody", {}).get("content", {}).get("application/json")
                body = json.dumps(nonsense.body(content["schema"])).encode() if content else b""
                if path.endswith("/webhooks/approval-response"):
                    reply = await api.webhook(body)
                else:
                    headers = {"Content-Type": "application/json"}
                    body = re.sub(rb'"wait": [^,}]+', b'"wait": 0', body)
                    reply = await api.client.request(method, where, params=query, content=body, headers=headers)
                answered.add((operation["operationId"], reply.status_code // 100))
                if reply.status_code >= 500:
                    failed.append((method, where, body, reply.text))
    assert failed == []
    assert len({name for name, kind in answered if kind == 2}) > 15
