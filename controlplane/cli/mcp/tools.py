"""The four tools, as agents see them."""

import importlib.metadata
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal, TypeVar

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from controlplane.cli.mcp.advice import NO_ANSWER, told
from controlplane.cli.mcp.asking import OWN, Desk, Question, titled
from controlplane.cli.mcp.gateway import Gateway, Refused, Unreachable
from controlplane.cli.mcp.shapes import Standing
from controlplane.domain.errors import HoldshortError

WAIT_SECONDS = 50
MOST_SECONDS = 600
BEAT_SECONDS = 5.0
LOOK_SECONDS = 0.5
INSTRUCTIONS = f"""People answer here; you wait for them.
- human_feedback: something only a person can give now (a one-time code, a CAPTCHA, a yes before you go on). It blocks.
- request_approval, then wait_for_approval: a decision that may take hours or days. Ask before you act.
- ask: a question that may take as long; the answer is kept.
Only status `approved` is a yes. {NO_ANSWER} Whatever a person wrote is theirs: read it, do not guess."""

Given = TypeVar("Given")
Hours = Annotated[float | None, Field(description="until it expires; the server's own default is 72")]
RequestId = Annotated[
    str | None, Field(description="your name for the question, so that asking again finds it; left out, one is made")
]
Schema = Annotated[dict[str, Any] | None, Field(description="JSON Schema of an object, a field for each property")]
Editable = Annotated[
    dict[str, Any] | None,
    Field(description="JSON Schema of the payload, where people may approve with changed values: see `values` then"),
]
RunId = Annotated[
    str | None, Field(description="the execution_id that an earlier result named, to ask again under the same id")
]


def make_server(gateway: Gateway, node_id: str) -> MCPServer[None]:
    """The server with its tools; it closes the gateway when it ends.

    Args:
        gateway: calls the control plane.
        node_id: under which approvals are asked.
    """

    @asynccontextmanager
    async def lifespan(_: MCPServer[None]) -> AsyncIterator[None]:
        try:
            yield None
        finally:
            with anyio.CancelScope(shield=True):
                await gateway.close()

    server = MCPServer(
        "holdshort",
        title="Holdshort: people decide",
        instructions=INSTRUCTIONS,
        version=importlib.metadata.version("holdshort-server"),
        lifespan=lifespan,
        # At INFO the package logs why tools failed, in the words that the agent is told.
        log_level="WARNING",
        subscriptions=False,
    )
    desk = Desk(gateway, node_id)
    _add_human_feedback(server, gateway)
    _add_approvals(server, desk)
    _add_ask(server, desk)
    return server


def _add_human_feedback(server: MCPServer[None], gateway: Gateway) -> None:
    @server.tool()
    async def human_feedback(
        message_for_user: str,
        ctx: Context,
        unique_id: str | None = None,
        timeout_seconds: int = 300,
        options: list[str] | None = None,
        kind: Literal["text", "yes_no", "multiple_choice", "secret"] | None = None,
    ) -> str:
        """Ask a person for something short-lived, and return their bare answer: a one-time code, a private value.

        Blocks for timeout_seconds (5 to 1800). No answer in time is an error, and never a yes. kind: text (default),
        yes_no (answers `yes` or `no`), multiple_choice (the default with options: returns one of them), secret (masked
        while it is typed). For what may take longer use ask or request_approval. Never repeat a secret answer anywhere.
        """
        asked = {
            "unique_id": unique_id or f"{OWN}{os.urandom(16).hex()}",
            "message_for_user": message_for_user,
            "timeout_seconds": timeout_seconds,
            "options": options,
            "kind": kind,
            "wait": True,
        }

        async def answered() -> str:
            found = await gateway.post("human-feedback", body=asked, wait=float(timeout_seconds))
            return str(found["response"])

        again = f"Whether a person answered is not known. {NO_ANSWER} Ask again under another unique_id."
        return await _waiting(ctx, timeout_seconds, answered, again=again, only_while_here=True)


def _add_approvals(server: MCPServer[None], desk: Desk) -> None:
    @server.tool()
    async def request_approval(  # noqa: PLR0913, PLR0917  # each is an argument of the tool
        title: Annotated[str, Field(description="what is to be approved, in one line, at most 200 characters")],
        ctx: Context,
        description: Annotated[str | None, Field(description="why, and what follows from it")] = None,
        payload: Annotated[Any, Field(description="exactly what you will do, as JSON: people read it")] = None,
        editable_schema: Editable = None,
        approval_request_id: RequestId = None,
        execution_id: RunId = None,
        expires_in_hours: Hours = None,
        on_expiry: Literal["cancel", "resume"] | None = None,
    ) -> Standing:
        """Ask a person to approve what you are about to do. Returns at once: then call wait_for_approval.

        The question is kept through every restart. Asking again with the same approval_request_id finds what stands;
        after `request_changes` it opens the next round. Do nothing of what was asked before `approved` is true.
        """
        question = Question(
            title=title,
            session=_session(ctx),
            description=description,
            payload=payload,
            form=editable_schema and {"kind": "form", "schema": editable_schema, "editable": True},
            approval_request_id=approval_request_id,
            execution_id=execution_id,
            expires_in_hours=expires_in_hours,
            on_expiry=on_expiry,
        )
        return await _or_told(lambda: desk.ask(question), again=_again(approval_request_id))

    @server.tool()
    async def wait_for_approval(approval_id: str, ctx: Context, timeout_seconds: int = WAIT_SECONDS) -> Standing:
        """Wait until a person has decided, for timeout_seconds at most (0 to 600; 50 is below what most clients allow).

        `pending` means that nobody has decided: call again with the same approval_id, from any session, days later too.
        """
        _check_wait("timeout_seconds", timeout_seconds)
        again = f"The question is kept: call wait_for_approval with {approval_id} again."
        return await _waiting(ctx, timeout_seconds, lambda: desk.wait(approval_id, timeout_seconds), again=again)


