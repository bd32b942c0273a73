"""Scripts that are played against the SDK's own control plane in memory and against the real one: one table, two runs.

Each is given `do`, which calls a method of the client and keeps what came of it, and ids to use.
"""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol

import msgspec
from holdshort import Approval, ApprovalFilter, AsyncClient, HoldshortError, Question, RunEnded, Verdict

APPROVED, REJECTED, CHANGES = (Verdict(decision=word) for word in ("approved", "rejected", "request_changes"))
SOON = 1.0 / 3600

# What differs by nature: ids that the control plane makes, its clock, its address, and its sentences.
VOLATILE = {
    "approval_id", "requested_at", "responded_at", "expires_at", "created_at", "started_at", "updated_at", "ended_at",
    "request_url", "approval_request_url", "history", "at", "enc", "ct",
}  # fmt: skip


class Does(Protocol):
    """Calls a method of the client; what it returned, or the error's class, code and status, is kept."""

    async def __call__(self, method: str, /, *args: Any, **kwargs: Any) -> Any: ...

    async def pass_deadline(self, asked_id: str) -> None:
        """Wait, or move the clock, past the deadline of an approval asked with SOON, or a question of 5 s."""

    async def waiting(self, unique_id: str) -> None:
        """Keep how a short-lived question is shown to people; nothing where it is not."""

    def keep(self, value: object) -> None:
        """Keep what a script found out by itself."""


class Ids(NamedTuple):
    """What a script may call its things."""

    run: str
    node: str


Script = Callable[[Does, Ids], Awaitable[None]]
SCRIPTS: list[Script] = []


def script(function: Script) -> Script:
    SCRIPTS.append(function)
    return function


class Doing:
    """Keeps a transcript.

    Args:
        client: of either control plane.
        passing: lets a deadline pass there.
    """

    def __init__(self, client: AsyncClient, passing: Callable[[str], Awaitable[None]]) -> None:
        self._client = client
        self.pass_deadline = passing
        self.transcript: list[tuple[str, Any]] = []

    async def __call__(self, method: str, /, *args: Any, **kwargs: Any) -> Any:
        try:
            returned = await getattr(self._client, method)(*args, **kwargs)
        except (HoldshortError, RunEnded) as error:
            self.transcript.append((method, (type(error).__name__, error.code, error.status)))
            return error
        self.transcript.append((method, steady(msgspec.to_builtins(returned))))
        return returned

    async def waiting(self, unique_id: str) -> None:
        found = [each for each in (await self._client.pending_feedback()).requests if each.unique_id == unique_id]
        self.transcript.append(("waiting", steady(msgspec.to_builtins(found))))

    def keep(self, value: object) -> None:
        self.transcript.append(("kept", value))


def steady(value: Any) -> Any:
    """What must be the same on both."""
    if isinstance(value, dict):
        return {name: steady(each) for name, each in value.items() if name not in VOLATILE}
    return [steady(each) for each in value] if isinstance(value, list) else value


def ask(request_id: str = "q", **rest: Any) -> Question:
    return Question(approval_request_id=request_id, **rest)


@script
async def asking_again_finds_what_stands(do: Does, ids: Ids) -> None:
    await do("create_execution", ids.node, ids.run, input=[1])
    await do("request_approval", ids.run, ask(payload={"b": 1, "a": [None, "\u00e9"]}, title="t"))
    await do("request_approval", ids.run, ask(payload={"a": [None, "\u00e9"], "b": 1}, title="other"))
    await do("request_approval", ids.run, ask(payload={"a": 2}))
    await do("request_approval", ids.run, ask(payload={"a": [None, "\u00e9"], "b": 1}, on_expiry="resume"))
    await do("request_approval", ids.run, ask(round=2))
    await do("request_approval", ids.run, ask(round=3))
    await do("get_execution", ids.run)
    await do("list_approvals", ApprovalFilter(node_id=ids.node))


