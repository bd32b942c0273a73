"""Sixty wrong keys or signatures from one address in a minute, then 429; what is right passes all the same."""

import os
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from controlplane.domain import proxies, signatures
from controlplane.domain.events import Actor, ActorKind
from controlplane.domain.keys import ENTROPY_BYTES, mint
from controlplane.domain.throttle import MOST_IN_A_MINUTE
from controlplane.services import access
from controlplane.services.access import Wanted
from tests.app import SECRET, Api, in_process, problem, served
from tests.postgres import Database

SETUP = Actor(ActorKind.SYSTEM, "test", "test")
ANSWER = b'{"requestId": "q-1", "decision": "approved"}'
# The moment stands, so that no minute ends in the middle of a test.
NOW = 1000.0


@pytest.fixture
async def guarded(database: Database) -> AsyncIterator[Api]:
    """An application that has keys, behind a proxy that it trusts."""
    async with in_process(database, open_mode=False, trusted_proxies=proxies.parse("127.0.0.1")) as made:
        made.runtime.monotonic = lambda: NOW  # type: ignore[method-assign]
        yield made


async def key(api: Api, *scopes: str) -> tuple[str, str]:
    """The id of a new key, and its text."""
    async with api.runtime.transaction() as conn:
        wanted = Wanted(name="-".join(scopes), scopes=scopes)
        made, text = await access.create(conn, wanted, entropy=os.urandom(ENTROPY_BYTES), actor=SETUP)
    return made.key_id, text


async def look(api: Api, text: str, address: str | None = None) -> httpx.Response:
    headers = {"X-API-Key": text} | ({"X-Forwarded-For": address} if address else {})
    return await api.client.get("/api/v1/executions", headers=headers)


async def hook(api: Api, secret: str, address: str | None = None) -> httpx.Response:
    headers = {"X-Webhook-Signature": signatures.sign_hex(secret, ANSWER)}
    headers |= {"X-Forwarded-For": address} if address else {}
    return await api.client.post("/api/v1/webhooks/approval-response", content=ANSWER, headers=headers)


def invented() -> str:
    return mint(os.urandom(ENTROPY_BYTES))[1]


async def exhaust(call: Callable[[], Any], refusal: tuple[int, str]) -> None:
    """Fail as often as one may."""
    for _ in range(MOST_IN_A_MINUTE):
        assert problem(await call()) == refusal


async def test_after_sixty_wrong_keys_a_right_one_passes_and_a_wrong_one_waits(guarded: Api):
    _, text = await key(guarded, "admin")
    await exhaust(lambda: look(guarded, invented()), (401, "invalid_key"))
    refused = await look(guarded, invented())
    assert problem(refused) == (429, "too_many_failures")
    assert refused.headers["retry-after"] == "60"
    assert refused.json()["retry_after_seconds"] == 60
    for _ in range(3):
        assert (await look(guarded, text)).status_code == 200
        assert problem(await look(guarded, invented())) == (429, "too_many_failures")
    guarded.runtime.monotonic = lambda: NOW + 60  # type: ignore[method-assign]
    assert problem(await look(guarded, invented())) == (401, "invalid_key")


async def test_a_key_that_is_met_for_the_first_time_passes_too(guarded: Api):
    await exhaust(lambda: look(guarded, invented()), (401, "invalid_key"))
    _, text = await key(guarded, "review")
    assert (await look(guarded, text)).status_code == 200


async def test_a_refusal_past_the_limit_says_nothing_of_whether_the_key_exists(guarded: Api):
    _, right = await key(guarded, "admin")
    ended, revoked = await key(guarded, "admin")
    async with guarded.runtime.transaction() as conn:
        await access.revoke(conn, ended, SETUP)
    await exhaust(lambda: look(guarded, "hs_mistyped"), (401, "invalid_key"))
    other_secret = f"{right[:16]}{invented()[16:]}"
    said = set()
    for text in (invented(), revoked, other_secret, right[:-1], "hs_", "x"):
        reply = await look(guarded, text)
        assert problem(reply) == (429, "too_many_failures")
        document = reply.json()
        assert document.pop("request_id") == reply.headers["x-request-id"]
        said.add((str(document), tuple(name for name in reply.headers)))
    assert len(said) == 1


