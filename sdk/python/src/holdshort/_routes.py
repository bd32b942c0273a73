"""The routes of the control plane, one function each: arguments in, a Call out. Both clients are made from these."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from holdshort import _wire
from holdshort._core import Call, body, path, query
from holdshort._errors import InvalidField


def create_execution(
    node_id: str,
    execution_id: str,
    *,
    reasoner: str | None = None,
    input: Any = None,  # noqa: A002  # the wire's own word
    run_id: str | None = None,
) -> Call[_wire.Execution]:
    """Start an execution, or find it: the same id again returns it as it stands.

    Args:
        node_id: the agent it belongs to.
        execution_id: 1-128 of `A-Z a-z 0-9 . _ ~ : -`, chosen by the caller, so that a retry cannot start two.
        reasoner: name of the function it runs.
        input: JSON it was called with.
        run_id: groups executions.

    Raises:
        ExecutionExists: another node owns this id.
    """
    members = body(node_id=node_id, execution_id=execution_id, reasoner=reasoner, input=input, run_id=run_id)
    return Call(method="POST", path=path("executions"), body=members, reads=_wire.Execution)


def get_execution(execution_id: str) -> Call[_wire.Execution]:
    """One execution as it stands.

    Raises:
        NotFound: no execution has this id.
    """
    return Call(method="GET", path=path("executions", execution_id), reads=_wire.Execution)


def list_executions(
    *, status: str | None = None, node_id: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Call[_wire.ExecutionPage]:
    """A page of executions, with `cursor` from the page before; `limit` at most 200."""
    parameters = query(status=status, node_id=node_id, limit=limit, cursor=cursor)
    return Call(method="GET", path=path("executions"), query=parameters, reads=_wire.ExecutionPage)


def report_status(
    execution_id: str, status: str, *, result: Any = None, error: str | None = None, reason: str | None = None
) -> Call[_wire.Execution]:
    """Report how a run stands; succeeded, failed, cancelled and timeout end it and withdraw what is pending.

    After a rejection or an expiry the status stays cancelled and the result is kept. `reason`, up to 64 of `a-z _`,
    becomes the status_reason of a run that failed.
    """
    members = body(status=status, result=result, error=error, reason=reason)
    return Call(method="POST", path=path("executions", execution_id, "status"), body=members, reads=_wire.Execution)


def cancel_execution(execution_id: str, *, reason: str | None = None) -> Call[_wire.Execution]:
    """Cancel a run as an operator; what it asked is withdrawn."""
    members = body(reason=reason)
    return Call(method="POST", path=path("executions", execution_id, "cancel"), body=members, reads=_wire.Execution)


def add_note(execution_id: str, message: str, *, note_id: str, tags: Sequence[str] = ()) -> Call[dict[str, Any]]:
    """Keep a note with the execution; the same `note_id` again writes nothing."""
    members = body(note_id=note_id, message=message, tags=list(tags))
    return Call(method="POST", path=path("executions", execution_id, "notes"), body=members, reads=dict[str, Any])


def keep_step(
    execution_id: str, name: str, result: Any, *, occurrence: int, previous: str | None = None
) -> Call[_wire.Step]:
    """Keep what a run did; under the same name and occurrence the step that is kept is returned.

    Args:
        execution_id: the run.
        name: 1-200 characters.
        result: any JSON up to 1 MiB.
        occurrence: the how-many-eth of this name, from 1 on.
        previous: the place in the run, up to 256 characters.

    Raises:
        StepMismatch: it is kept at another place.
        StepTooLarge: the result is over 1 MiB.
        ExecutionFinished: the run is over.
    """
    members = {"name": name, "occurrence": occurrence, "previous": previous, "result": result}
    route = path("executions", execution_id, "steps")
    return Call(method="POST", path=route, body=msgspec.json.encode(members), reads=_wire.Step)


def list_steps(execution_id: str, *, after: int | None = None, limit: int | None = None) -> Call[_wire.StepPage]:
    """A page of a run's steps, behind the `after` of the page before; at most 200 and about 4 MiB of results."""
    route = path("executions", execution_id, "steps")
    return Call(method="GET", path=route, query=query(after=after, limit=limit), reads=_wire.StepPage)