@script
async def an_approval_stands(do: Does, ids: Ids) -> None:
    await do("create_execution", ids.node, ids.run)
    asked = await do("request_approval", ids.run, ask())
    await do("decide", asked.approval_id, Verdict(decision=" Approve ", feedback="f", reason="r", response={"x": 0}))
    await do("decide", asked.approval_id, APPROVED)
    await do("decide", asked.approval_id, REJECTED)
    await do("withdraw", asked.approval_id)
    await do("expire", asked.approval_id)
    await do("request_approval", ids.run, ask())
    await do("request_approval", ids.run, ask(payload=1))
    await do("request_approval", ids.run, ask(round=2))
    await do("get_execution", ids.run)
    await do("report_status", ids.run, "succeeded", result={"done": True})
    await do("request_approval", ids.run, ask())
    await do("request_approval", ids.run, ask("new"))


@script
async def changes_open_rounds(do: Does, ids: Ids) -> None:
    await do("create_execution", ids.node, ids.run)
    for round_ in (1, 2):
        asked = await do("request_approval", ids.run, ask(round=round_, payload=round_))
        await do("request_approval", ids.run, ask(round=round_ + 1))
        await do("decide", asked.approval_id, Verdict(decision="request_changes", feedback=f"more {round_}"))
        await do("get_execution", ids.run)
    await do("request_approval", ids.run, ask(round=1, payload=1))
    await do("request_approval", ids.run, ask(round=1, payload=5))
    await do("request_approval", ids.run, ask(payload=3))
    await do("get_approval_status", ids.run, approval_request_id="q")


@script
async def a_rejection_ends_the_run(do: Does, ids: Ids) -> None:
    await do("create_execution", ids.node, ids.run)
    asked = await do("request_approval", ids.run, ask())
    beside = await do("request_approval", ids.run, ask("beside"))
    await do("decide", asked.approval_id, Verdict(decision="deny", reason="no"))
    await do("get_approval", beside.approval_id)
    await do("decide", beside.approval_id, APPROVED)
    await do("get_execution", ids.run)
    await do("request_approval", ids.run, ask())
    await do("request_approval", ids.run, ask("beside", round=2))
    await do("request_approval", ids.run, ask("new"))
    await do("report_status", ids.run, "succeeded", result="cleaned")
    await do("get_execution", ids.run)


@script
async def a_withdrawal_lets_the_run_go_on(do: Does, ids: Ids) -> None:
    await do("create_execution", ids.node, ids.run)
    first = await do("request_approval", ids.run, ask())
    beside = await do("request_approval", ids.run, ask("beside"))
    await do("withdraw", first.approval_id)
    await do("get_execution", ids.run)
    await do("withdraw", beside.approval_id)
    await do("get_execution", ids.run)
    await do("request_approval", ids.run, ask(round=2))


@script
async def deadlines_pass(do: Does, ids: Ids) -> None:
    for end in ("cancel", "resume"):
        run = f"{ids.run}-{end}"
        await do("create_execution", ids.node, run)
        asked = await do("request_approval", run, ask(expires_in_hours=SOON, on_expiry=end))
        await do.pass_deadline(asked.approval_id)
        await do("get_approval", asked.approval_id)
        await do("get_execution", run)
        await do("decide", asked.approval_id, APPROVED)
        await do("request_approval", run, ask(on_expiry=end, round=1))
        await do("request_approval", run, ask(on_expiry=end, round=2))
        await do("get_execution", run)


@script
async def the_askers_own_timeout_expires(do: Does, ids: Ids) -> None:
    for end in ("cancel", "resume"):
        run = f"{ids.run}-{end}"
        await do("create_execution", ids.node, run)
        asked = await do("request_approval", run, ask(on_expiry=end))
        await do("expire", asked.approval_id)
        await do("get_execution", run)


@script
async def people_decide_on_what_they_saw(do: Does, ids: Ids) -> None:
    await do("create_execution", ids.node, ids.run)
    asked = await do("request_approval", ids.run, ask(payload={"amount": 10}))
    for word in ("", "ok", "expired", "withdrawn", "not approved", "pending"):
        await do("decide", asked.approval_id, Verdict(decision=word))
    await do("decide", asked.approval_id, Verdict(decision="approved", round=2))
    await do("decide", asked.approval_id, Verdict(decision="approved", payload_digest="0" * 64))
    seen = Verdict(decision="approved", round=1, payload_digest=asked.payload_digest)
    await do("decide", asked.approval_id, seen)


