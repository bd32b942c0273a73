"""Requests made from the API's description, with a key of each scope: every answer is one that it describes.

A real application on loopback and PostgreSQL answers, without workers, so that nothing is sent anywhere; no name that
was made up is looked up. Waits are cut short and streams left after their first piece.
"""

import asyncio
import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from controlplane.delivery.gate import Gate
from controlplane.delivery.resolver import Resolver
from controlplane.domain.keys import ENTROPY_BYTES
from controlplane.domain.signatures import sign_hex
from controlplane.services import access
from controlplane.services.access import Wanted
from tests.app import SECRET, Api
from tests.http.walk import PUBLIC_KEY
from tests.keys import SETUP

COMMITTED = Path(__file__).parents[2] / "sdk" / "openapi.json"
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
CALLERS: dict[str, Wanted | None] = {
    "nobody": None,
    "agent of a node": Wanted(name="bound", scopes=("agent",), node_id="node-1"),
    "agent": Wanted(name="unbound", scopes=("agent",)),
    "review": Wanted(name="review", scopes=("review",)),
    "admin": Wanted(name="admin", scopes=("admin",)),
}
AGENT = "http://93.184.215.14/"
LONGEST_WAIT = 0.02
ANSWERED_WITHIN = 20.0


@dataclass
class Survey:
    """What came of it all."""

    cases: int = 0
    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    @property
    def server_errors(self) -> int:
        return sum(count for (_, status), count in self.statuses.items() if status >= 500)

    @property
    def undocumented(self) -> int:
        """Answers that are not as described, and requests that were not answered at all."""
        return self.faults.total()

    @property
    def succeeded(self) -> set[str]:
        """The operations that were answered with what they are for."""
        return {name for name, status in self.statuses if 200 <= status < 300}

    def note(self, fault: str, example: str) -> None:
        self.faults[fault] += 1
        self.examples.setdefault(fault, example[:600])

    def told(self) -> str:
        return "\n".join(f"{count} x {fault}\n  {self.examples[fault]}" for fault, count in self.faults.most_common())


async def survey(
    api: Api,
    seen: Survey,
    *,
    examples: int,
    at: int,
    document: dict[str, Any] | None = None,
    only: frozenset[str] = frozenset(),
) -> Survey:
    """Call every operation as everybody, with right and wrong requests.

    Args:
        api: a served application on an empty database.
        seen: counted into, so that whoever waits can look.
        examples: requests of each kind (right ones, right ones with ids of something that is there, wrong ones).
        at: the seed.
        document: the description; what is committed where none is given.
        only: the operations that are called; all of them where none is named.
    """
    api.runtime.egress = Gate(api.runtime.egress._policy, Resolver(lambda _: []))
    keys = {name: await _key(api, wanted) for name, wanted in CALLERS.items()}
    await api.runtime.settle_access()
    described = document or json.loads(COMMITTED.read_bytes())
    description = schemathesis.openapi.from_dict(described, config=SchemathesisConfig.from_dict({}))
    description.config.generation.with_security_parameters = False
    operations = [each.ok() for each in description.get_all_operations()]
    wanted = [each for each in operations if not only or _name(each) in only]
    await asyncio.to_thread(_survey, api.base, keys, wanted, examples, at, seen)
    return seen


def _survey(
    base: str, keys: dict[str, str | None], operations: list[APIOperation], examples: int, at: int, seen: Survey
) -> None:
    with requests.Session() as session:
        session.trust_env = False
        callers = [_Caller(session, base, name, key, seen) for name, key in keys.items()]
        for number, operation in enumerate(operations):
            ids = _ids(session, base, keys, f"run-{number}")
            for mode, fixed in _kinds(operation, ids):
                _call(callers, operation, examples, at, mode=mode, fixed=fixed)


def _name(operation: APIOperation) -> str:
    return str(operation.definition.raw.get("operationId"))


def _kinds(operation: APIOperation, ids: dict[str, str]) -> Iterator[tuple[GenerationMode, dict[str, str]]]:
    names = {each.name for each in operation.path_parameters}
    yield GenerationMode.POSITIVE, {}
    if names:
        yield GenerationMode.POSITIVE, {name: ids[name] for name in names}
        yield GenerationMode.NEGATIVE, {name: ids[name] for name in names}
    if names or operation.query or operation.body or operation.headers:
        yield GenerationMode.NEGATIVE, {}


def _call(
    callers: "list[_Caller]",
    operation: APIOperation,
    examples: int,
    at: int,
    *,
    mode: GenerationMode,
    fixed: dict[str, str],
) -> None:
    cases = operation.as_strategy(mode, path_parameters=fixed or None)

    @seed(at)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases, signed=st.booleans())
    def called(case: Case, signed: bool) -> None:
        for caller in callers:
            caller.call(case, signed=signed)

    with suppress(Unsatisfiable):  # nothing is wrong where nothing can be sent
        called()


