"""A dump of the whole database shows no secret; resealing moves all to the newest master key, and the older may go."""

import base64
import subprocess
from collections.abc import AsyncIterator, Callable
from typing import Any

import asyncpg
import pytest

from controlplane.cli.postgres.binaries import Binaries
from controlplane.domain.vault import (
    CALLBACK,
    NONCE_BYTES,
    SecretUnreadable,
    Vault,
    parse_master_keys,
    sealed_by,
    sender_secret,
)
from controlplane.services import resealing
from controlplane.services.resealing import Turned
from controlplane.storage.resealing import Place
from tests.app import MASTER_KEY, Api, in_process
from tests.figures import Figures
from tests.postgres import Database
from tests.senders import NEW_MASTER_KEY, NEW_VAULT, NEW_VAULT_ALONE, OPERATOR, VAULT, Senders, told
from tests.services.store import Rows

NONCE = bytes(NONCE_BYTES)
CALLBACKS = [f"callback-canary-{number}-of-enough-characters" for number in range(3)]


@pytest.fixture
def dump() -> Callable[[str], bytes]:
    """Everything in a database, as pg_dump writes it."""
    program = Binaries.locate().program("pg_dump")

    def run(url: str) -> bytes:
        return subprocess.run([program, "--inserts", "--dbname", url], check=True, capture_output=True).stdout

    return run


@pytest.fixture
async def api(database: Database) -> AsyncIterator[Api]:
    """An application with the old master key."""
    async with in_process(database) as made:
        yield made


@pytest.fixture
async def planted(api: Api) -> list[str]:
    """Secrets of every kind, given to the server and to the service of senders."""
    senders = Senders(api.runtime.transaction)
    secrets = [await senders.create("legal"), await senders.create("crm", "whsec_chosen-elsewhere-by-somebody")]
    secrets.append((await senders.rotate("legal"))[0])
    await senders.revoke("crm")
    for number, secret in enumerate(CALLBACKS):
        asked = await api.asked(
            f"q-{number}", f"run-{number}", callback_url="http://127.0.0.1:9/", callback_secret=secret
        )
        if number:
            assert (await api.decide(asked)).status_code == 200
    return [*secrets, *CALLBACKS]


def spellings(secret: str) -> list[bytes]:
    """A secret as it is, and as a dump would have it of a column of bytes or of something encoded."""
    raw = secret.encode()
    body = secret.removeprefix("whsec_").encode()
    return [raw, body, raw.hex().encode(), base64.b64encode(raw)[:-4], base64.b64encode(body)[:-4]]


async def test_a_dump_of_everything_holds_none_of_them(
    database: Database, planted: list[str], dump: Callable[[str], bytes], figures: Figures
):
    whole = dump(database.url)
    assert whole.count(b"hsv1.") >= len(planted)
    for secret in planted:
        assert not any(spelling in whole for spelling in spellings(secret)), secret
    figures("secrets in a dump of the whole database", planted=len(planted), found=0, bytes=len(whole))


async def test_the_search_finds_what_is_planted_open(database: Database, planted: list[str], dump: Any, rows: Rows):
    await rows.sql.execute("UPDATE deliveries SET secret = $1", planted[0])
    assert spellings(planted[0])[0] in dump(database.url)


async def test_a_sealed_secret_opens_in_its_own_row_only(api: Api, planted: list[str], rows: Rows):
    found = await rows.sql.fetch("SELECT secret_id, sender, sealed FROM sender_secrets")
    opened = {VAULT.open(row["sealed"], sender_secret(row["sender"], row["secret_id"])) for row in found}
    assert opened == set(planted[:3])
    for row in found:
        for owner in (
            sender_secret("other", row["secret_id"]),
            sender_secret(row["sender"], "whs_other"),
            CALLBACK,
            "",
        ):
            with pytest.raises(SecretUnreadable):
                VAULT.open(row["sealed"], owner)


async def test_the_table_takes_no_open_secret(api: Api, planted: list[str], rows: Rows):
    with pytest.raises(asyncpg.CheckViolationError):
        await rows.sql.execute("UPDATE sender_secrets SET sealed = 'open'")


class Resealing:
    """The service over all pages, each in a transaction of its own."""

    def __init__(self, api: Api, vault: Vault) -> None:
        self.api = api
        self.vault = vault

    async def all(self) -> list[Turned]:
        """Every page."""
        found: list[Turned] = []
        for place in Place:
            turned = await self.page(place, "")
            while turned is not None:
                found.append(turned)
                turned = await self.page(place, turned.page.last)
        return found

    async def page(self, place: Place, after: str) -> Turned | None:
        async with self.api.runtime.transaction() as conn:
            return await resealing.turn(conn, self.vault, place, after, nonce=lambda: NONCE, actor=OPERATOR)


async def master_keys(rows: Rows) -> set[str | None]:
    """Under which keys the secrets of the whole database lie."""
    texts = await rows.sql.fetch(
        "SELECT sealed AS text FROM sender_secrets UNION ALL SELECT callback_secret FROM approvals"
        " UNION ALL SELECT secret FROM deliveries"
    )
    return {sealed_by(row["text"]) for row in texts if row["text"] is not None}


