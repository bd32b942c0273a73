"""A sender is made once, has five secrets at most, none of them anybody else's; each change is in the history."""

import asyncio
from collections.abc import Awaitable

import pytest

from controlplane.domain.errors import FieldFault, HoldshortError, SenderExists, SenderNotFound, TooManySecrets
from controlplane.domain.vault import SecretUnreadable
from tests.postgres import wait_until_any_blocked
from tests.senders import NEW_VAULT, NEW_VAULT_ALONE, Senders, told
from tests.services.store import Rows, Store


@pytest.fixture
def senders(store: Store) -> Senders:
    """The service on this test's database."""
    return Senders(store.tx)


async def refusal(work: Awaitable[object]) -> type[HoldshortError]:
    with pytest.raises(HoldshortError) as caught:
        await work
    return type(caught.value)


async def test_a_new_secret_stands_beside_the_old_one_until_that_ends(senders: Senders):
    await senders.create("legal")
    (first,) = await senders.holding("legal")
    _, rotated = await senders.rotate("legal", overlap=3600)
    assert rotated.others == (first,)
    assert await senders.holding("legal") == [rotated.secret_id, first]
    _, last = await senders.rotate("legal", overlap=0)
    assert await senders.holding("legal") == [last.secret_id]
    assert set(last.others) == {first, rotated.secret_id}


async def test_an_overlap_never_prolongs_what_ends_sooner(senders: Senders, rows: Rows):
    await senders.create("legal")
    (first,) = await senders.holding("legal")
    await senders.rotate("legal", overlap=60)
    soon = await rows.value("SELECT valid_until FROM sender_secrets WHERE secret_id = $1", first)
    await senders.rotate("legal", overlap=3600)
    assert await rows.value("SELECT valid_until FROM sender_secrets WHERE secret_id = $1", first) == soon


async def test_the_newest_secret_is_the_one_to_sign_with(senders: Senders):
    first = await senders.create("legal")
    assert await senders.newest("legal") == first
    second, _ = await senders.rotate("legal")
    assert await senders.newest("legal") == second
    assert await refusal(senders.newest("crm")) is SenderNotFound


async def test_five_hold_at_once_and_a_sixth_is_refused(senders: Senders):
    await senders.create("legal")
    for _ in range(4):
        await senders.rotate("legal")
    with pytest.raises(TooManySecrets, match="legal has 5 secrets"):
        await senders.rotate("legal")
    held = await senders.holding("legal")
    assert len(held) == 5
    await senders.revoke_secret("legal", held[-1])
    await senders.rotate("legal")
    _, rotated = await senders.rotate("legal", overlap=0)
    assert await senders.holding("legal") == [rotated.secret_id]


async def test_fifty_hold_in_all_and_each_of_many_can_still_be_rotated(senders: Senders):
    for number in range(25):
        await senders.create(f"s{number}")
        await senders.rotate(f"s{number}")
    assert await refusal(senders.create("one-more")) is TooManySecrets
    assert await refusal(senders.rotate("s0")) is TooManySecrets
    for number in range(25):
        await senders.rotate(f"s{number}", overlap=0)
    assert [len(await senders.holding(f"s{number}")) for number in range(25)] == [1] * 25


async def test_two_who_rotate_at_the_same_instant_do_not_pass_the_limit(store: Store, senders: Senders, rows: Rows):
    await senders.create("legal")
    for _ in range(3):
        await senders.rotate("legal")
    async with rows.holding("SELECT pg_advisory_xact_lock(hashtextextended('holdshort.senders', 0))"):
        rivals = [asyncio.create_task(senders.rotate("legal")) for _ in range(2)]
        watcher = await store.database.connect()
        await wait_until_any_blocked(watcher, 2)
        await watcher.close()
    ends = await asyncio.gather(*rivals, return_exceptions=True)
    assert sorted(type(end).__name__ for end in ends) == ["TooManySecrets", "tuple"]
    assert len(await senders.holding("legal")) == 5


@pytest.mark.parametrize("name", ["", "Legal", "1st", "a_b", "a b", "a\n", "-a", "é", "a" * 33])
async def test_a_name_is_plain(senders: Senders, name: str):
    assert await refusal(senders.create(name)) is FieldFault


async def test_a_name_is_made_once_and_known_before_it_changes(senders: Senders):
    await senders.create("a" * 32)
    assert await refusal(senders.create("a" * 32)) is SenderExists
    for work in (senders.rotate("crm"), senders.revoke("crm"), senders.revoke_secret("crm", "whs_1")):
        assert await refusal(work) is SenderNotFound
    (only,) = await senders.holding("a" * 32)
    await senders.create("crm")
    assert await refusal(senders.revoke_secret("crm", only)) is SenderNotFound
    assert await senders.holding("a" * 32) == [only]


async def test_one_text_is_the_secret_of_one_sender_only(senders: Senders):
    text = await senders.create("legal")
    for work in (senders.create("crm", text), senders.rotate("legal", text)):
        with pytest.raises(FieldFault, match="legal") as caught:
            await work
        assert text not in str(caught.value)
    await senders.revoke("legal")
    await senders.create("crm", text)


async def test_a_revoked_sender_is_out_and_comes_back_with_a_new_secret_only(senders: Senders):
    await senders.create("legal")
    await senders.rotate("legal")
    ended = await senders.revoke("legal")
    assert len(ended) == 2
    assert await senders.holding("legal") == []
    assert await senders.revoke("legal") == ()
    assert await refusal(senders.rotate("legal")) is SenderNotFound
    again = await senders.create("legal")
    assert len(await senders.holding("legal")) == 1
    assert await senders.newest("legal") == again


async def test_nothing_is_sealed_with_other_keys_than_the_servers_have(store: Store, senders: Senders):
    await senders.create("legal")
    elsewhere = Senders(store.tx, NEW_VAULT_ALONE)
    with pytest.raises(SecretUnreadable, match="of legal was sealed with a master key that is not known here"):
        await elsewhere.create("crm")
    await Senders(store.tx, NEW_VAULT).create("crm")
    await elsewhere.revoke("legal")
    await elsewhere.rotate("crm")


async def test_history_says_who_changed_what_and_never_a_secret(senders: Senders, rows: Rows):
    secrets = [await senders.create("legal")]
    (first,) = await senders.holding("legal")
    secret, rotated = await senders.rotate("legal", overlap=60)
    await senders.revoke_secret("legal", first)
    await senders.revoke("legal")
    await senders.revoke("legal")
    assert await told(rows.sql) == [
        ("sender.created", "operator", "cli", {"sender": "legal", "secret_id": first}),
        (
            "sender.rotated",
            "operator",
            "cli",
            {"sender": "legal", "secret_id": rotated.secret_id, "others": [first], "others_for": 60},
        ),
        ("sender.secret_revoked", "operator", "cli", {"sender": "legal", "secret_id": first}),
        ("sender.revoked", "operator", "cli", {"sender": "legal", "secrets": [rotated.secret_id]}),
    ]
    everything = await rows.value("SELECT string_agg(h::text, '') FROM history h")
    assert not any(text in everything for text in (*secrets, secret))
