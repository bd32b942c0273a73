"""Approve and reject at the same instant on two server processes: one wins, the other is told which."""

import asyncio
from collections import Counter
from typing import Any, NamedTuple

import pytest

from tests.durability.conftest import Figures
from tests.durability.invariants import broken, lost, settled
from tests.durability.plane import API, Webhook, ask, planes, until
from tests.durability.receiver import receiver
from tests.durability.wire import Reply, Wire, encode, wires
from tests.postgres import Database

LANES = 3


class Round(NamedTuple):
    """One race: the approval, and both answers."""

    approval_id: str
    approve: Reply
    reject: Reply

    def winner(self) -> str:
        """The decision that was applied; there must be exactly one."""
        applied = [reply.body for reply in (self.approve, self.reject) if reply.body.get("status") == "processed"]
        assert len(applied) == 1, self
        decision: str = applied[0]["decision"]
        return decision

    def loser_is_told(self) -> None:
        """The other answer names what stands: a sender's is a 200, an operator's a 409."""
        stands = self.winner()
        (told,) = [reply for reply in (self.approve, self.reject) if reply.body.get("status") != "processed"]
        if told.status == 409:
            assert (told.body["error"], told.body["decision"]) == ("already_decided", stands)
        else:
            assert (told.status, told.body["status"], told.body["decision"]) == (200, "already_processed", stands)
        assert told.body["approval_status"] == stands


@pytest.mark.parametrize(
    "rounds",
    [
        pytest.param(60, id="quick"),
        pytest.param(500, id="long", marks=[pytest.mark.proof, pytest.mark.timeout(600)]),
    ],
)
async def test_one_decision_wins_and_is_told_once(database: Database, figures: Figures, rounds: int):
    connection = await database.connect()
    with planes(database.url, 2) as (first, second):
        async with receiver() as told:
            numbers = iter(range(rounds))
            lanes = [race(first.url, second.url, told.url, numbers) for _ in range(LANES)]
            played = [one for lane in await asyncio.gather(*lanes) for one in lane]
            await until(lambda: settled(connection))
            check(played, told.all_decisions(), rounds)
            callbacks = sum(told.copies.values())
            assert callbacks == len(told.copies) == rounds
        assert await broken(connection) == []
        assert await lost(connection, [(one.approval_id, one.winner()) for one in played]) == []
    await connection.close()
    won = Counter(one.winner() for one in played)
    figures("approve and reject at once on two servers", rounds=rounds, **won, callbacks=callbacks)


def check(played: list[Round], told: dict[str, set[str]], rounds: int) -> None:
    assert len(played) == rounds
    for one in played:
        one.loser_is_told()
        assert told[one.approval_id] == {one.winner()}


async def race(first: str, second: str, callback: str, numbers: Any) -> list[Round]:
    """Play rounds until there are no more numbers; each side is first to write every other time."""
    played = []
    async with wires(first, second) as (left, right):
        for number in numbers:
            run = f"run-{number}"
            asked = await ask(left, run, "deploy", callback_url=callback)
            approve, reject = (left, right) if number % 2 else (right, left)
            Webhook(run, "deploy", "approved").send(approve)
            send_rejection(reject, run, asked["approval_id"], by_operator=number % 4 > 1)
            played.append(Round(asked["approval_id"], *await asyncio.gather(approve.reply(), reject.reply())))
    return played


def send_rejection(wire: Wire, run: str, approval_id: str, *, by_operator: bool) -> None:
    """A rejection by an operator on one half of the rounds, by another sender's webhook on the other."""
    if by_operator:
        wire.send("POST", f"{API}/approvals/{approval_id}/decision", encode({"decision": "rejected"}))
    else:
        Webhook(run, "deploy", "rejected").send(wire, "other")