class _Caller:
    """Sends as somebody, and judges what is answered."""

    def __init__(self, session: requests.Session, base: str, name: str, key: str | None, seen: Survey) -> None:
        self._session = session
        self._base = base
        self._name = name
        self._key = key
        self._seen = seen

    def call(self, case: Case, *, signed: bool) -> None:
        sent = case.as_transport_kwargs(base_url=self._base)
        _shorten(case, sent)
        headers = sent.setdefault("headers", {})
        if self._key is not None:
            headers["X-API-Key"] = self._key
        if "webhooks" in case.operation.path and signed:
            sent["data"] = json.dumps(sent.pop("json", {})).encode()
            headers["X-Webhook-Signature"] = sign_hex(SECRET, sent["data"])
        sent["stream"] = case.operation.path.endswith("/events")
        operation = _name(case.operation)
        self._seen.cases += 1
        try:
            reply = self._session.request(**sent, timeout=ANSWERED_WITHIN)
        except requests.RequestException as fault:
            self._seen.note(f"{operation}: no answer ({type(fault).__name__})", repr(sent))
            return
        self._seen.statuses[operation, reply.status_code] += 1
        self._judge(case, operation, reply, sent)

    def _judge(self, case: Case, operation: str, reply: requests.Response, sent: dict[str, Any]) -> None:
        if reply.status_code == 200 and reply.headers["content-type"].startswith("text/event-stream"):
            next(reply.iter_content(64))
            reply.close()
            if not sent["stream"]:
                self._seen.note(f"{operation}: a stream that is not described", repr(sent))
            return
        try:
            case.validate_response(reply, checks=CHECKS)  # type: ignore[arg-type]
        except FailureGroup as failures:
            for failure in failures.exceptions:
                self._note(operation, reply, sent, failure)

    def _note(self, operation: str, reply: requests.Response, sent: dict[str, Any], failure: Exception) -> None:
        title = failure.title if isinstance(failure, Failure) else type(failure).__name__
        told = failure.message if isinstance(failure, Failure) else str(failure)
        self._seen.note(
            f"{operation} answered {reply.status_code}: {title}", f"{self._name} {sent} -> {reply.text[:200]} {told}"
        )


def _shorten(case: Case, sent: dict[str, Any]) -> None:
    """Let no wait be longer than a moment; what is no number stays what it is."""
    if any(each.name == "wait" for each in case.operation.query):
        sent.setdefault("params", {}).setdefault("wait", LONGEST_WAIT)
    for place in (sent.get("params"), sent.get("json")):
        if isinstance(place, dict) and place.get("wait") is True:
            place["wait"] = False
        elif isinstance(place, dict) and _number(place.get("wait")) > LONGEST_WAIT:
            place["wait"] = LONGEST_WAIT


def _number(value: object) -> float:
    try:
        return float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else 0.0
    except (ValueError, OverflowError):
        return 0.0


def _ids(session: requests.Session, base: str, keys: dict[str, str | None], run: str) -> dict[str, str]:
    """A run that asks, its node, and a short-lived question, as they stand before anybody calls."""
    headers = {"X-API-Key": str(keys["agent of a node"])}

    def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
        reply = session.post(f"{base}/api/v1{path}", json=body, headers=headers, timeout=ANSWERED_WITHIN)
        reply.raise_for_status()
        return dict(reply.json())

    instance = {
        "node_id": "node-1",
        "base_url": "http://93.184.215.14",
        "instance_id": "i-1",
        "reasoners": [{"name": "work"}],
    }
    post("/nodes/register", instance)
    post("/executions", {"node_id": "node-1", "execution_id": run})
    asked = post(
        f"/executions/{run}/request-approval", {"approval_request_id": "q-1", "callback_url": "http://93.184.215.14/"}
    )
    post("/human-feedback", {"unique_id": f"f-{run}", "message_for_user": "m", "public_key": PUBLIC_KEY})
    return {
        "execution_id": run,
        "unique_id": f"f-{run}",
        "node_id": "node-1",
        "approval_id": str(asked["approval_id"]),
        "delivery_id": "dlv_0",
        "target": "node-1.work",
    }


async def _key(api: Api, wanted: Wanted | None) -> str | None:
    if wanted is None:
        return None
    async with api.runtime.transaction() as conn:
        return (await access.create(conn, wanted, entropy=os.urandom(ENTROPY_BYTES), actor=SETUP))[1]