async def test_resealed_secrets_are_the_same_under_another_key(
    api: Api, planted: list[str], database: Database, rows: Rows, dump: Callable[[str], bytes]
):
    old, new = sealed_by(VAULT.mark), sealed_by(NEW_VAULT.mark)
    assert await master_keys(rows) == {old}
    await rows.sql.execute("UPDATE approvals SET callback_secret = $1 WHERE execution_id = 'run-0'", CALLBACKS[0])
    turned = await Resealing(api, NEW_VAULT).all()
    assert await master_keys(rows) == {new}
    assert [(each.page.place, each.resealed, each.busy, each.unreadable) for each in turned] == [
        ("senders", 3, 0, ()),
        ("approvals", 3, 0, ()),
        ("deliveries", 2, 0, ()),
    ]
    whole = dump(database.url)
    assert not any(spelling in whole for secret in planted for spelling in spellings(secret))
    await opened_with_the_new_key_alone(rows, planted)
    assert [data for type_, _, _, data in await told(rows.sql) if type_ == "secrets.resealed"] == [
        {"place": "senders", "secrets": 3, "master_key": new},
        {"place": "approvals", "secrets": 3, "master_key": new},
        {"place": "deliveries", "secrets": 2, "master_key": new},
    ]


async def opened_with_the_new_key_alone(rows: Rows, planted: list[str]) -> None:
    found = await rows.sql.fetch("SELECT secret_id, sender, sealed FROM sender_secrets")
    opened = {NEW_VAULT_ALONE.open(r["sealed"], sender_secret(r["sender"], r["secret_id"])) for r in found}
    callbacks = await rows.sql.fetch(
        "SELECT callback_secret AS text FROM approvals UNION ALL SELECT secret FROM deliveries"
    )
    opened |= {NEW_VAULT_ALONE.open(row["text"], CALLBACK) for row in callbacks if row["text"] is not None}
    assert opened == set(planted)


async def test_resealing_again_changes_nothing(api: Api, planted: list[str], database: Database):
    first = await Resealing(api, NEW_VAULT).all()
    again = await Resealing(api, NEW_VAULT).all()
    assert sum(each.resealed for each in first) > 0
    assert [(each.resealed, each.busy, each.unreadable) for each in again] == [(0, 0, ())] * len(first)


async def test_what_no_key_opens_stays_as_it_is_and_is_named(api: Api, planted: list[str], rows: Rows):
    turned = await Resealing(api, NEW_VAULT_ALONE).all()
    assert [each.resealed for each in turned] == [0, 0, 0]
    named = {id_ for each in turned for id_ in each.unreadable}
    assert named >= {row["secret_id"] for row in await rows.sql.fetch("SELECT secret_id FROM sender_secrets")}
    assert await master_keys(rows) == {sealed_by(VAULT.mark)}
    assert [row for row in await told(rows.sql) if row[0] == "secrets.resealed"] == []


async def test_rows_that_others_hold_are_left_for_the_next_walk(api: Api, planted: list[str], rows: Rows):
    async with rows.sql.transaction():
        await rows.sql.execute("SELECT 1 FROM approvals WHERE execution_id = 'run-1' FOR UPDATE")
        turned = await Resealing(api, NEW_VAULT).all()
        assert [(each.resealed, each.busy) for each in turned] == [(3, 0), (2, 1), (2, 0)]
    (approvals,) = [each for each in await Resealing(api, NEW_VAULT).all() if each.page.place == "approvals"]
    assert (approvals.resealed, approvals.busy) == (1, 0)


async def test_pages_cover_every_row_once(api: Api, planted: list[str], monkeypatch: pytest.MonkeyPatch, rows: Rows):
    monkeypatch.setattr(resealing, "ROWS_A_PAGE", 2)
    turned = await Resealing(api, NEW_VAULT).all()
    assert [(each.page.place, each.resealed) for each in turned] == [
        ("senders", 2),
        ("senders", 1),
        ("approvals", 2),
        ("approvals", 1),
        ("deliveries", 2),
    ]
    assert await master_keys(rows) == {sealed_by(NEW_VAULT.mark)}
    assert NEW_MASTER_KEY not in str(turned)


async def test_a_secret_is_used_before_while_and_after_it_is_resealed(database: Database, planted: list[str]):
    both = parse_master_keys(f"{NEW_MASTER_KEY},{MASTER_KEY}")
    event = {"type": "request.opened", "data": {"requestId": "q-1"}}
    legal = planted[2]
    async with in_process(database, master_keys=both) as api:
        assert (await api.webhook(event, secret=legal)).status_code == 200
        await Resealing(api, NEW_VAULT).all()
        assert (await api.webhook(event, secret=legal)).status_code == 200
    async with in_process(database, master_keys=parse_master_keys(NEW_MASTER_KEY)) as api:
        assert (await api.webhook(event, secret=legal)).status_code == 200
    async with in_process(database, master_keys=parse_master_keys(MASTER_KEY), webhook_secrets=()) as api:
        refused = await api.webhook(event, secret=legal)
        assert (refused.status_code, refused.json()["error"]) == (503, "sender_unreadable")
