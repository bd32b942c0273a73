"""One approval with everything that a person decides on: looked up in one transaction, drawn by one template."""

from datetime import datetime
from typing import Any

from litestar import Request, Response, get
from litestar.params import FromPath
from msgspec import Struct

from controlplane.edge.paths import path_approval
from controlplane.inbox import present, present_approval, present_form, present_payload, present_timeline
from controlplane.inbox.deps import looking
from controlplane.inbox.present_payload import Payload
from controlplane.inbox.present_text import host_of, web_address
from controlplane.inbox.rendering import page
from controlplane.services import approvals as service
from controlplane.storage import clock, executions, history, inbox_approvals, inbox_lists
from controlplane.storage.approvals import Shown
from controlplane.storage.engine import Connection
from controlplane.storage.executions import Note, Run
from controlplane.storage.history import Entry
from controlplane.storage.inbox_approvals import Beside, Presence, Round, Telling

MOST_NOTES = 20


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

    `armed` is the verdict that waits for its confirmation; `fault` says in a word why the form was not taken, `faults`
    why single fields were not; `late` is the verdict that came after another one; `seen_digest` is the payload's that
    they had before them, and `values` what they filled in, None before anything was sent.
    """

    feedback: str = ""
    read: bool = False
    armed: str | None = None
    fault: str | None = None
    late: str | None = None
    values: dict[str, list[str]] | None = None
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
    asked_at = web_address(shown.approval_request_url)
    return page(
        request,
        "approval.html",
        status=status,
        shown=shown,
        typed=typed,
        title=present.title_of(shown),
        payload=payload_of(shown),
        page_of_asker=asked_at,
        host_of_asker=None if asked_at is None else host_of(asked_at),
        waiting=looked.waiting,
        now=looked.now,
        **_form(shown, typed),
        **_outcome(looked, typed),
        **_around(looked),
    )


def payload_of(shown: Shown) -> Payload:
    """An approval's payload as it is drawn."""
    return present_payload.payload(shown.payload, shown.payload_digest)


def _form(shown: Shown, typed: Typed) -> dict[str, Any]:
    asked = present_form.asked(shown, typed.values, typed.faults)
    answer, edited = present_form.answer_of(shown)
    return {
        "asked": asked,
        "question": asked.question,
        "kind": present.KINDS[None if asked.editable else asked.kind],
        "answer": answer,
        "edited": edited,
    }


def _outcome(looked: Looked, typed: Typed) -> dict[str, Any]:
    shown, question = looked.shown, _is_question(looked.shown)
    return {
        "settled": present_approval.settled(shown, looked.entries, question=question),
        "then": present_approval.consequences(shown, looked.beside, question=question),
        "newer": present_approval.newer(looked.rounds, shown),
        "telling": present_approval.telling(shown, looked.presence, looked.told),
        "since_seen": present_approval.since_seen(looked.rounds, shown, typed.seen_digest),
        "late_words": present.OF_VERDICT.get(typed.late or "", "Your answer"),
        "faults": present.FAULTS,
    }


def _is_question(shown: Shown) -> bool:
    form = present_form.form_of(shown)
    return form is not None and not form.editable


def _around(looked: Looked) -> dict[str, Any]:
    run, notes = looked.run, looked.notes
    return {
        "run": run,
        "run_reason": present_timeline.reason(run.status_reason) if run is not None else "",
        "states": present.RUN_STATES,
        "beside": looked.beside,
        "notes": notes[-MOST_NOTES:],
        "more_notes": max(0, len(notes) - MOST_NOTES),
        "earlier": present_approval.earlier(looked.rounds, looked.shown, looked.shown.payload),
        "lines": present_timeline.timeline(looked.entries),
    }
