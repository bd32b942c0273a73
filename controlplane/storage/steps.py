"""Steps as they are remembered: each once under its name and occurrence, in the order they were done."""

from collections.abc import Sequence

import msgspec
import sqlalchemy as sa

from controlplane.domain.steps import Done, Step
from controlplane.storage.engine import Connection
from controlplane.storage.rows import columns, to_struct
from controlplane.storage.statement import Statement
from controlplane.storage.tables import steps

PAGE_BYTES = 4 * 1024 * 1024

_STEP = columns(steps, Step)


async def get(conn: Connection, execution_id: str, name: str, occurrence: int) -> Step | None:
    """One step of a run."""
    row = await conn.row(_GET, {"execution_id": execution_id, "name": name, "occurrence": occurrence})
    return to_struct(row, Step) if row else None


async def add(conn: Connection, execution_id: str, done: Done) -> Step:
    """Keep a step behind the last one; the run's row is locked, so nobody else adds one meanwhile."""
    row = await conn.row(_ADD, {"execution_id": execution_id, **msgspec.structs.asdict(done)})
    return to_struct(row, Step)


async def page(
    conn: Connection, execution_id: str, *, after: int, limit: int, most_bytes: int = PAGE_BYTES
) -> tuple[list[Step], bool]:
    """The steps behind a position, and whether more follow.

    Args:
        conn: the open transaction.
        execution_id: whose.
        after: the position that the page before ended with; 0 begins.
        limit: how many at most.
        most_bytes: how much their results may hold together; the first one comes whatever it holds.
    """
    binds = {"execution_id": execution_id, "after": after, "limit": limit, "most_bytes": most_bytes}
    rows = await conn.rows(_PAGE, binds)
    return [to_struct(row, Step) for row in rows], bool(rows) and rows[-1].position < rows[-1].last


async def count(conn: Connection, execution_ids: Sequence[str]) -> dict[str, int]:
    """How many steps each of these runs has, those without any too."""
    rows = await conn.rows(_COUNT, {"ids": list(execution_ids)})
    return {row.execution_id: row.count for row in rows}


# Built once: building one of these costs more than running it.
_MINE = steps.c.execution_id == sa.bindparam("execution_id")
_GET = Statement(
    sa.select(*_STEP).where(
        _MINE, steps.c.name == sa.bindparam("name"), steps.c.occurrence == sa.bindparam("occurrence")
    )
)
_LAST = sa.select(sa.func.coalesce(sa.func.max(steps.c.position), 0)).where(_MINE).scalar_subquery()
_ADD = Statement(
    sa.insert(steps)
    .values(
        {field: sa.bindparam(field) for field in Done.__struct_fields__}
        | {"execution_id": sa.bindparam("execution_id"), "position": _LAST + 1}
    )
    .returning(*_STEP)
)
# One step after the other, so that no result is read which the page has no room for. As positions have no gap, the
# last one is how many there are.
_PAGE = Statement(
    sa.text("""
WITH RECURSIVE sized AS (
    SELECT CAST(:after AS int) AS position, CAST(0 AS bigint) AS bytes, 0 AS number
    UNION ALL
    SELECT following.position, sized.bytes + following.bytes, sized.number + 1
    FROM sized CROSS JOIN LATERAL (
        SELECT s.position, octet_length(CAST(s.result AS text)) AS bytes
        FROM steps s
        WHERE s.execution_id = :execution_id AND s.position > sized.position
        ORDER BY s.position
        LIMIT 1
    ) AS following
    WHERE sized.number < :limit AND (sized.number = 0 OR sized.bytes + following.bytes <= :most_bytes)
)
SELECT s.name, s.occurrence, s.position, s.previous, convert_to(CAST(s.result AS text), 'UTF8') AS result, s.at,
       (SELECT max(position) FROM steps WHERE execution_id = :execution_id) AS last
FROM sized JOIN steps s ON s.execution_id = :execution_id AND s.position = sized.position
WHERE sized.number > 0
ORDER BY s.position
""")
)
_COUNT = Statement(
    sa.text("""
SELECT v.execution_id, coalesce(
    (SELECT max(s.position) FROM steps s WHERE s.execution_id = v.execution_id), 0) AS count
FROM unnest(CAST(:ids AS text[])) AS v(execution_id)
""")
)