@script
async def answers_of_a_run_name_what_they_mean(do: Does, ids: Ids) -> None:
    await do("create_execution", ids.node, ids.run)
    await do("answer_execution", ids.run, APPROVED)
    await do("answer_execution", f"{ids.run}-never", APPROVED)
    await do("request_approval", ids.run, ask("a"))
    await do("request_approval", ids.run, ask("b"))
    await do("answer_execution", ids.run, APPROVED)
    await do("answer_execution", ids.run, APPROVED, approval_request_id="c")
    await do("answer_execution", ids.run, CHANGES, approval_request_id="a")
    await do("get_execution", ids.run)
    await do("answer_execution", ids.run, APPROVED)
    await do("get_execution", ids.run)


@script
async def data_is_kept_exactly(do: Does, ids: Ids) -> None:
    await do("create_execution", ids.node, ids.run)
    for number, data in enumerate([0, False, "", [], {}, None, 1.5, {"a": {"b": [None]}}]):
        asked = await do("request_approval", ids.run, ask(f"q{number}", payload=data))
        await do("decide", asked.approval_id, Verdict(decision="approved", response=data))
        await do("get_approval_status", ids.run, approval_request_id=f"q{number}")


@script
async def reports_end_runs_once(do: Does, ids: Ids) -> None:
    for status in ("queued", "running", "waiting", "succeeded", "failed", "cancelled", "timeout"):
        run = f"{ids.run}-{status}"
        await do("create_execution", ids.node, run)
        asked = await do("request_approval", run, ask())
        await do("report_status", run, status, result=[status], error=None)
        await do("report_status", run, "failed", error="late")
        await do("get_approval", asked.approval_id)
        await do("decide", asked.approval_id, APPROVED)
        await do("cancel_execution", run)


@script
async def operators_cancel(do: Does, ids: Ids) -> None:
    for reason in (None, "wrong contract"):
        run = f"{ids.run}-{reason is None}"
        await do("create_execution", ids.node, run)
        asked = await do("request_approval", run, ask())
        await do("cancel_execution", run, reason=reason)
        await do("get_approval", asked.approval_id)
        await do("request_approval", run, ask(round=1))
        await do("request_approval", run, ask(round=2))
        await do("report_status", run, "failed", error="stopped")


@script
async def what_is_not_there_is_said_so(do: Does, ids: Ids) -> None:
    await do("get_execution", ids.run)
    await do("request_approval", ids.run, ask())
    await do("report_status", ids.run, "succeeded")
    await do("cancel_execution", ids.run)
    await do("add_note", ids.run, "m", note_id="n")
    await do("get_approval_status", ids.run)
    for method in ("get_approval", "withdraw", "expire"):
        await do(method, "apr_never")
    await do("decide", "apr_never", APPROVED)
    await do("set_callback", "apr_never", "http://127.0.0.1:1/")
    await do("redrive", "dlv_never")
    await do("create_execution", ids.node, ids.run)
    await do("get_approval_status", ids.run)
    await do("wait_for_approvals", ["apr_never"], wait=0)


@script
async def owners_are_checked(do: Does, ids: Ids) -> None:
    await do("create_execution", ids.node, ids.run)
    await do("create_execution", f"{ids.node}-2", ids.run)
    await do("request_approval", ids.run, ask(), node_id=f"{ids.node}-2")
    await do("request_approval", ids.run, ask(), node_id=ids.node)
    await do("get_approval_status", ids.run, node_id=f"{ids.node}-2")
    await do("get_approval_status", ids.run, node_id=ids.node)


