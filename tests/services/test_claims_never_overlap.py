"""Any number of dispatchers share the work: no delivery is held twice, no slow receiver delays the others."""

import asyncio

from controlplane.domain.deliveries import CLAIMS_PER_TARGET, Attempt, Claimed
from controlplane.storage import outbox
from tests.services.store import Rows, Store


async def decide_for(store: Store, *urls: str) -> None:
    for number, url in enumerate(urls):
        run = f"run-{number}"
        await store.start(run)
        approval = await store.ask("a", run, callback_url=url)
        await store.decide(approval.approval_id)


def urls(count: int) -> list[str]:
    """Addresses of as many receivers."""
    return [f"http://127.0.0.1:{9000 + number}/" for number in range(count)]


def names(claims: list[Claimed]) -> set[str]:
    return {claimed.delivery_id for claimed in claims}


async def test_two_dispatchers_take_different_rows(store: Store):
    await decide_for(store, *urls(6))
    async with store.tx() as one, store.tx() as other:
        first = await outbox.claim(one, limit=4, held={})
        second = await outbox.claim(other, limit=4, held={})
    assert len(first) == 4
    assert names(first).isdisjoint(names(second))
    rest = await store.claim()
    assert len(names(first) | names(second) | names(rest)) == 6


async def test_many_at_once_take_each_row_once(store: Store):
    await decide_for(store, *urls(12))
    rounds = [*await asyncio.gather(*(store.claim(3) for _ in range(8))), await store.claim(12)]
    taken = [claimed.delivery_id for claims in rounds for claimed in claims]
    assert len(taken) == len(set(taken)) == 12


async def test_a_claimed_row_is_left_alone_until_its_lease_has_passed(store: Store, rows: Rows):
    await decide_for(store, *urls(1))
    (first,) = await store.claim()
    assert await store.claim() == []
    await rows.sql.execute("UPDATE deliveries SET lease_until = clock_timestamp()")
    (second,) = await store.claim()
    assert (second.fence, second.attempts) == (first.fence + 1, 2)
    assert not await store.settle(first, Attempt(200))
    assert not await store.mark_writing(first)
    assert await rows.column("SELECT status FROM deliveries") == ["pending"]
    assert await store.settle(second, Attempt(200))
    assert (await rows.history("run-0")).count("delivery.delivered") == 1


async def test_one_receiver_gets_a_few_at_a_time_and_the_others_are_not_delayed(store: Store):
    slow, quick = "http://127.0.0.1:9000/", "http://127.0.0.1:9001/"
    await decide_for(store, *[slow] * 10, quick)
    claims = await store.claim(limit=50)
    targets = [claimed.url for claimed in claims]
    assert (targets.count(slow), targets.count(quick)) == (CLAIMS_PER_TARGET, 1)
    assert await store.claim(full=("http://127.0.0.1:9000",)) == []
    assert len(await store.claim()) == 2


async def test_a_full_receiver_hides_nothing_behind_it(store: Store):
    slow, quick = "http://127.0.0.1:9000/", "http://127.0.0.1:9001/"
    await decide_for(store, *[slow] * 10, quick)
    claims = await store.claim(limit=2, full=("http://127.0.0.1:9000",))
    assert [claimed.url for claimed in claims] == [quick]


async def test_the_next_one_is_announced(store: Store, rows: Rows):
    async with store.tx() as conn:
        assert await outbox.next_due_in(conn) is None
    await decide_for(store, *urls(2))
    async with store.tx() as conn:
        overdue = await outbox.next_due_in(conn)
    assert overdue is not None
    assert overdue <= 0
    first, second = await store.claim()
    await store.settle(first, Attempt(500))
    async with store.tx() as conn:
        pause = await outbox.next_due_in(conn)
    assert pause is not None
    assert 0 < pause <= 1.2
    assert await rows.value("SELECT count(*) FROM deliveries WHERE lease_until IS NOT NULL") == 1
    assert second.fence == 1
