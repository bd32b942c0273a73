"""Senders of the database: configured or not, named in the history, judged in the documented order, and fail closed."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import pytest

from controlplane.domain import keys, signatures
from controlplane.domain.webhook_secrets import parse
from controlplane.runtime import sender_book
from tests.app import SECRET, Api, in_process, problem
from tests.figures import Figures
from tests.keys import make_keys
from tests.postgres import Database
from tests.senders import NEW_VAULT_ALONE, Senders

HEX = "X-Webhook-Signature"
MIB = 1024 * 1024


def answer(request_id: str = "q-1", decision: str = "approved") -> dict[str, Any]:
    return {"requestId": request_id, "decision": decision}


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known of senders is read anew for each webhook."""
    monkeypatch.setattr(sender_book, "FRESH_SECONDS", 0.0)


async def test_history_names_the_sender_of_the_table(api: Api, database: Database):
    secret = await Senders(api.runtime.transaction).create("legal")
    approval = await api.asked()
    assert (await api.webhook(answer(), secret=secret)).json()["status"] == "processed"
    history = (await api.get(f"/approvals/{approval}")).json()["history"]
    settled = [(row["actor_kind"], row["actor_name"]) for row in history if row["type"] == "approval.approved"]
    assert settled == [("sender", "legal")]


async def test_both_sets_of_secrets_are_one_sender(api: Api):
    secret = await Senders(api.runtime.transaction).create("desk")
    for number, each in enumerate((secret, SECRET)):
        approval = await api.asked(f"q-{number}", f"run-{number}", decided_by="desk")
        assert (await api.webhook(answer(f"q-{number}"), secret=each)).json()["approval_id"] == approval


async def test_a_webhook_is_one_whichever_of_its_senders_secrets_signed_it(api: Api):
    senders = Senders(api.runtime.transaction)
    old = await senders.create("legal")
    new, _ = await senders.rotate("legal")
    await api.asked()
    first = (await api.webhook(answer(), secret=old)).json()
    assert (await api.webhook(answer(), secret=new)).json() == first | {"replayed": True}


async def test_who_may_answer_is_judged_by_the_senders_name(api: Api):
    senders = Senders(api.runtime.transaction)
    legal, crm = await senders.create("legal"), await senders.create("crm")
    approval = await api.asked(decided_by="legal")
    assert problem(await api.webhook(answer(), secret=crm)) == (403, "sender_not_allowed")
    assert problem(await api.webhook(answer(), secret=SECRET)) == (403, "sender_not_allowed")
    assert (await api.webhook(answer(), secret=legal)).json()["approval_id"] == approval


async def test_an_early_answer_is_kept_for_the_sender_that_may_give_it(api: Api):
    senders = Senders(api.runtime.transaction)
    legal, crm = await senders.create("legal"), await senders.create("crm")
    assert (await api.webhook(answer(decision="rejected"), secret=crm)).status_code == 202
    assert (await api.webhook(answer(), secret=legal)).status_code == 202
    await api.start()
    assert (await api.ask(decided_by="legal"))["status"] == "approved"


@pytest.mark.usefixtures("at_once")
async def test_refusals_come_in_their_order_whatever_is_configured_where(database: Database):
    async with in_process(database, webhook_secrets=()) as api:
        senders = Senders(api.runtime.transaction)
        large = b"x" * (MIB + 1)
        assert problem(await api.webhook(large, **{HEX: "no"})) == (413, "body_too_large")
        for headers in ({HEX: ""}, {HEX: "no"}, {"X-Nothing": "here"}):
            assert problem(await api.webhook(b"{", **headers)) == (503, "webhook_not_configured")
        secret = await senders.create("legal")
        assert problem(await api.webhook(large, **{HEX: "no"})) == (413, "body_too_large")
        assert problem(await api.webhook(b"{", **{HEX: "no"})) == (401, "invalid_signature")
        assert problem(await api.webhook(b"{", **{"X-Nothing": "here"})) == (401, "missing_signature")
        stale = signatures.sign_timestamped(secret, b"{", timestamp=api.runtime.unix() - 400)
        assert problem(await api.webhook(b"{", **{HEX: stale})) == (401, "stale_signature")
        assert problem(await api.webhook(b"{", secret=secret)) == (400, "invalid_body")
        await senders.revoke("legal")
        assert problem(await api.webhook(b"{", secret=secret)) == (503, "webhook_not_configured")


