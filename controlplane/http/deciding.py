"""People and operators answer here, and end approvals; replies are those of the signed webhook."""

from typing import Any

from litestar import Request, post
from litestar.params import FromPath
from msgspec import UNSET, Raw, Struct, UnsetType

from controlplane.domain.approvals import ApprovalStatus
from controlplane.domain.cases import Answer
from controlplane.domain.decisions import Decision, canonical
from controlplane.domain.errors import (
    AlreadyDecided,
    DecisionMissing,
    InvalidDecision,
)
from controlplane.domain.events import Actor
from controlplane.domain.outcomes import Outcome
from controlplane.domain.urls import check_http_url
from controlplane.edge import bodies
from controlplane.edge.deps import agent, base_of, fence_of, operator, principal_of, runtime_of, transaction
from controlplane.edge.paging import clean
from controlplane.edge.paths import path_approval, path_name
from controlplane.http import fields
from controlplane.http.shapes import ApprovalOut, approval_of
from controlplane.services import approvals as service
from controlplane.services.approvals import SeenByPerson


class DecisionIn(Struct, kw_only=True):
    """A decision; `payload_digest` and `round` say what was seen, and another one that stands refuses it.

    `values` are what an approval gives to the question's form: there, and nowhere else.
    """

    decision: Raw | UnsetType = UNSET
    feedback: str | None = None
    reason: str | None = None
    response: Raw | UnsetType = UNSET
    values: Raw | UnsetType = UNSET
    payload_digest: str | None = None
    round: fields.Round | None = None
    approval_request_id: fields.RequestId | None = None


class CallbackIn(Struct, kw_only=True):
    """Where an approval's agent is told from now on."""

    callback_url: fields.Url
    callback_secret: fields.Secret | None = None


class DecisionOut(Struct, kw_only=True, omit_defaults=True):
    """What a decision came to: `processed` with the execution's new status, or `already_processed` with what stands."""

    status: str
    execution_id: str
    approval_request_id: str
    approval_id: str
    round: int
    decision: str
    new_status: str | None = None
    current_status: str | None = None
    approval_status: str | None = None
    replayed: bool = False


@post("/approvals/{approval_id:str}/decision", status_code=200, opt={"takes": DecisionIn})
async def decide(request: Request[Any, Any, Any], approval_id: FromPath[str]) -> DecisionOut:
    """Decide an approval; the same decision again is a success, another one is refused with what stands."""
    body = await bodies.take(request, DecisionIn)
    return await _decide(request, body, path_approval(approval_id))


@post("/executions/{execution_id:str}/approval-response", status_code=200, opt={"takes": DecisionIn})
async def decide_for_execution(request: Request[Any, Any, Any], execution_id: FromPath[str]) -> DecisionOut:
    """Decide the pending approval of an execution, or the one that is named."""
    body = await bodies.take(request, DecisionIn)
    _decision(body)
    named = clean("approval_request_id", body.approval_request_id)
    runtime = runtime_of(request)
    async with transaction(request) as conn:
        approval_id = await service.meant(conn, path_name(execution_id), named, runtime.new_id)
    return await _decide(request, body, approval_id)


@post("/approvals/{approval_id:str}/withdraw", status_code=200)
async def withdraw(request: Request[Any, Any, Any], approval_id: FromPath[str]) -> ApprovalOut:
    """Take a question back; on an approval that is final this says what stands."""
    return await _end(request, approval_id, ApprovalStatus.WITHDRAWN, by=_withdrawing(request))


@post("/approvals/{approval_id:str}/expire", status_code=200)
async def expire(request: Request[Any, Any, Any], approval_id: FromPath[str]) -> ApprovalOut:
    """Let a question's time be up now: the asking program's own timeout; what stands already, stands."""
    return await _end(request, approval_id, ApprovalStatus.EXPIRED, by=agent(request, "agent"))


@post("/approvals/{approval_id:str}/callback", status_code=200, opt={"takes": CallbackIn})
async def set_callback(request: Request[Any, Any, Any], approval_id: FromPath[str]) -> ApprovalOut:
    """Give the callback another address and secret; an approval that is final is told again."""
    runtime = runtime_of(request)
    body = await bodies.take(request, CallbackIn)
    url = check_http_url("callback_url", body.callback_url, userinfo=False)
    await runtime.egress.check(url, principal_of(request).allowance)
    async with transaction(request) as conn:
        shown = await service.set_callback(
            conn,
            path_approval(approval_id),
            url=url,
            secret=runtime.seal(body.callback_secret),
            actor=agent(request, "agent"),
            new_id=runtime.new_id,
            fence=fence_of(request),
        )
    return approval_of(shown, base_of(request))


def decision_out(outcome: Outcome, *, replayed: bool = False) -> DecisionOut:
    """An outcome as sent; a repeat gets the first answer."""
    same: dict[str, Any] = {
        "execution_id": outcome.execution_id,
        "approval_request_id": outcome.approval_request_id,
        "approval_id": outcome.approval_id,
        "round": outcome.round,
        "decision": outcome.approval_status,
        "replayed": replayed,
    }
    if outcome.applied:
        return DecisionOut(status="processed", new_status=outcome.new_status, **same)
    return DecisionOut(
        status="already_processed",
        current_status=outcome.execution_status,
        approval_status=outcome.approval_status,
        **same,
    )


async def _decide(request: Request[Any, Any, Any], body: DecisionIn, approval_id: str) -> DecisionOut:
    runtime = runtime_of(request)
    decision = _decision(body)
    answer = Answer(
        status=ApprovalStatus(decision.value),
        actor=operator(request),
        feedback=body.feedback if body.feedback is not None else body.reason or "",
        response=_sent(body.response),
        values=_sent(body.values),
    )
    seen = SeenByPerson(payload_digest=body.payload_digest, round=body.round)
    async with transaction(request) as conn:
        outcome = await service.decide(conn, approval_id, answer, seen=seen, new_id=runtime.new_id)
    out = decision_out(outcome)
    if not outcome.applied and outcome.approval_status != answer.status:
        raise AlreadyDecided(**{f: v for f, v in _members(out).items() if f != "status"})
    return out


def _withdrawing(request: Request[Any, Any, Any]) -> Actor:
    """Who takes a question back: whose key it is; without keys its agent, as nobody else is known."""
    return agent(request, "agent") if principal_of(request).key_id is None else operator(request)


async def _end(request: Request[Any, Any, Any], approval_id: str, status: ApprovalStatus, *, by: Actor) -> ApprovalOut:
    runtime = runtime_of(request)
    async with transaction(request) as conn:
        shown = await service.end(
            conn,
            path_approval(approval_id),
            status,
            actor=by,
            new_id=runtime.new_id,
            fence=fence_of(request),
        )
    return approval_of(shown, base_of(request))


def _decision(body: DecisionIn) -> Decision:
    if body.decision is UNSET or bytes(body.decision) == b"null":
        raise DecisionMissing
    word = bodies.plain(bytes(body.decision))
    decision = canonical(word)
    if decision is Decision.EXPIRED:
        raise InvalidDecision("A person cannot decide `expired`; withdraw the approval, or let its time pass.")
    return decision


def _sent(value: Raw | UnsetType) -> bytes | None:
    return None if value is UNSET or bytes(value) == b"null" else bytes(value)


def _members(out: DecisionOut) -> dict[str, Any]:
    return {field: getattr(out, field) for field in out.__struct_fields__ if getattr(out, field) not in (None, False)}
