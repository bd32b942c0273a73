"""What older agents tell beside their reports: events of runs, of which some end no other way."""

from msgspec.structs import replace

from controlplane.domain.errors import ExecutionNotFound
from controlplane.domain.events import Actor
from controlplane.domain.executions import ExecutionStatus
from controlplane.services import executions
from controlplane.services.approvals import lock_execution
from controlplane.services.executions import Report
from controlplane.storage.cases import NewId
from controlplane.storage.engine import Connection
from controlplane.storage.peers import ends_by_event


async def event(  # as a report is what it says, and who says it under which fence
    conn: Connection, execution_id: str, told: Report, *, actor: Actor, new_id: NewId, fence: int | None
) -> bool:
    """Take an event of a run; False when there is no such run.

    A run that was dispatched is reported too, and the report has the last word: what the event says of its end is
    less (a cancelled run is called failed) and may come first, so it is a sign of life and nothing else. Of a plain
    function, and of what an agent started itself inside of such a run, no report comes: they end with their event.
    """
    try:
        await lock_execution(conn, execution_id, new_id)
    except ExecutionNotFound:
        return False
    if not await ends_by_event(conn, execution_id):
        told = replace(told, status=ExecutionStatus.RUNNING)
    await executions.report(conn, execution_id, told, actor=actor, new_id=new_id, fence=fence)
    return True
