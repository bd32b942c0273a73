"""Agents that come, give signs of life and go, as the services see them."""

from typing import Any

from controlplane.domain.nodes import Beat, Instance, Reasoner, Registration
from controlplane.services import following, nodes
from controlplane.storage import instances, pointing
from tests.factories import AGENT
from tests.services.store import Rows, Store

HERE, THERE = "http://127.0.0.1:9001/agent", "http://127.0.0.1:9002"
LONG = 3600.0


class Agents:
    """Processes of nodes; what a worker does is done step by step."""

    def __init__(self, store: Store, rows: Rows) -> None:
        self.store = store
        self.rows = rows

    async def register(self, instance_id: str = "i1", base_url: str = HERE, **changes: Any) -> Instance:
        fields: dict[str, Any] = {
            "node_id": "node-1",
            "instance_id": instance_id,
            "base_url": base_url,
            "version": "1",
            "reasoners": (Reasoner(name="work"),),
            "replay": True,
            "fenced": True,
            "lease_seconds": 15.0,
            "max_concurrent": None,
        }
        async with self.store.tx() as conn:
            wanted = Registration(**(fields | changes))
            return await nodes.register(conn, wanted, actor=AGENT, new_id=self.store.new_id)

    async def beat(self, instance_id: str | None = "i1", told: Beat | None = None, node_id: str = "node-1") -> Instance:
        async with self.store.tx() as conn:
            return await nodes.beat(conn, node_id, instance_id, told or Beat("ready"), AGENT)

    async def shut_down(self, instance_id: str | None = "i1", node_id: str = "node-1") -> None:
        async with self.store.tx() as conn:
            await nodes.shut_down(conn, node_id, instance_id, AGENT)

    async def silence(self, *instance_ids: str) -> int:
        """Let leases pass, and the silent ones go; how many these were."""
        await self.pass_lease(*instance_ids)
        return await self.expire()

    async def pass_lease(self, *instance_ids: str) -> None:
        await self.rows.sql.execute(
            "UPDATE instances SET lease_until = clock_timestamp() WHERE instance_id = ANY($1)", list(instance_ids)
        )

    async def expire(self, watched_seconds: float = LONG, limit: int = 100) -> int:
        async with self.store.tx() as conn:
            return await nodes.expire_leases(conn, watched_seconds=watched_seconds, limit=limit)

    async def follow(self, limit: int = 100) -> int:
        """One round of moving what points to the gone: how many deliveries were moved, or batches of approvals."""
        async with self.store.tx() as conn:
            moved = await following.move_deliveries(conn, nodes=10, limit=limit)
            left = await pointing.left(conn, 10)
        for one in left:
            async with self.store.tx() as conn:
                moved += await following.move_callbacks(conn, one, limit=limit)
        return moved

    async def forget(self) -> int:
        async with self.store.tx() as conn:
            return await instances.forget(conn, 100)

    async def states(self) -> dict[str, str]:
        """What became of each instance: its status, and why it is gone."""
        found = await self.rows.sql.fetch("SELECT instance_id, concat_ws(' ', status, gone_reason) AS s FROM instances")
        return {row["instance_id"]: row["s"] for row in found}

    async def facts(self) -> list[str]:
        """What history says of instances: `type instance_id`."""
        return await self.rows.column(
            "SELECT type || ' ' || (data ->> 'instance_id') FROM history WHERE type LIKE 'node.%' ORDER BY seq"
        )
