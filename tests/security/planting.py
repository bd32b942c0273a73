"""The secrets of one run of servers, and requests that carry them to where they belong and to where they do not."""

import base64
import json
import os
import re
import time
from collections.abc import Iterator
from functools import reduce
from typing import Any, NamedTuple

import httpx
from holdshort.webhooks import sign

from controlplane.domain import keys
from controlplane.http.routes import TABLE
from tests.http.walk import PUBLIC_KEY
from tests.security.canaries import Aviary
from tests.security.recipes import RECIPES, Ids, Recipe

STREAM_SECONDS = 0.5
TOO_LARGE = "too large"
MIB = 1024 * 1024
# Fields that take any JSON, and those of older agents that are taken whatever stands in them.
ANYTHING = {"input", "context", "result", "payload", "response", "tags", "unknown", "execution_ids"}
NAMED_TWICE = "named_twice"
# Whose cap is 8 MiB; all others' is one.
LARGE = {"start_execution", "report_status", "keep_step", "register_node", "take_event", "take_logs", "execute"}
LARGE |= {"execute_async", "refuse_identity"}
_PLACE = re.compile(r"\{(\w+):str\}")


class Route(NamedTuple):
    """A route as it is called: the name of its function, its method, its path with names in braces."""

    name: str
    method: str
    path: str

    def at(self, values: dict[str, str]) -> str:
        """The path with values for its names, under the prefix of the API."""
        prefix = "" if self.path.startswith(("/health", "/api/")) else "/api/v1"
        named: list[str] = _PLACE.findall(self.path)
        return prefix + reduce(lambda path, name: path.replace(f"{{{name}:str}}", values[name]), named, self.path)


class Answer(NamedTuple):
    """What came back, and to what."""

    about: str
    status: int
    content: bytes


def routes() -> list[Route]:
    """Every method and path that the table has."""
    return [
        Route(handler.fn.__name__, method, path)
        for handlers in TABLE.values()
        for handler in handlers
        for path in sorted(handler.paths)
        for method in sorted(handler.http_methods - {"OPTIONS"})
    ]


