"""A review desk: it sees what is asked, answers each question as planned, and sends some answers early or twice."""

import asyncio
from collections import Counter
from typing import Any

from tests.durability.plane import Plane
from tests.durability.plans import Answer, Plan
from tests.durability.wire import Wire

LOOKS_EVERY_SECONDS = 0.05


class Desk:
    """Answers the questions of many runs; `kills` is what its answers wait for, `sent` what became of them."""

    def __init__(self, connection: Any, planes: list[Plane]) -> None:
        self.kills = 0
        self.patient = True
        self.sent: Counter[str] = Counter()
        self._connection = connection
        self._posting = asyncio.Lock()
        self._wires = [Wire(plane.url) for plane in planes]
        self._plans: dict[str, Plan] = {}
        self._asked_at: dict[tuple[str, str, int], int] = {}
        self._answered: set[tuple[str, str, int]] = set()

    async def take(self, execution_id: str, plan: Plan) -> None:
        """Know a new run, and send at once what is to be early."""
        self._plans[execution_id] = plan
        for answer in plan.answers:
            if answer.early:
                await self._send(execution_id, answer)

    async def work(self) -> None:
        """Look at what is open and answer what is due, for ever."""
        while True:
            rows = await self._connection.fetch(
                "SELECT execution_id, approval_request_id, round FROM approvals WHERE status = 'pending'"
            )
            for row in rows:
                await self._see(tuple(row))
            await asyncio.sleep(LOOKS_EVERY_SECONDS)

    async def close(self) -> None:
        for wire in self._wires:
            await wire.close()

    async def _see(self, key: tuple[str, str, int]) -> None:
        execution_id, request, number = key
        plan = self._plans.get(execution_id)
        if plan is None or key in self._answered:
            return
        answer = next(each for each in plan.answers if (each.request, each.round) == (request, number))
        asked_at = self._asked_at.setdefault(key, self.kills)
        if answer.decision != "expired" and (not self.patient or self.kills - asked_at >= answer.after):
            await self._send(execution_id, answer)

    async def _send(self, execution_id: str, answer: Answer) -> None:
        """Post every copy of an answer, the copies to different servers."""
        self._answered.add((execution_id, answer.request, answer.round))
        webhook = answer.webhook(execution_id)
        for copy in range(answer.copies):
            async with self._posting:
                wire = self._wires[(copy + sum(self.sent.values())) % len(self._wires)]
                reply, _ = await webhook.post_until_taken(wire)
            assert reply.status in {200, 202}, (answer, reply)
            self.sent["again" if copy else reply.body["status"]] += 1
