"""Questions that only older agents ask."""

import sqlalchemy as sa

from controlplane.storage.engine import Connection
from controlplane.storage.executions import RUN, Run
from controlplane.storage.reach import in_reach
from controlplane.storage.rows import texts, to_struct
from controlplane.storage.statement import Statement
from controlplane.storage.tables import executions, nodes


async def ends_by_event(conn: Connection, execution_id: str) -> bool:
    """Whether no report comes of a run: its agent started it itself, or it is of a plain function."""
    row = await conn.row(_ENDS_BY_EVENT, {"execution_id": execution_id})
    return row is not None


async def runs_among(conn: Connection, execution_ids: list[str]) -> list[Run]:
    """Those of the executions with these ids that there are."""
    statement = sa.select(*RUN).where(
        executions.c.execution_id == sa.any_(texts(execution_ids)),
        in_reach(conn, executions.c.node_id, executions.c.started_by),
    )
    return [to_struct(row, Run) for row in await conn.rows(statement)]


_ENDS_BY_EVENT = Statement(
    sa.select(sa.literal(1))
    .select_from(executions.outerjoin(nodes, nodes.c.node_id == executions.c.node_id))
    .where(
        executions.c.execution_id == sa.bindparam("execution_id"),
        sa.or_(sa.not_(executions.c.dispatched), executions.c.reasoner == sa.any_(nodes.c.skills)),
    )
)
