"""One approval with everything that a person decides on: looked up in one transaction, drawn by one template."""

from datetime import datetime
from typing import Any

from litestar import Request, Response, get
from litestar.params import FromPath
from msgspec import Struct

from controlplane.domain.errors import ApprovalNotFound
from controlplane.domain.ids import names_approval
from controlplane.inbox import present, present_approval
from controlplane.inbox.deps import looking
from controlplane.inbox.rendering import page
from controlplane.services import approvals as service
from controlplane.storage import clock, executions, history, inbox_approvals, inbox_lists
from controlplane.storage.approvals import Shown
from controlplane.storage.engine import Connection
from controlplane.storage.executions import Note, Run
from controlplane.storage.history import Entry
from controlplane.storage.inbox_approvals import Beside, Presence, Round, Telling


class Looked(Struct, frozen=True, kw_only=True):
    """One approval and all that stands beside it, at one moment of the database's clock."""

    shown: Shown
    run: Run | None
    entries: list[Entry]
    notes: list[Note]
    rounds: list[Round]
    beside: list[Beside]
    presence: Presence
    told: Telling | None
    waiting: int
    now: datetime


class Typed(Struct, frozen=True, kw_only=True):
    """What a person has typed and pressed so far, kept in the form whatever becomes of it.

    `armed` is the verdict that waits for its confirmation; `fault` why the form was not taken, in a template's word;
    `faults` why single fields were not.
    """

    feedback: str = ""
    read: bool = False
    armed: str | None = None
    fault: str | None = None
    values: dict[str, str] = {}
    faults: dict[str, str] = {}
    seen_digest: str | None = None


NOTHING_TYPED = Typed()


@get("/inbox/{approval_id:str}", include_in_schema=False)
async def show_approval(request: Request[Any, Any, Any], approval_id: FromPath[str]) -> Response[str]:
    """One approval; looking at it changes nothing.

    Raises:
        ApprovalNotFound: no such approval.
    """
    async with looking(request) as conn:
        looked = await look(conn, path_approval(approval_id))
    return draw(request, looked)


async def look(conn: Connection, approval_id: str) -> Looked:
    """One approval and what stands beside it.

    Raises:
        ApprovalNotFound: no such approval.
    """
    shown = await service.look(conn, approval_id)
    return Looked(
        shown=shown,
        run=await executions.get(conn, shown.execution_id),
        entries=await history.of_approval(conn, approval_id),
        notes=await executions.notes_of(conn, shown.execution_id),
        rounds=await inbox_approvals.rounds(conn, shown.execution_id, shown.approval_request_id),
        beside=await inbox_approvals.beside(conn, shown.execution_id, but=approval_id),
        presence=await inbox_approvals.presence(conn, shown.node_id),
        told=await inbox_approvals.told(conn, approval_id),
        waiting=await inbox_lists.waiting(conn),
        now=await clock.now(conn),
    )


def draw(
    request: Request[Any, Any, Any], looked: Looked, typed: Typed = NOTHING_TYPED, *, status: int = 200
) -> Response[str]:
    """The page of an approval, with what was typed kept in its form."""
    shown = looked.shown
    return page(
        request,
        "approval.html",
        status=status,
        shown=shown,
        typed=typed,
        looked=looked,
        title=present.title_of(shown),
        settled=present_approval.settled(shown, looked.entries),
        waiting=looked.waiting,
        now=looked.now,
    )


def path_approval(approval_id: str) -> str:
    """An approval's id from the path.

    Raises:
        ApprovalNotFound: it cannot be one.
    """
    if not names_approval(approval_id) or not approval_id.isascii() or not approval_id.isprintable():
        raise ApprovalNotFound
    return approval_id
