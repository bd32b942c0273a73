"""Questions that only older agents ask."""

import sqlalchemy as sa

from controlplane.storage.engine import Connection
from controlplane.storage.executions import RUN, Run
from controlplane.storage.rows import texts, to_struct
from controlplane.storage.tables import executions


async def runs_among(conn: Connection, execution_ids: list[str]) -> list[Run]:
    """Those of the executions with these ids that there are."""
    statement = sa.select(*RUN).where(executions.c.execution_id == sa.any_(texts(execution_ids)))
    return [to_struct(row, Run) for row in await conn.rows(statement)]