class Caller:
    """Sends requests to one server and keeps each answer.

    Args:
        aviary: where what is sent is planted.
        base: the server's address.
        held: the key of each scope.
        secret: what webhooks are signed with.
    """

    def __init__(self, aviary: Aviary, base: str, held: dict[str, str], secret: str) -> None:
        self.aviary = aviary
        self.base = base
        self.held = held
        self.secret = secret
        self.answers: list[Answer] = []
        self._unknown = keys.mint(os.urandom(keys.ENTROPY_BYTES))[1]
        self._misplaced_key = keys.mint(os.urandom(keys.ENTROPY_BYTES))[1]
        self._digits = os.urandom(32).hex()
        # A connection each: a server that threw a body away may close the one that it came by.
        fresh = httpx.Limits(max_keepalive_connections=0)
        self.client = httpx.AsyncClient(base_url=base, timeout=30, trust_env=False, limits=fresh)

    async def send(self, about: str, method: str, path: str, headers: dict[str, str], content: bytes | None) -> Answer:
        """One request; a stream is read for half a second."""
        parts = [b""]
        status = 0
        # From another address each time, so that what is limited by address never is.
        streams = path.partition("?")[0].endswith("/events")
        headers = {"X-Forwarded-For": f"203.0.113.{os.urandom(1)[0]}"} | headers
        try:
            async with self.client.stream(
                method,
                path,
                headers=[(name.encode(), value.encode("latin-1")) for name, value in headers.items()],
                content=content,
                timeout=httpx.Timeout(30, read=STREAM_SECONDS if streams else 30),
            ) as reply:
                status = reply.status_code
                parts = [repr(reply.headers.multi_items()).encode()]
                async for part in reply.aiter_raw():
                    parts.append(part)
        except httpx.ReadTimeout as fault:
            if not streams:
                raise AssertionError(f"no answer: {about}") from fault
        except httpx.TransportError as fault:
            # A server that throws the rest of a body away may close before all of it is sent; a stream that breaks
            # has begun already.
            if not (streams or TOO_LARGE in about):
                raise AssertionError(about) from fault
        answer = Answer(f"{about}: {method} {path[:200]} -> {status}", status, b"\n".join(parts))
        self.answers.append(answer)
        return answer

    async def good(self, route: Route, ids: Ids, about: str) -> Answer:
        """The request that the route is for."""
        recipe = RECIPES[route.name]
        content = None if recipe.body is None else json.dumps(recipe.body(self.aviary, ids)).encode()
        headers = self.proof(recipe, content or b"") | recipe.headers(self.aviary, ids)
        return await self.send(about, route.method, f"{route.at(values(recipe, ids))}?{recipe.query}", headers, content)

    async def bad(self, route: Route, ids: Ids) -> None:
        """Every wrong way of asking this route."""
        recipe = RECIPES[route.name]
        path = f"{route.at(values(recipe, ids))}?{recipe.query}&"
        body = json.dumps({} if recipe.body is None else recipe.body(self.aviary, ids)).encode()
        for about, headers, query in self._misplaced(recipe, body):
            await self.send(f"{route.name} {about}", route.method, path + query, headers, wrapped(route, body))
        await self._key_in_path(route, recipe, ids, body)
        if recipe.body is not None:
            cap = 8 * MIB if route.name in LARGE else MIB
            for about, content in self._wrong(body, cap):
                headers = self.proof(recipe, content) | recipe.headers(self.aviary, ids)
                await self.send(f"{route.name} {about}", route.method, path, headers, content)

    def proof(self, recipe: Recipe, content: bytes) -> dict[str, str]:
        """The headers that show who asks."""
        kind = {"Content-Type": "application/json"}
        if recipe.key == "signature":
            signed = sign(self.secret, content, now=int(time.time()), webhook_id=f"msg_{os.urandom(6).hex()}")
            self.aviary.plant("signature", signed["webhook-signature"])
            return kind | signed
        return kind if recipe.key == "none" else kind | {"X-API-Key": self.held[recipe.key]}

    def _misplaced(self, recipe: Recipe, body: bytes) -> Iterator[tuple[str, dict[str, str], str]]:
        """Keys and signatures that are wrong, of another scope, or where none belongs."""
        plant, kind = self.aviary.plant, {"Content-Type": "application/json"}
        unknown = plant("unknown_key", self._unknown)
        mistyped = plant("mistyped_key", unknown[:-6] + "000000")
        held = self.held["admin"]
        right = self.proof(recipe, body)
        yield "without a key", kind, ""
        yield "an unknown key", kind | {"X-API-Key": unknown}, ""
        yield "a mistyped key", kind | {"Authorization": f"Bearer {mistyped}"}, ""
        yield "no key at all", kind | {"X-API-Key": plant("no_key")}, ""
        basic = base64.b64encode(f"user:{held}".encode()).decode()
        yield "a wrong scheme", kind | {"Authorization": f"Basic {basic}"}, ""
        yield "two keys", kind | {"X-API-Key": held, "Authorization": f"Bearer {self.held['review']}"}, ""
        yield (
            "a key elsewhere",
            right | {"User-Agent": held, "Referer": f"http://a/?k={held}", "X-Request-ID": held},
            "",
        )
        cookie = f"__Host-holdshort={plant('cookie')}"
        yield "a cookie", right | {"Cookie": cookie, "Origin": f"http://{plant('unknown')}"}, ""
        yield "a key in the query", right, f"api_key={held}"
        yield "a text in the query", right, f"limit={plant('unknown')}&status={plant('unknown')}"
        digits = plant("signature", self._digits)
        yield "a text", right | {"Content-Type": "text/plain"}, ""
        yield "a wrong signature", kind | {"X-Webhook-Signature": f"sha256={digits}"}, ""
        yield "a stale signature", kind | {"X-Hub-Signature-256": f"t=1,v1={digits}"}, ""
        yield "a label", right | {"X-Run-ID": "é" + plant("unknown"), "X-Holdshort-Fence": plant("unknown")}, ""
        for scope in ("agent", "stranger", "review", "admin"):
            yield f"a key of scope {scope}", kind | {"X-API-Key": self.held[scope]}, ""

    async def _key_in_path(self, route: Route, recipe: Recipe, ids: Ids, body: bytes) -> None:
        for text in (self.held["admin"], self.aviary.plant("unknown")):
            path = route.at(dict.fromkeys(_PLACE.findall(route.path), text))
            for each in (f"{path}?{recipe.query}", f"{path}/{text}"):
                about = f"{route.name} a text in the path"
                await self.send(about, route.method, each, self.proof(recipe, body), wrapped(route, body))

    def _wrong(self, body: bytes, cap: int) -> Iterator[tuple[str, bytes]]:
        """Bodies that are refused, with a canary where each fault is."""
        text = self.aviary.plant("wrong_field")
        yield "no JSON", f'{{"{text}": '.encode()
        yield "no object", json.dumps([text]).encode()
        # The one text that a refusal quotes: without its name nobody finds it.
        twice = self.aviary.plant(NAMED_TWICE)
        yield "twice", f'{{"{twice}": "{text}", "{twice}": "{text}"}}'.encode()
        yield "too deep", b'{"a":' * 70 + json.dumps(text).encode() + b"}" * 70
        yield (
            "a key in a field",
            json.dumps(dict.fromkeys(json.loads(body), self.aviary.plant("field_key", self._misplaced_key))).encode(),
        )
        for name in sorted(json.loads(body).keys() - ANYTHING):
            for value in ({text: text}, [text], text + "\0", text + "\ud800", 10**400):
                yield f"{name} wrong", json.dumps(json.loads(body) | {name: value}).encode()
        yield TOO_LARGE, text.encode() + b" " * cap + text.encode()