async def test_who_sends_no_key_or_one_of_another_scope_is_not_counted(guarded: Api):
    _, review = await key(guarded, "review")
    for _ in range(MOST_IN_A_MINUTE + 1):
        assert problem(await guarded.client.get("/api/v1/executions")) == (401, "not_authenticated")
        reply = await guarded.client.get("/api/v1/deliveries", headers={"X-API-Key": review})
        assert problem(reply) == (403, "not_allowed")
    assert problem(await look(guarded, invented())) == (401, "invalid_key")


async def test_after_sixty_wrong_signatures_a_right_one_passes(guarded: Api):
    await exhaust(lambda: hook(guarded, "not-the-secret-of-anybody"), (401, "invalid_signature"))
    refused = await hook(guarded, "not-the-secret-of-anybody")
    assert problem(refused) == (429, "too_many_failures")
    assert refused.headers["retry-after"] == "60"
    assert (await hook(guarded, SECRET)).status_code == 202
    assert problem(await look(guarded, invented())) == (429, "too_many_failures")


async def test_a_proxys_callers_are_counted_apart_and_ipv6_ones_by_their_64(guarded: Api):
    await exhaust(lambda: look(guarded, invented(), "2001:db8::1"), (401, "invalid_key"))
    assert problem(await look(guarded, invented(), "2001:db8::2"))[0] == 429
    assert problem(await look(guarded, invented(), "2001:db8:0:1::2"))[0] == 401
    assert problem(await look(guarded, invented(), "192.0.2.1"))[0] == 401
    assert problem(await look(guarded, invented()))[0] == 401
    # What the caller wrote itself stands before what the proxy added.
    assert problem(await look(guarded, invented(), "192.0.2.99, 2001:db8::3"))[0] == 429


async def test_nobody_else_may_say_whose_request_it_is(database: Database, sql: Any):
    async with in_process(database, open_mode=False) as api:
        _, text = await key(api, "agent")
        started = await api.client.post(
            "/api/v1/executions",
            json={"node_id": "node-1", "execution_id": "run-1"},
            headers={"X-API-Key": text, "X-Forwarded-For": "192.0.2.1"},
        )
        assert started.status_code == 201
        assert await addresses(sql) == {"127.0.0.1"}
        numbers = iter(range(1000))
        await exhaust(lambda: look(api, invented(), f"192.0.2.{next(numbers)}"), (401, "invalid_key"))
        assert problem(await look(api, invented(), "192.0.2.200"))[0] == 429


async def test_no_server_in_between_believes_it_either(database: Database, sql: Any):
    async with served(database, workers=False, open_mode=False) as api:
        _, text = await key(api, "agent")
        started = {"node_id": "node-1", "execution_id": "run-1"}
        headers = {"X-API-Key": text, "X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "https"}
        assert (await api.client.post("/api/v1/executions", json=started, headers=headers)).status_code == 201
    assert await addresses(sql) == {"127.0.0.1"}


async def test_history_keeps_the_address_that_is_counted(guarded: Api, sql: Any):
    _, text = await key(guarded, "agent")
    await guarded.client.post(
        "/api/v1/executions",
        json={"node_id": "node-1", "execution_id": "run-1"},
        headers={"X-API-Key": text, "X-Forwarded-For": "1.1.1.1, 2001:DB8:0::1"},
    )
    assert await addresses(sql) == {"2001:db8::1"}


async def addresses(sql: Any) -> set[str]:
    """What history says of where calls came from."""
    return {row["actor_address"] for row in await sql.fetch("SELECT * FROM history WHERE actor_via = 'api'")}