@script
async def fields_are_checked(do: Does, ids: Ids) -> None:
    await do("create_execution", ids.node, ids.run)
    await do("create_execution", "a node", ids.run)
    await do("create_execution", ids.node, "a run")
    for hours in (0, -1, 0.0001, 8761):
        await do("request_approval", ids.run, ask(expires_in_hours=hours))
    for request_id in ("", "apr_mine", "a\nb", "x" * 257):
        await do("request_approval", ids.run, ask(request_id))
    await do("request_approval", ids.run, ask(round=0))
    await do("request_approval", ids.run, ask(on_expiry="perhaps"))
    await do("request_approval", ids.run, ask(callback_url="ftp://127.0.0.1/", callback_secret="s" * 16))
    await do("request_approval", ids.run, ask(callback_url="http://127.0.0.1/", callback_secret="short"))
    await do("request_approval", ids.run, ask(approval_request_url="javascript:alert(1)"))
    await do("request_approval", ids.run, ask(title="t" * 201))
    await do("request_approval", ids.run, ask(description="d" * 20_001))
    await do("get_approval_status", ids.run, wait=61)
    await do("wait_for_approvals", ["apr_x"], wait=61)
    await do("wait_for_approvals", [], wait=0)
    await do("report_status", ids.run, "perhaps")
    await do("get_execution", ids.run)


@script
async def waits_end(do: Does, ids: Ids) -> None:
    await do("create_execution", ids.node, ids.run)
    asked = await do("request_approval", ids.run, ask())
    await do("get_approval_status", ids.run, wait=0.05)
    await do("wait_for_approvals", [asked.approval_id], wait=0.05)
    await do("decide", asked.approval_id, APPROVED)
    await do("get_approval_status", ids.run, wait=5)
    await do("wait_for_approvals", [asked.approval_id, "apr_never"], wait=5)


@script
async def notes_are_kept_once(do: Does, ids: Ids) -> None:
    await do("create_execution", ids.node, ids.run)
    await do("add_note", ids.run, "first", note_id="n1", tags=["a"])
    await do("add_note", ids.run, "second", note_id="n2")


@script
async def steps_are_kept_once(do: Does, ids: Ids) -> None:
    await do("keep_step", ids.run, "a", 1, occurrence=1)
    await do("create_execution", ids.node, ids.run)
    await do("list_steps", ids.run)
    for result in ({"b": [None, 1.5]}, "another"):
        await do("keep_step", ids.run, "a", result, occurrence=1, previous="")
    await do("keep_step", ids.run, "a", 1, occurrence=1, previous="a#1")
    await do("keep_step", ids.run, "a", 1, occurrence=1)
    await do("keep_step", ids.run, "a", None, occurrence=2)
    for name in ("", "x" * 201, "a\nb"):
        await do("keep_step", ids.run, name, 1, occurrence=1)
    await do("keep_step", ids.run, "a", 1, occurrence=0)
    await do("keep_step", ids.run, "a", 1, occurrence=3, previous="p" * 257)
    await do("keep_step", ids.run, "large", "x" * (1024 * 1024 - 2), occurrence=1)
    await do("keep_step", ids.run, "larger", "x" * (1024 * 1024 - 1), occurrence=1)
    await do("list_steps", ids.run, limit=1)
    await do("list_steps", ids.run, after=1)
    await do("list_steps", ids.run, after=9)
    await do("report_status", ids.run, "failed", error="e", reason="step_mismatch")
    await do("keep_step", ids.run, "a", 1, occurrence=1, previous="")
    await do("get_execution", ids.run)


@script
async def lists_show_what_is_meant(do: Does, ids: Ids) -> None:
    for n in range(3):
        await do("create_execution", ids.node, f"{ids.run}-{n}")
        asked: Approval = await do("request_approval", f"{ids.run}-{n}", ask(f"q{n % 2}", title=f"Title {n}"))
    await do("decide", asked.approval_id, APPROVED)
    for which in (
        ApprovalFilter(node_id=ids.node),
        ApprovalFilter(node_id=ids.node, status="pending"),
        ApprovalFilter(node_id=ids.node, approval_request_id="q0"),
        ApprovalFilter(execution_id=f"{ids.run}-1"),
        ApprovalFilter(node_id=ids.node, q="title 1"),
        ApprovalFilter(node_id=ids.node, order="deadline"),
        ApprovalFilter(node_id=ids.node, limit=200),
    ):
        await do("list_approvals", which)
    await do("list_executions", node_id=ids.node)
    await do("list_executions", node_id=ids.node, status="running")