def values(recipe: Recipe, ids: Ids) -> dict[str, str]:
    """What stands for the names in a path."""
    execution_id = ids.working_id if recipe.works else ids.execution_id
    return ids._asdict() | {"execution_id": execution_id, "target": f"{ids.node_id}.work"}


def wrapped(route: Route, body: bytes) -> bytes | None:
    """A body for methods that have one."""
    return None if route.method == "GET" else body


async def staged(caller: Caller, number: int, receiver: str, agent: str) -> Ids:
    """A fresh scene: a node that is registered, a run that works, and one that has asked."""
    ids = Ids(
        execution_id=f"run-{number}-asked",
        working_id=f"run-{number}-works",
        approval_id="",
        request_id=f"q-{number}",
        node_id="node-1",
        instance_id="instance-1",
        delivery_id="dlv_0",
        receiver=receiver,
        agent=agent,
        unique_id=f"f-{number}",
    )
    plant = caller.aviary.plant
    body: dict[str, Any] = {"node_id": ids.node_id, "input": {"i": plant("input")}}
    await post(caller, "/executions", body | {"execution_id": ids.working_id})
    await post(caller, "/executions", body | {"execution_id": ids.execution_id})
    asking = RECIPES["request_approval"].body
    assert asking is not None
    asked = await post(
        caller,
        f"/executions/{ids.execution_id}/request-approval",
        asking(caller.aviary, ids) | {"approval_request_id": ids.request_id, "form": None},
    )
    about = {"unique_id": ids.unique_id, "message_for_user": plant("question"), "public_key": PUBLIC_KEY}
    await post(caller, "/human-feedback", about | {"session_id": plant("session")})
    return ids._replace(approval_id=asked["approval_id"])


async def post(caller: Caller, path: str, body: Any, key: str = "agent") -> dict[str, Any]:
    """A request of the set-up, which must succeed."""
    headers = {"X-API-Key": caller.held[key], "Content-Type": "application/json"}
    answer = await caller.send("setting up", "POST", f"/api/v1{path}", headers, json.dumps(body).encode())
    assert answer.status in {200, 201, 202}, answer
    return dict(json.loads(answer.content.split(b"\n", 1)[1]))