@pytest.mark.usefixtures("at_once")
async def test_revoking_a_name_shuts_out_what_the_settings_give_it(api: Api):
    senders = Senders(api.runtime.transaction)
    await api.asked()
    await senders.create("desk")
    await senders.revoke("desk")
    assert problem(await api.webhook(answer())) == (401, "invalid_signature")
    await senders.create("desk")
    assert (await api.webhook(answer())).json()["status"] == "processed"


@pytest.mark.usefixtures("at_once")
async def test_what_cannot_be_read_proves_nothing_and_the_sender_may_come_again(api: Api, database: Database):
    unread = await Senders(api.runtime.transaction, NEW_VAULT_ALONE).create("legal")
    approval = await api.asked()
    refused = await api.webhook(answer(), secret=unread)
    assert problem(refused) == (503, "sender_unreadable")
    assert refused.headers["Retry-After"] == "1"
    assert problem(await api.webhook(b"{", **{"X-Nothing": "here"})) == (401, "missing_signature")
    assert (await api.get(f"/approvals/{approval}")).json()["status"] == "pending"
    async with in_process(database, webhook_secrets=()) as other:
        assert problem(await other.webhook(answer(), secret=unread)) == (503, "sender_unreadable")
    assert (await api.webhook(answer())).json()["status"] == "processed"


async def test_a_known_sender_costs_no_query(api: Api, sql: Any, database: Database):
    await Senders(api.runtime.transaction).create("legal")
    read, reads = api.runtime.senders._read, 0

    async def counted() -> Any:
        nonlocal reads
        reads += 1
        return await read()

    api.runtime.senders._read = counted
    begun = perf_counter()
    for _ in range(100):
        assert (await api.webhook({"type": "request.opened", "data": {}})).status_code == 200
    assert reads <= 1 + (perf_counter() - begun) / sender_book.FRESH_SECONDS


def fastest(work: Callable[[], object], times: int = 2000) -> float:
    """Microseconds that the fastest of some tries took, each of 20 calls."""
    found = []
    for _ in range(times // 20):
        begun = perf_counter()
        for _ in range(20):
            work()
        found.append((perf_counter() - begun) / 20)
    return min(found) * 1e6


async def test_a_signature_and_a_key_are_checked_in_microseconds(api: Api, database: Database, figures: Figures):
    body = b'{"requestId": "q-1", "decision": "approved", "feedback": "' + b"x" * (1024 - 60) + b'"}'
    secrets = parse(f"desk:{SECRET}")
    many = parse(",".join(f"s{number}:{SECRET}-{number}" for number in range(49)) + f",desk:{SECRET}")
    header = [(b"x-webhook-signature", b"sha256=" + signatures.sign_hex(SECRET, body).encode())]
    now = api.runtime.unix()
    assert signatures.verify(header, body, secrets=many, now=now).sender == "desk"
    figures(
        "one webhook signature",
        microseconds=fastest(lambda: signatures.verify(header, body, secrets=secrets, now=now)),
        of_fifty_senders_the_last=fastest(lambda: signatures.verify(header, body, secrets=many, now=now), 400),
        body_bytes=len(body),
    )
    text = make_keys(database).agent
    presented = keys.read(text)
    assert presented is not None
    assert await api.runtime.keys.recognise(presented) is not None
    figures("one API key", microseconds=await fastest_key(api, text))


async def fastest_key(api: Api, text: str) -> float:
    """As `fastest`, of a key that is known: read from its text and recognised in memory."""
    found = []
    for _ in range(50):
        begun = perf_counter()
        for _ in range(20):
            presented = keys.read(text)
            assert presented is not None
            await api.runtime.keys.recognise(presented)
        found.append((perf_counter() - begun) / 20)
    return min(found) * 1e6