class Question(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is asked of a person.

    Args:
        approval_request_id: the caller's id, 1-256 characters, unique per execution and round.
        round: the how-many-eth ask under the id.
        approval_request_url: http(s) page where the person decides; without one, the control plane's own.
        callback_url: where the decision is pushed, signed with `callback_secret` (16-256 characters).
        expires_in_hours: 1 s to 8760 h, fractions allowed; the control plane's default (72) when None.
        title: at most 200 characters.
        description: at most 20,000 characters.
        payload: the exact action, any JSON up to 256 KiB.
        on_expiry: "cancel" ends the run at the deadline, "resume" lets it go on with the result expired.
        decided_by: name of the only webhook sender whose answer counts.
        form: what the person fills in; the values come with an approval.
    """

    approval_request_id: str
    round: int | None = None
    approval_request_url: str | None = None
    callback_url: str | None = None
    callback_secret: str | None = None
    expires_in_hours: float | None = None
    title: str | None = None
    description: str | None = None
    payload: Any = None
    on_expiry: _wire.OnExpiry | None = None
    decided_by: str | None = None
    form: _wire.Form | None = None


def request_approval(execution_id: str, question: Question, *, node_id: str | None = None) -> Call[_wire.Asked]:
    """Ask, or ask again: what stands under the id and round is returned.

    Args:
        execution_id: the execution that asks.
        question: what is asked.
        node_id: when given, the execution must be this node's.

    Raises:
        ExecutionFinished: it would open something new on a run that is over.
        RoundNotOpen: the round before is still pending or ended for good.
        RequestConflict: the id and round stand for another payload, form or on_expiry.
        InvalidField: a field breaks a rule.
    """
    owner = ("agents", node_id) if node_id else ()
    route = path(*owner, "executions", execution_id, "request-approval")
    _refuse_nan(question)
    return Call(method="POST", path=route, body=msgspec.json.encode(question), reads=_wire.Asked)


def _refuse_nan(question: Question) -> None:
    """JSON has no NaN; written as null it would ask about another payload, or for the default expiry."""
    for field in ("expires_in_hours", "payload", "form"):
        try:
            json.dumps(msgspec.to_builtins(getattr(question, field), str_keys=True), allow_nan=False)
        except ValueError as error:
            rule = "NaN and infinity are no JSON"
            raise InvalidField(f"{field}: {rule}", details={"errors": [{"field": field, "rule": rule}]}) from error


def get_approval_status(
    execution_id: str,
    *,
    approval_request_id: str | None = None,
    wait: float | None = None,
    node_id: str | None = None,
) -> Call[_wire.ApprovalStatus]:
    """The newest approval of an execution (under an id, when named).

    Args:
        execution_id: the execution that asked.
        approval_request_id: picks one of its questions.
        wait: 0-60 s to hold the call until the approval is final.
        node_id: when given, the execution must be this node's.

    Raises:
        NotFound: the execution has not asked that.
    """
    owner = ("agents", node_id) if node_id else ()
    route = path(*owner, "executions", execution_id, "approval-status")
    parameters = query(approval_request_id=approval_request_id, wait=_number(wait))
    return Call(method="GET", path=route, query=parameters, hold=wait or 0, reads=_wire.ApprovalStatus)


def wait_for_approvals(approval_ids: Sequence[str], *, wait: float) -> Call[_wire.Settled]:
    """Those of up to 10,000 approvals that are final, as soon as there is one, or none after `wait` (0-60) s."""
    members = body(approval_ids=list(approval_ids), wait=wait)
    return Call(method="POST", path=path("approvals", "wait"), body=members, hold=wait, reads=_wire.Settled)


class ApprovalFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which approvals to list: by any of these, `q` searches, `order` is requested or deadline, `limit` <= 200."""

    status: str | None = None
    node_id: str | None = None
    execution_id: str | None = None
    approval_request_id: str | None = None
    q: str | None = None
    order: str | None = None
    limit: int | None = None


_EVERYTHING = ApprovalFilter()


def list_approvals(which: ApprovalFilter = _EVERYTHING, *, cursor: str | None = None) -> Call[_wire.ApprovalPage]:
    """A page of approvals, with `cursor` from the page before."""
    parameters = query(**msgspec.structs.asdict(which), cursor=cursor)
    return Call(method="GET", path=path("approvals"), query=parameters, reads=_wire.ApprovalPage)


def get_approval(approval_id: str) -> Call[_wire.Approval]:
    """One approval with its history.

    Raises:
        NotFound: no approval has this id.
    """
    return Call(method="GET", path=path("approvals", approval_id), reads=_wire.Approval)


def set_callback(approval_id: str, callback_url: str, *, callback_secret: str | None = None) -> Call[_wire.Approval]:
    """Move an approval's callback to another address; told again if it is final already."""
    members = body(callback_url=callback_url, callback_secret=callback_secret)
    return Call(method="POST", path=path("approvals", approval_id, "callback"), body=members, reads=_wire.Approval)


class Verdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a person or operator decides.

    Args:
        decision: approved, rejected or request_changes (or an alias: approve, reject, deny, ...).
        feedback: comment for the agent.
        reason: taken as feedback when there is none.
        response: any JSON, handed to the agent as `data`.
        payload_digest: of what was seen; refused when another one stands.
        round: that was seen; refused when another one stands.
        values: what was filled in, where it is approved and was asked with a form.
    """

    decision: str
    feedback: str | None = None
    reason: str | None = None
    response: Any = None
    payload_digest: str | None = None
    round: int | None = None
    values: Any = None


class _NamedVerdict(Verdict, frozen=True, kw_only=True, omit_defaults=True):
    approval_request_id: str | None = None


def decide(approval_id: str, verdict: Verdict) -> Call[_wire.Decided]:
    """Decide one approval as a person or operator.

    Raises:
        AlreadyDecided: another decision was first.
        ApprovalChanged: another digest or round stands than the one named.
        BadRequest: the decision is no known word.
        InvalidAnswer: the values do not fit the form; nothing was decided.
    """
    route = path("approvals", approval_id, "decision")
    return Call(method="POST", path=route, body=msgspec.json.encode(verdict), reads=_wire.Decided)


def answer_execution(
    execution_id: str, verdict: Verdict, *, approval_request_id: str | None = None
) -> Call[_wire.Decided]:
    """Decide the pending approval of an execution, named when several are pending.

    Raises:
        AmbiguousRequestId: several are pending and none is named.
    """
    members = _NamedVerdict(**msgspec.structs.asdict(verdict), approval_request_id=approval_request_id)
    route = path("executions", execution_id, "approval-response")
    return Call(method="POST", path=route, body=msgspec.json.encode(members), reads=_wire.Decided)


def withdraw(approval_id: str) -> Call[_wire.Approval]:
    """Take a question back; returns what stands, on a final approval the answer it has."""
    return Call(method="POST", path=path("approvals", approval_id, "withdraw"), body=b"{}", reads=_wire.Approval)


def expire(approval_id: str) -> Call[_wire.Approval]:
    """End a question's time now, as the asking node; returns what stands, on a final approval the answer it has."""
    return Call(method="POST", path=path("approvals", approval_id, "expire"), body=b"{}", reads=_wire.Approval)


def send_webhook(payload: bytes, headers: Mapping[str, str]) -> Call[_wire.Decided]:
    """Post a signed decision (see `holdshort.webhooks`); the bytes are sent as they are.

    Raises:
        NotAuthorised: the signature is missing, wrong or stale.
        Conflict: the answer could be meant for several approvals, or for a round not asked yet.
    """
    sent = {"content-type": "application/json", **headers}
    route = path("webhooks", "approval-response")
    return Call(method="POST", path=route, body=payload, headers=sent, reads=_wire.Decided)


def list_parked(*, limit: int | None = None, cursor: str | None = None) -> Call[_wire.ParkedPage]:
    """Decisions that came before their question and wait for it."""
    return Call(method="GET", path=path("parked"), query=query(limit=limit, cursor=cursor), reads=_wire.ParkedPage)


def list_deliveries(
    *, status: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Call[_wire.DeliveryPage]:
    """A page of callback deliveries."""
    parameters = query(status=status, limit=limit, cursor=cursor)
    return Call(method="GET", path=path("deliveries"), query=parameters, reads=_wire.DeliveryPage)


def redrive(delivery_id: str) -> Call[dict[str, Any]]:
    """Send a dead or waiting callback again now."""
    return Call(method="POST", path=path("deliveries", delivery_id, "redrive"), body=b"{}", reads=dict[str, Any])


def event_stream(
    *, execution_id: str | None = None, types: Sequence[str] = (), after: str | None = None, from_now: bool = False
) -> Call[_wire.Event]:
    """The live stream: every history row, from the beginning of what is kept.

    Args:
        execution_id: only this execution's rows.
        types: only these types of rows.
        after: the id of the last event that was seen.
        from_now: only what happens from now on.
    """
    wanted = ",".join(types) or None
    start = "now" if from_now and after is None else None
    parameters = query(execution_id=execution_id, types=wanted, **{"from": start})
    headers = {"last-event-id": after} if after else {}
    return Call(method="GET", path=path("events"), query=parameters, headers=headers, reads=_wire.Event)


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:g}"
