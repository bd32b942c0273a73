"""Webhooks come twice, out of order, early, late, tampered with and stale, to two servers: each approval ends once."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from controlplane.domain.throttle import MOST_IN_A_MINUTE
from tests.durability.conftest import Figures
from tests.durability.invariants import broken, lost, settled
from tests.durability.plane import Webhook, ask, planes, until
from tests.durability.receiver import receiver
from tests.durability.wire import Reply, Wire, in_lanes
from tests.postgres import Database

SEED = 20_260_101
LANES = 6
KINDS = ("duplicate", "rival", "restated", "tampered", "stale", "early", "late")
STALE_SECONDS = 301
SHORT_HOURS = 1.0 / 3600
# What a forger's address is answered after its failures of a minute; those that are right never are.
LIMITED = (429, "too_many_failures")


class Sent(NamedTuple):
    """One webhook as it was sent, and what came back."""

    number: int
    kind: str
    decision: str
    reply: Reply


class Post(NamedTuple):
    """A webhook that is to be sent: for which run, of which kind, and how it is signed and changed on its way."""

    number: int
    kind: str
    webhook: Webhook

    async def send(self, wire: Wire, decision: str) -> Sent:
        return Sent(self.number, self.kind, decision, await HOW.get(self.kind, plainly)(wire, self.webhook))


async def plainly(wire: Wire, webhook: Webhook) -> Reply:
    return await webhook.post(wire)


async def under_another_scheme(wire: Wire, webhook: Webhook) -> Reply:
    return await wire.call("POST", webhook.path, webhook.body, webhook.headers(scheme="body"))


async def changed_on_its_way(wire: Wire, webhook: Webhook) -> Reply:
    body = webhook.body.replace(b'"requestId"', b'"requestId" ')
    return await wire.call("POST", webhook.path, body, webhook.headers())


async def too_old(wire: Wire, webhook: Webhook) -> Reply:
    stamped = webhook.headers(now=int(time.time()) - STALE_SECONDS)
    return await wire.call("POST", webhook.path, webhook.body, stamped)


HOW: dict[str, Callable[[Wire, Webhook], Any]] = {
    "restated": under_another_scheme,
    "tampered": changed_on_its_way,
    "stale": too_old,
}


class Plan:
    """What is sent for every approval, drawn once from a seed."""

    def __init__(self, count: int) -> None:
        self._random = random.Random(SEED)
        self.kinds = [{kind for kind in KINDS if self._random.random() < 0.2} for _ in range(count)]
        self.decisions = [self._random.choice(("approved", "rejected", "request_changes")) for _ in range(count)]
        self.mains = [Webhook(self.run(number), "deploy", self.decisions[number]) for number in range(count)]

    @staticmethod
    def run(number: int) -> str:
        return f"run-{number}"

    def early(self) -> list[Post]:
        return [Post(n, "early", self.mains[n]) for n, kinds in enumerate(self.kinds) if "early" in kinds]

    def short(self, number: int) -> bool:
        """Whether this approval expires before anybody answers it."""
        return "late" in self.kinds[number] and "early" not in self.kinds[number]

    def shuffled(self) -> list[Post]:
        """All that is sent once everyone has asked, in no order."""
        posts = [Post(n, "late" if self.short(n) else "main", main) for n, main in enumerate(self.mains)]
        for number, kinds in enumerate(self.kinds):
            posts += [Post(number, kind, self._extra(number, kind)) for kind in kinds if kind not in ("early", "late")]
        self._random.shuffle(posts)
        return posts

    def _extra(self, number: int, kind: str) -> Webhook:
        if kind != "rival":
            return self.mains[number]
        other = "approved" if self.decisions[number] != "approved" else "rejected"
        return Webhook(self.run(number), "deploy", other)


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(100, id="quick"),
        pytest.param(2_000, id="long", marks=[pytest.mark.proof, pytest.mark.timeout(900)]),
    ],
)
async def test_every_approval_ends_once(database: Database, figures: Figures, count: int):
    plan = Plan(count)
    connection = await database.connect()
    async with receiver() as told:
        with planes(database.url, 2) as (first, second):
            early = await post_all(first.url, second.url, plan, plan.early())
            assert {sent.reply.status for sent in early} <= {202}
            hours = {True: SHORT_HOURS, False: 1.0}

            async def question(wire: Wire, number: int) -> None:
                more = {"callback_url": told.url, "expires_in_hours": hours[plan.short(number)]}
                await ask(wire, plan.run(number), "deploy", **more)

            await in_lanes(first.url, range(count), question, lanes=LANES)
            await until(lambda: all_short_ones_are_over(connection))
            sent = await post_all(first.url, second.url, plan, plan.shuffled())
            await until(lambda: settled(connection), seconds=120)
    stands = dict(await connection.fetch("SELECT execution_id, status FROM approvals"))
    for one in sent:
        check(plan, one, stands[plan.run(one.number)])
    forged = [one.reply.status for one in sent if one.kind in ("tampered", "stale")]
    assert forged.count(401) >= min(len(forged), MOST_IN_A_MINUTE)
    applied = [one.reply.body for one in sent if one.reply.status == 200 and is_applied(one.reply.body)]
    assert len({body["approval_id"] for body in applied}) == len(applied)
    assert await lost(connection, [(body["approval_id"], body["decision"]) for body in applied]) == []
    ends = dict(await connection.fetch("SELECT approval_id, status FROM approvals"))
    assert told.all_decisions() == {approval: {status} for approval, status in ends.items()}
    assert await broken(connection) == []
    await connection.close()
    kinds = Counter(one.kind for one in [*early, *sent])
    figures("webhooks in disorder", seed=SEED, approvals=count, applied=len(applied), **dict(sorted(kinds.items())))


def is_applied(body: dict[str, Any]) -> bool:
    return body["status"] == "processed" and not body.get("replayed")


def check(plan: Plan, one: Sent, stands: str) -> None:
    """Each kind is answered as documented, whatever came before it."""
    number = one.number
    if one.kind in ("tampered", "stale"):
        code = {"tampered": "invalid_signature", "stale": "stale_signature"}[one.kind]
        assert (one.reply.status, one.reply.body["error"]) in {(401, code), LIMITED}
        return
    assert one.reply.status == 200, one
    assert one.reply.body["decision"] == stands, one
    if plan.short(number):
        assert stands == "expired"
        assert one.reply.body["status"] == "already_processed"
    elif "rival" not in plan.kinds[number] or "early" in plan.kinds[number]:
        assert stands == plan.decisions[number]


async def post_all(first: str, second: str, plan: Plan, posts: list[Post]) -> list[Sent]:
    """Send every one, half of them to each server, over several connections at once."""

    async def send(wire: Wire, post: Post) -> Sent:
        return await post.send(wire, plan.decisions[post.number])

    halves = (in_lanes(url, posts[part::2], send, lanes=LANES // 2) for part, url in enumerate((first, second)))
    return [sent for half in await asyncio.gather(*halves) for sent in half]


async def all_short_ones_are_over(connection: Any) -> bool:
    waiting: bool = await connection.fetchval(
        "SELECT EXISTS (SELECT FROM approvals WHERE status = 'pending' AND expires_at < requested_at + interval '60 s')"
    )
    return not waiting