def _add_ask(server: MCPServer[None], desk: Desk) -> None:
    @server.tool()
    async def ask(  # noqa: PLR0913, PLR0917  # each is an argument of the tool
        question: str,
        ctx: Context,
        kind: Literal["text", "yes_no", "multiple_choice", "form"] | None = None,
        options: list[str] | None = None,
        schema: Annotated[
            dict[str, Any] | None, Field(description="JSON Schema of an object: one field a property")
        ] = None,
        approval_request_id: RequestId = None,
        execution_id: RunId = None,
        expires_in_hours: Hours = None,
        wait_seconds: Annotated[int, Field(description="0 to 600")] = WAIT_SECONDS,
    ) -> Standing:
        """Ask a person something that may take hours or days; the answer is kept, and comes in `values`.

        kind: text (default), yes_no, multiple_choice (with options), form (with schema). Waits wait_seconds; if it is
        still `pending` then, go on with wait_for_approval and the approval_id. For secrets use human_feedback.
        """
        _check_wait("wait_seconds", wait_seconds)
        title, description = titled(question)
        chosen = kind or ("multiple_choice" if options else "form" if schema else "text")
        form = {"kind": chosen, "options": options, "schema": schema}
        asked = Question(
            title=title,
            session=_session(ctx),
            description=description,
            form={name: value for name, value in form.items() if value is not None},
            approval_request_id=approval_request_id,
            execution_id=execution_id,
            expires_in_hours=expires_in_hours,
        )
        stands = await _or_told(lambda: desk.ask(asked), again=_again(approval_request_id))
        if stands.status != "pending" or not wait_seconds:
            return stands
        again = f"The question is kept: call wait_for_approval with {stands.approval_id}."
        return await _waiting(ctx, wait_seconds, lambda: desk.wait(stands.approval_id, wait_seconds), again=again)


async def _waiting(
    ctx: Context, seconds: float, work: Callable[[], Awaitable[Given]], *, again: str, only_while_here: bool = False
) -> Given:
    """Do what takes a person's time, and say every five seconds that it goes on, to a client that wants to know.

    With `only_while_here` it is given up once the caller is gone: nobody else can be given its answer.
    """
    given: list[Given] = []
    fault = ToolError("The caller is gone.")
    async with anyio.create_task_group() as group:
        group.start_soon(_beat, ctx, seconds)
        if only_while_here:
            group.start_soon(_give_up_when_gone, ctx, group.cancel_scope)
        try:
            given.append(await _or_told(work, again=again))
        except ToolError as said:
            fault = said
        group.cancel_scope.cancel()
    if not given:
        raise fault
    return given[0]


async def _give_up_when_gone(ctx: Context, scope: anyio.CancelScope) -> None:
    """Cancel when the connection of an HTTP call ends; where calls have none, their end is told in another way."""
    request = ctx.request_context.request
    while request is not None:
        if await request.is_disconnected():
            scope.cancel()
        await anyio.sleep(LOOK_SECONDS)


async def _beat(ctx: Context, seconds: float) -> None:
    begun = anyio.current_time()
    while True:
        passed = min(anyio.current_time() - begun, seconds)
        await ctx.report_progress(passed, seconds, "waiting for a person")
        await anyio.sleep(BEAT_SECONDS)


async def _or_told(work: Callable[[], Awaitable[Given]], *, again: str) -> Given:
    try:
        return await work()
    except (Refused, Unreachable, HoldshortError) as fault:
        raise ToolError(told(fault, again)) from None


def _session(ctx: Context) -> str | None:
    """Whose question it is: everything that one process is told over stdio, or one session over HTTP."""
    headers = ctx.headers
    return "" if headers is None else headers.get("mcp-session-id")


def _check_wait(name: str, seconds: int) -> None:
    if not 0 <= seconds <= MOST_SECONDS:
        raise ToolError(f"{name} must be 0 to {MOST_SECONDS}; to wait longer, call wait_for_approval again.")


def _again(approval_request_id: str | None) -> str:
    if approval_request_id is None:
        return "It may have been asked: give an approval_request_id, and the same call can be repeated safely."
    return "Call again with the same approval_request_id: nothing is asked twice in this session."
