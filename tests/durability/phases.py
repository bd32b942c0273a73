"""Where runs stand: what the database and the agents' journal say together."""

from collections.abc import Collection
from typing import Any

QUEUED = "queued"
BEFORE_A_STEP = "before a step"
IN_A_STEP = "in a step"
BETWEEN_STEPS = "between steps"
IN_A_PAUSE = "in a pause"
IN_THE_SECOND_PAUSE = "in the second pause"
BETWEEN_PAUSES = "between two pauses"
AFTER_THE_PAUSES = "after the second pause"
REJECTED = "after a rejection"
EXPIRED = "expired"
ALL = (
    QUEUED,
    BEFORE_A_STEP,
    IN_A_STEP,
    BETWEEN_STEPS,
    IN_A_PAUSE,
    IN_THE_SECOND_PAUSE,
    BETWEEN_PAUSES,
    AFTER_THE_PAUSES,
    REJECTED,
    EXPIRED,
)
STANDING = """
SELECT e.execution_id, e.status, e.status_reason, e.fence, e.outcome_pending,
       (SELECT count(*) FROM steps s WHERE s.execution_id = e.execution_id) AS steps,
       (SELECT count(DISTINCT approval_request_id) FROM approvals a WHERE a.execution_id = e.execution_id) AS asked
FROM executions e
WHERE e.fence = 0 OR (e.instance_id = $1 AND (e.ended_at IS NULL OR e.outcome_pending))
"""


async def standing(connection: Any, instance_id: str, at_work: Collection[str]) -> list[str]:
    """The phase of every run that this instance holds, and of those that nobody was given yet.

    Args:
        connection: to the database.
        instance_id: of the process.
        at_work: the runs that it is in a step of, as the journal says.
    """
    return [phase(row, row["execution_id"] in at_work) for row in await connection.fetch(STANDING, instance_id)]


def phase(row: Any, at_work: bool) -> str:
    """Which phase one run is in."""
    table = (
        (row["fence"] == 0, QUEUED),
        (row["outcome_pending"] and row["status_reason"] == "approval_expired", EXPIRED),
        (row["outcome_pending"], REJECTED),
        (row["status"] == "waiting" and row["asked"] > 1, IN_THE_SECOND_PAUSE),
        (row["status"] == "waiting", IN_A_PAUSE),
        (row["asked"] > 1, AFTER_THE_PAUSES),
        (row["asked"] > 0, BETWEEN_PAUSES),
        (at_work, IN_A_STEP),
        (row["steps"] > 0, BETWEEN_STEPS),
    )
    return next((name for holds, name in table if holds), BEFORE_A_STEP)
