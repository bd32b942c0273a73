"""Approvals and durable questions: asked under a run of their own, waited for in bounded turns, found again."""

import hashlib
import os
import time
from collections.abc import Mapping
from typing import Any

import anyio
from msgspec import Struct

from controlplane.cli.mcp.gateway import Document, Gateway, Refused, Unreachable
from controlplane.cli.mcp.shapes import Standing, standing
from controlplane.domain.errors import ApprovalNotFound, FieldFault
from controlplane.domain.ids import APPROVAL_PREFIX, check_name

OWN = "mcp_"
ENTROPY_BYTES = 16
TURN_SECONDS = 25.0
AWAY_SECONDS = 1.0
TITLE = 200
APPROVED = "approved"


class Question(Struct, frozen=True, kw_only=True):
    """What a person is asked; `session` is the caller's own, None where the protocol knows none."""

    title: str
    session: str | None
    description: str | None = None
    payload: Any = None
    form: Mapping[str, Any] | None = None
    approval_request_id: str | None = None
    execution_id: str | None = None
    expires_in_hours: float | None = None
    on_expiry: str | None = None


class Desk:
    """Asks and waits for one node.

    Each question has a run of its own, unless the caller names one: a rejection ends its run, and must end nothing
    else. Within a session the same approval_request_id means the same run, so that asking again finds what stands; an
    answer that another session was given is never found by it.

    Args:
        gateway: calls the control plane.
        node_id: under which it asks.
    """

    def __init__(self, gateway: Gateway, node_id: str) -> None:
        self._gateway = gateway
        self._node_id = node_id
        self._secret = os.urandom(ENTROPY_BYTES)

    async def ask(self, question: Question) -> Standing:
        """Ask, or find what stands.

        Raises:
            FieldFault: no run can have that id.
            Refused: the control plane said no.
            Unreachable: it cannot be reached; the same question may be asked again.
        """
        request_id = question.approval_request_id or f"{OWN}{os.urandom(ENTROPY_BYTES).hex()}"
        execution_id = _run_id(question.execution_id) or self._run_of(question.session, request_id)
        await self._start(execution_id)
        asked = {
            "approval_request_id": request_id,
            "title": question.title,
            "description": question.description,
            "payload": question.payload,
            "form": question.form,
            "expires_in_hours": question.expires_in_hours,
            "on_expiry": question.on_expiry,
        }
        found = await self._gateway.post("executions", execution_id, "request-approval", body=asked)
        return standing(found, execution_id)

    async def wait(self, approval_id: str, seconds: float) -> Standing:
        """Where an approval stands, once it is final or the time has passed.

        A control plane that goes away while it is waited for is waited for too: the question outlives it.

        Raises:
            ApprovalNotFound: no approval can have that id.
            Refused: there is no such approval, or it is not the caller's.
            Unreachable: it cannot be reached from the start.
        """
        if not approval_id.startswith(APPROVAL_PREFIX) or not approval_id.replace("_", "").isalnum():
            raise ApprovalNotFound
        until = time.monotonic() + seconds
        found = await self._gateway.get("approvals", approval_id)
        while found["status"] == "pending" and (left := until - time.monotonic()) > 0:
            ended = await self._turn(approval_id, min(left, TURN_SECONDS))
            found = ended or found
        await self._end_own(found)
        return standing(found, found["execution_id"])

    async def _turn(self, approval_id: str, seconds: float) -> Document | None:
        body = {"approval_ids": [approval_id], "wait": seconds}
        try:
            ended = await self._gateway.post("approvals", "wait", body=body, wait=seconds)
        except Unreachable:
            await anyio.sleep(min(seconds, AWAY_SECONDS))
            return None
        approvals: list[Document] = ended["approvals"]
        return approvals[0] if approvals else None

    async def _start(self, execution_id: str) -> None:
        """Start a run, or find it; one that somebody else started is asked under as it is."""
        try:
            await self._gateway.get("executions", execution_id)
        except Refused as refused:
            if refused.code != "execution_not_found":
                raise
            await self._gateway.post("executions", body={"node_id": self._node_id, "execution_id": execution_id})

    async def _end_own(self, found: Document) -> None:
        """End the run that was started for this question alone, once it was approved; other ends end it themselves."""
        execution_id = found["execution_id"]
        if found["status"] != APPROVED or not execution_id.startswith(OWN):
            return
        try:
            await self._gateway.post("executions", execution_id, "status", body={"status": "succeeded"})
        except (Refused, Unreachable):
            # The answer counts; a run that stays open costs nothing but a line in a list.
            return

    def _run_of(self, session: str | None, request_id: str) -> str:
        known = self._secret + session.encode() if session is not None else os.urandom(ENTROPY_BYTES)
        digest = hashlib.blake2b(request_id.encode(), key=hashlib.sha256(known).digest(), digest_size=13)
        return f"{OWN}{digest.hexdigest()}"


def titled(question: str) -> tuple[str, str | None]:
    """A question as a title, and as a description where it does not fit into one."""
    if len(question) <= TITLE and "\n" not in question:
        return question, None
    first = question.strip().splitlines()[0] if question.strip() else question
    return (first if len(first) <= TITLE else f"{first[: TITLE - 1]}\u2026"), question


def _run_id(given: str | None) -> str | None:
    if given is not None and not check_name("execution_id", given).strip("."):
        raise FieldFault("execution_id", "must not be of dots only")
    return given
