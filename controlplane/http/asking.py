"""Agents ask here: open an approval or find the one that stands, see where it stands, give its callback an address."""

from datetime import datetime, timedelta
from typing import Annotated, Any

from litestar import Request, get, post
from litestar.params import FromPath, Parameter
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from controlplane.domain import forms
from controlplane.domain.approvals import MAX_EXPIRY_HOURS, MIN_EXPIRY, ApprovalStatus, OnExpiry
from controlplane.domain.asking import Asked
from controlplane.domain.digests import payload_digest
from controlplane.domain.errors import FieldFault
from controlplane.domain.ids import check_request_id
from controlplane.domain.urls import check_http_url
from controlplane.edge import bodies
from controlplane.edge.deps import (
    agent,
    base_of,
    fence_of,
    looking,
    principal_of,
    reads_for_agent,
    runtime_of,
    transaction,
)
from controlplane.edge.paging import clean
from controlplane.edge.paths import path_name
from controlplane.http import fields, waiting
from controlplane.http.shapes import AnswerOut, StatusOut, answer_of, page_of, raw
from controlplane.runtime import Runtime
from controlplane.services import approvals as service
from controlplane.services import asking as asking_service
from controlplane.storage.approvals import Wording

MAX_PAYLOAD = 256 * 1024

_LEAST_HOURS = MIN_EXPIRY.total_seconds() / 3600
Hours = Annotated[float, Meta(extra_json_schema={"minimum": _LEAST_HOURS, "maximum": MAX_EXPIRY_HOURS})]


class AskIn(Struct, kw_only=True):
    """A question to a person. The same id and round asked again finds the approval that stands."""

    approval_request_id: fields.RequestId
    round: fields.Round | None = None
    approval_request_url: fields.Url | None = None
    callback_url: fields.Url | None = None
    callback_secret: fields.Secret | None = None
    expires_in_hours: Hours | None = None
    title: Annotated[str, Meta(max_length=200)] | None = None
    description: Annotated[str, Meta(max_length=20_000)] | None = None
    payload: Raw | UnsetType = UNSET
    on_expiry: OnExpiry | None = None
    decided_by: fields.Sender | None = None
    form: Raw | UnsetType = UNSET


class AskOut(Struct):
    """The approval that was opened or that stands; `response` is null while it is pending."""

    approval_request_id: str
    approval_request_url: str | None
    status: ApprovalStatus
    approval_id: str
    round: int
    requested_at: datetime
    expires_at: datetime
    payload_digest: str | None
    response: AnswerOut | None
    form: Raw | None


_ASK_PATHS = [
    "/executions/{execution_id:str}/request-approval",
    "/agents/executions/{execution_id:str}/request-approval",
]
_STATUS_PATHS = [
    "/executions/{execution_id:str}/approval-status",
    "/agents/executions/{execution_id:str}/approval-status",
]
RequestId = Annotated[str | None, Parameter(description="Which approval; absent: the newest of the execution.")]


@post(_ASK_PATHS, status_code=200, opt={"takes": AskIn})
async def request_approval(request: Request[Any, Any, Any], execution_id: FromPath[str]) -> AskOut:
    """Ask for an approval; the execution waits from then on. Asking again is safe."""
    return await _ask(request, execution_id, None)


@post("/agents/{node_id:str}/executions/{execution_id:str}/request-approval", status_code=200, opt={"takes": AskIn})
async def request_approval_of_node(
    request: Request[Any, Any, Any], node_id: FromPath[str], execution_id: FromPath[str]
) -> AskOut:
    """Ask for an approval of an execution that must be this node's."""
    return await _ask(request, execution_id, node_id)


@get(_STATUS_PATHS)
async def approval_status(
    request: Request[Any, Any, Any],
    execution_id: FromPath[str],
    approval_request_id: RequestId = None,
    wait: waiting.Seconds = 0,
) -> StatusOut:
    """Where an approval stands; with `wait`, once it is final or the time has passed."""
    return await _status(request, execution_id, approval_request_id, wait=wait, node_id=None)


