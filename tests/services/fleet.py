"""Runs that are dispatched, and the instances they are dispatched to, as the services see them."""

from collections.abc import Mapping, Sequence
from typing import Any

from controlplane.domain.deliveries import Attempt
from controlplane.domain.dispatching import Dispatch, judge
from controlplane.domain.ids import EXECUTION_PREFIX
from controlplane.services import dispatch
from controlplane.services.dispatch import Tried
from controlplane.storage import dispatches, executions
from controlplane.storage.executions import Queued
from tests.factories import AGENT
from tests.services.store import Rows, Store

ACCEPTED = Attempt(202, b"{}", written=True)
REFUSED = Attempt(error="ConnectError: refused")
LOST = Attempt(error="no reply within 5 s", written=True)
ANOTHER_DAY = 86_400.0


class Fleet:
    """One node's instances, its queue, and what becomes of both."""

    def __init__(self, store: Store, rows: Rows) -> None:
        self.store = store
        self.rows = rows

    async def join(self, instance_id: str = "i1", node_id: str = "node-1", **changes: Any) -> None:
        """An instance that is live for another day."""
        values = {"reasoners": ["work"], "replay": True, "status": "live"}
        values |= {"max_concurrent": None, "skills": []} | changes
        await self.rows.sql.execute(
            "INSERT INTO nodes (node_id, version, reasoners, skills, max_concurrent, registered_at, updated_at)"
            " VALUES ($1, '1', '[]', $3, $2, now(), now())"
            " ON CONFLICT (node_id) DO UPDATE SET max_concurrent = $2",
            node_id,
            values["max_concurrent"],
            values["skills"],
        )
        await self.rows.sql.execute(
            "INSERT INTO instances (node_id, instance_id, base_url, version, reasoners, replay, fenced, status,"
            " lease_seconds, lease_until, registered_at, seen_at)"
            " SELECT $1, $2, 'http://127.0.0.1:9/' || $2, '1', $3, $4, $4, $5, 15, now() + interval '1 d', now(),"
            " now()",
            node_id,
            instance_id,
            values["reasoners"],
            values["replay"],
            values["status"],
        )

    async def lose(self, instance_id: str = "i1") -> None:
        """The instance is gone."""
        await self.rows.sql.execute(
            "UPDATE instances SET status = 'gone', gone_at = now(), gone_reason = 'lease' WHERE instance_id = $1",
            instance_id,
        )

    async def queue(self, *execution_ids: str, node_id: str = "node-1", **changes: Any) -> None:
        """Queue runs, in this order."""
        for execution_id in execution_ids:
            await self._queue(execution_id, node_id, changes)

    async def _queue(self, execution_id: str, node_id: str, changes: dict[str, Any]) -> None:
        within = changes.pop("start_within", ANOTHER_DAY)
        fields: dict[str, Any] = {
            "execution_id": execution_id,
            "node_id": node_id,
            "reasoner": "work",
            "run_id": "run_1",
            "parent_execution_id": None,
            "input": b'{"a": 1}',
            "idempotency_key": None,
            "limit_seconds": None,
            "resume_at_start": False,
        }
        async with self.store.tx() as conn:
            assert await executions.enqueue(conn, Queued(**(fields | changes)))
            await dispatches.enqueue(conn, execution_id, node_id, within)

    async def claim(
        self, limit: int = 10, concurrency: int = 100, in_hand: Mapping[str, int] | None = None
    ) -> list[Dispatch]:
        """What a dispatcher would send now."""
        async with self.store.tx() as conn:
            return await dispatch.claim(
                conn, limit=limit, in_hand=in_hand or {}, concurrency=concurrency, new_id=self.store.new_id
            )

    async def settle(self, sent: Dispatch, attempt: Attempt) -> bool:
        """Whether the claim was still held when its try came to this."""
        tried = Tried(sent, judge(sent, attempt, jitter=0.5), attempt)
        async with self.store.tx() as conn:
            return bool(await dispatch.settle(conn, [tried], self.store.new_id))

    async def run(self, execution_id: str = EXECUTION_PREFIX, **changes: Any) -> Dispatch:
        """A run that an instance has taken."""
        await self.queue(execution_id, **changes)
        (sent,) = await self.claim()
        assert await self.settle(sent, ACCEPTED)
        return sent

    async def recover(self) -> int:
        """Release what the gone held."""
        async with self.store.tx() as conn:
            return await dispatch.release_from_the_gone(conn, limit=100, new_id=self.store.new_id)

    async def end_out_of_time(self) -> int:
        """End what is over its limit."""
        async with self.store.tx() as conn:
            return await dispatch.end_out_of_time(conn, limit=100, new_id=self.store.new_id)

    async def give_up_unstarted(self) -> int:
        """Fail what nobody took in its time."""
        async with self.store.tx() as conn:
            return await dispatch.give_up_unstarted(conn, limit=100, new_id=self.store.new_id)

    async def hand_back(self, instance_id: str, fences: dict[str, int]) -> list[str]:
        """Give runs back as an instance."""
        async with self.store.tx() as conn:
            return await dispatch.hand_back(conn, instance_id, fences, actor=AGENT, new_id=self.store.new_id)

    async def make_due(self) -> None:
        """Let every pause between tries be over."""
        await self.rows.sql.execute("UPDATE dispatches SET due_at = now() WHERE due_at IS NOT NULL")


def ids(sent: Sequence[Dispatch]) -> list[str]:
    """Which runs are sent."""
    return [each.execution_id for each in sent]
