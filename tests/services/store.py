"""Each service in a transaction of its own, as the edges call it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Any

import asyncpg

from controlplane.domain.approvals import Approval, ApprovalStatus
from controlplane.domain.asking import Asked
from controlplane.domain.cases import Answer
from controlplane.domain.deliveries import CLAIMS_PER_TARGET, Attempt, Claimed, judge
from controlplane.domain.events import Actor
from controlplane.domain.executions import ExecutionStatus
from controlplane.domain.outcomes import Outcome
from controlplane.domain.steps import Done, Step
from controlplane.services import approvals, asking, deliveries, executions, expiry, steps, webhooks
from controlplane.services.approvals import SeenByPerson
from controlplane.services.executions import Report
from controlplane.services.webhooks import Applied, Incoming, KeptForLater, Policy, Replayed
from controlplane.storage import outbox
from controlplane.storage.approvals import Shown, Wording
from controlplane.storage.engine import Changes, Connection, make_engine, transaction
from controlplane.storage.executions import Run, Starting
from controlplane.storage.outbox import Tried
from tests.factories import AGENT, OPERATOR, PERSON, asked, ids
from tests.postgres import Database, wait_until_any_blocked

DEFAULT_POLICY = Policy(newest_wins=False, parked_for=timedelta(hours=1))
NEWEST_POLICY = Policy(newest_wins=True, parked_for=timedelta(hours=1))
UNSEEN = SeenByPerson()


class Store:
    """A database with one engine; `changes` is what the last committed transaction told its process."""

    def __init__(self, database: Database, pool_size: int = 8) -> None:
        self.database = database
        self.engine = make_engine(database.url, pool_size)
        self.new_id = ids()
        self.changes = Changes()

    def tx(self) -> AbstractAsyncContextManager[Connection]:
        return transaction(self.engine, self._committed)

    def _committed(self, changes: Changes) -> None:
        self.changes = changes

    async def start(self, execution_id: str = "run-1", node_id: str = "node-1") -> Run:
        starting = Starting(execution_id=execution_id, node_id=node_id, reasoner=None, run_id=None, input=None)
        async with self.tx() as conn:
            return (await executions.start(conn, starting, AGENT))[0]

    async def ask(self, request_id: str = "a", execution_id: str = "run-1", **changes: Any) -> Approval:
        return await self.ask_for(asked(request_id, execution_id, **changes))

    async def ask_for(self, wanted: Asked, wording: Wording | None = None, node_id: str | None = None) -> Approval:
        async with self.tx() as conn:
            return await asking.ask(
                conn, wanted, wording or Wording(), actor=AGENT, new_id=self.new_id, node_id=node_id
            )

    async def decide(
        self,
        approval_id: str,
        status: ApprovalStatus = ApprovalStatus.APPROVED,
        *,
        seen: SeenByPerson = UNSEEN,
        **answer: Any,
    ) -> Outcome:
        async with self.tx() as conn:
            given = Answer(status=status, actor=PERSON, **answer)
            return await approvals.decide(conn, approval_id, given, seen=seen, new_id=self.new_id)

    async def end(self, approval_id: str, status: ApprovalStatus, actor: Actor = AGENT) -> Shown:
        async with self.tx() as conn:
            return await approvals.end(conn, approval_id, status, actor=actor, new_id=self.new_id)

    async def receive(self, incoming: Incoming, policy: Policy = DEFAULT_POLICY) -> Applied | Replayed | KeptForLater:
        async with self.tx() as conn:
            return await webhooks.receive(conn, incoming, policy, self.new_id)

    async def report(
        self, status: ExecutionStatus, execution_id: str = "run-1", *, fence: int | None = None, **told: Any
    ) -> Run:
        async with self.tx() as conn:
            report = Report(status=status, **told)
            return await executions.report(conn, execution_id, report, actor=AGENT, new_id=self.new_id, fence=fence)

    async def step(
        self, name: str = "a", result: bytes = b"1", execution_id: str = "run-1", *, fence: int | None = None, **at: Any
    ) -> tuple[Step, bool]:
        """Keep a step, the first under its name and of no order unless `occurrence` and `previous` are given."""
        done = Done(name=name, result=result, **({"occurrence": 1, "previous": None} | at))
        async with self.tx() as conn:
            return await steps.keep(conn, execution_id, done, fence=fence, actor=AGENT, new_id=self.new_id)

    async def cancel(self, reason: str | None = None, execution_id: str = "run-1") -> Run:
        async with self.tx() as conn:
            return await executions.cancel(conn, execution_id, reason, actor=OPERATOR, new_id=self.new_id)

    async def sweep(self, limit: int = 100) -> int:
        async with self.tx() as conn:
            return await expiry.expire_approvals(conn, limit=limit, new_id=self.new_id)

    async def set_callback(self, approval_id: str, url: str, secret: str | None = None) -> Shown:
        async with self.tx() as conn:
            return await approvals.set_callback(
                conn, approval_id, url=url, secret=secret, actor=AGENT, new_id=self.new_id
            )

    async def claim(self, limit: int = 10, full: tuple[str, ...] = ()) -> list[Claimed]:
        async with self.tx() as conn:
            return await outbox.claim(conn, limit=limit, held=dict.fromkeys(full, CLAIMS_PER_TARGET))

    async def settle(self, claimed: Claimed, attempt: Attempt) -> bool:
        async with self.tx() as conn:
            verdict = judge(claimed, attempt, jitter=0.5)
            return bool(await deliveries.settle(conn, [Tried(claimed, verdict, attempt.status)]))

    async def mark_writing(self, claimed: Claimed) -> bool:
        async with self.tx() as conn:
            return await outbox.mark_writing(conn, claimed.delivery_id, claimed.fence)

    async def deliver(self) -> list[Claimed]:
        """Claim what is due and have each receiver answer 200."""
        claims = await self.claim()
        assert [await self.settle(claimed, Attempt(200)) for claimed in claims] == [True] * len(claims)
        return claims

    async def read(self, execution_id: str = "run-1", request_id: str | None = None) -> Shown:
        """Look as the agent does: a final status counts as read."""
        async with self.tx() as conn:
            shown = await approvals.look_newest(conn, execution_id, request_id)
            await approvals.note_read(conn, [shown])
            return shown

    async def look(self, approval_id: str) -> Shown:
        async with self.tx() as conn:
            return await approvals.look(conn, approval_id)

    async def run(self, execution_id: str = "run-1") -> Run:
        async with self.tx() as conn:
            return await executions.look(conn, execution_id)


class Rows:
    """A connection beside the services': looks at rows, moves deadlines, holds locks."""

    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        self.sql = connection

    async def value(self, query: str, *values: object) -> Any:
        return await self.sql.fetchval(query, *values)

    async def column(self, query: str, *values: object) -> list[Any]:
        return [row[0] for row in await self.sql.fetch(query, *values)]

    async def history(self, execution_id: str = "run-1") -> list[str]:
        return await self.column("SELECT type FROM history WHERE execution_id = $1 ORDER BY seq", execution_id)

    async def pass_deadline(self, approval_id: str) -> None:
        """Let an approval's time be up: asked two hours ago, due one hour ago."""
        await self.sql.execute(
            "UPDATE approvals SET requested_at = clock_timestamp() - interval '2 h',"
            " expires_at = clock_timestamp() - interval '1 h' WHERE approval_id = $1",
            approval_id,
        )

    async def queue(self, *work: Coroutine[Any, Any, Any]) -> list[asyncio.Task[Any]]:
        """Start work whose locks another holds: each waits in the queue before the next one is started."""
        tasks = []
        for number, each in enumerate(work, 1):
            tasks.append(asyncio.create_task(each))
            await wait_until_any_blocked(self.sql, number)
        return tasks

    @asynccontextmanager
    async def holding(self, query: str, *values: object) -> AsyncIterator[None]:
        """Run a statement in a transaction that stays open for the length of a block, and commit it at its end."""
        async with self.sql.transaction():
            await self.sql.execute(query, *values)
            yield

    def holding_run(self, execution_id: str = "run-1") -> AbstractAsyncContextManager[None]:
        """Hold an execution's lock."""
        return self.holding("SELECT 1 FROM executions WHERE execution_id = $1 FOR NO KEY UPDATE", execution_id)