@get("/agents/{node_id:str}/executions/{execution_id:str}/approval-status")
async def approval_status_of_node(
    request: Request[Any, Any, Any],
    node_id: FromPath[str],
    execution_id: FromPath[str],
    approval_request_id: RequestId = None,
    wait: waiting.Seconds = 0,
) -> StatusOut:
    """Where an approval of this node's execution stands."""
    return await _status(request, execution_id, approval_request_id, wait=wait, node_id=node_id)


async def _ask(request: Request[Any, Any, Any], execution_id: str, node_id: str | None) -> AskOut:
    runtime = runtime_of(request)
    _check_path_node(node_id)
    body = await bodies.take(request, AskIn)
    asked = _asked(body, path_name(execution_id), runtime)
    if asked.callback_url is not None:
        await runtime.egress.check(asked.callback_url, principal_of(request).allowance)
    async with transaction(request) as conn:
        approval = await asking_service.ask(
            conn,
            asked,
            Wording(title=body.title, description=body.description, payload=_payload(body)),
            actor=agent(request, node_id or "agent"),
            new_id=runtime.new_id,
            node_id=node_id,
            fence=fence_of(request),
        )
    return AskOut(
        approval_request_id=approval.approval_request_id,
        approval_request_url=page_of(approval, base_of(request)),
        status=approval.status,
        approval_id=approval.approval_id,
        round=approval.round,
        requested_at=approval.requested_at,
        expires_at=approval.expires_at,
        payload_digest=approval.payload_digest,
        response=answer_of(approval),
        form=raw(approval.form),
    )


async def _status(
    request: Request[Any, Any, Any], execution_id: str, request_id: str | None, *, wait: float, node_id: str | None
) -> StatusOut:
    _check_path_node(node_id)
    seconds = waiting.check(wait)
    named = clean("approval_request_id", request_id)
    async with looking(request) as conn:
        shown = await service.look_newest(conn, path_name(execution_id), named, node_id=node_id)
        if reads_for_agent(request):
            await service.note_read(conn, [shown])
    if not shown.final and seconds:
        ended = await waiting.until_final(request, [shown.approval_id], seconds)
        shown = ended[0] if ended else shown
    return waiting.shape(request, shown)


def _check_path_node(node_id: str | None) -> None:
    if node_id is not None:
        path_name(node_id)


def _asked(body: AskIn, execution_id: str, runtime: Runtime) -> Asked:
    payload = _payload(body)
    return Asked(
        execution_id=execution_id,
        approval_request_id=check_request_id("approval_request_id", body.approval_request_id),
        expires_in=_expires_in(
            runtime.settings.default_expires_hours if body.expires_in_hours is None else body.expires_in_hours
        ),
        on_expiry=body.on_expiry or OnExpiry.CANCEL,
        round=body.round,
        approval_request_url=_url("approval_request_url", body.approval_request_url or None, userinfo=True),
        callback_url=_url("callback_url", body.callback_url, userinfo=False),
        callback_secret=runtime.seal(body.callback_secret),
        payload_digest=None if payload is None else payload_digest(payload),
        decided_by=body.decided_by,
        form=_form(body, payload),
    )


def _payload(body: AskIn) -> bytes | None:
    """The payload's bytes as received; null says that there is none."""
    if body.payload is UNSET or bytes(body.payload) == b"null":
        return None
    payload = bytes(body.payload)
    if len(payload) > MAX_PAYLOAD:
        raise FieldFault("payload", f"must have at most {MAX_PAYLOAD} bytes of JSON")
    return payload


def _form(body: AskIn, payload: bytes | None) -> bytes | None:
    if body.form is UNSET or bytes(body.form) == b"null":
        return None
    form = bytes(body.form)
    forms.check_payload(forms.read(form), payload)
    return forms.kept(form)


def _expires_in(hours: float) -> timedelta:
    if not _LEAST_HOURS <= hours <= MAX_EXPIRY_HOURS:
        raise FieldFault("expires_in_hours", f"must be a number from {_LEAST_HOURS:.6f} (1 s) to {MAX_EXPIRY_HOURS}")
    return max(timedelta(hours=hours), MIN_EXPIRY)


def _url(field: str, value: str | None, *, userinfo: bool) -> str | None:
    return None if value is None else check_http_url(field, value, userinfo=userinfo)
