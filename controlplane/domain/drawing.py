"""The state machine as a drawing and a table, made from the table that the rules themselves use."""

from controlplane.domain.approvals import EFFECT_STATUS, TRANSITIONS, ApprovalStatus, Effect, Ending
from controlplane.domain.dispatching import AGENT_REFUSED, AGENT_REPLY_INVALID, AGENT_UNREACHABLE
from controlplane.domain.executions import (
    CANCELLED_BY_OPERATOR,
    DISPATCH_FAILED,
    EXECUTION_FINISHED,
    EXECUTION_TIMEOUT,
    FINAL_EXECUTION,
    HANDED_BACK,
    INSTANCE_GONE,
    MAY_ASK,
    TOO_MANY_RESTARTS,
    WAITING_FOR_APPROVAL,
    ExecutionStatus,
)

_INTRODUCTION = """\
# State machine

Made from `TRANSITIONS` in `controlplane/domain/approvals.py` by `controlplane/domain/drawing.py`; a test compares.
The CHECK constraints of the tables hold the same words. A final state never changes.
"""


def state_machine() -> str:
    """The whole page, `docs/state-machine.md`, in Markdown with Mermaid diagrams."""
    parts = [
        _INTRODUCTION,
        _section("Approvals", _diagram(_approval_arrows())),
        _section("Executions", _diagram(_execution_arrows())),
        _section("What each answer does", _table()),
    ]
    return "\n".join(parts)


def _section(title: str, body: str) -> str:
    return f"## {title}\n\n{body}\n"


def _diagram(arrows: list[str]) -> str:
    return "\n".join(["```mermaid", "stateDiagram-v2", *(f"    {arrow}" for arrow in arrows), "```"])


def _approval_arrows() -> list[str]:
    pending = ApprovalStatus.PENDING
    events: dict[ApprovalStatus, list[str]] = {}
    for ending, transition in TRANSITIONS.items():
        events.setdefault(transition.to, []).append(ending)
    beside = [e for e, t in TRANSITIONS.items() if t.effect is Effect.CANCEL]
    events[TRANSITIONS[Ending.WITHDRAWN].to] += [f"beside {' or '.join(beside)}", "execution over"]
    return [
        f"[*] --> {pending}: asked",
        *(f"{pending} --> {to}: {', '.join(causes)}" for to, causes in events.items()),
        *(f"{to} --> [*]" for to in events),
    ]


def _execution_arrows() -> list[str]:
    waiting, running = ExecutionStatus.WAITING, ExecutionStatus.RUNNING
    caused = {
        effect: ", ".join(e for e, transition in TRANSITIONS.items() if transition.effect is effect)
        for effect in Effect
    }
    ends = sorted(FINAL_EXECUTION)
    return [
        f"[*] --> {running}: started by its own program",
        *_dispatch_arrows(),
        *(f"{status} --> {waiting}: asked" for status in sorted(MAY_ASK)),
        f"{waiting} --> {EFFECT_STATUS[Effect.RESUME]}: {caused[Effect.RESUME]} (nothing else pending)",
        f"{waiting} --> {EFFECT_STATUS[Effect.CANCEL]}: {caused[Effect.CANCEL]}, cancelled by an operator",
        f"{running} --> {ExecutionStatus.CANCELLED}: cancelled by an operator",
        *(f"{status} --> {end}: reported" for status in sorted(MAY_ASK) for end in ends),
        *(f"{end} --> [*]" for end in ends),
    ]


def _dispatch_arrows() -> list[str]:
    """How a run comes into the hands of an instance, and out of them again."""
    queued, running, failed = ExecutionStatus.QUEUED, ExecutionStatus.RUNNING, ExecutionStatus.FAILED
    return [
        f"[*] --> {queued}: executed",
        f"{queued} --> {running}: dispatched, or proved by a sign of its holder",
        f"{running} --> {queued}: {DISPATCH_FAILED}, {INSTANCE_GONE}, {HANDED_BACK}",
        f"{queued} --> {failed}: {AGENT_UNREACHABLE}, {TOO_MANY_RESTARTS}",
        f"{running} --> {failed}: {AGENT_UNREACHABLE}, {AGENT_REFUSED}, {AGENT_REPLY_INVALID}, {TOO_MANY_RESTARTS}",
        f"{running} --> {ExecutionStatus.TIMEOUT}: {EXECUTION_TIMEOUT}",
        f"{queued} --> {ExecutionStatus.CANCELLED}: cancelled by an operator",
    ]


def _table() -> str:
    lines = [
        "| answer | approval becomes | others pending | execution becomes | status_reason |",
        "|---|---|---|---|---|",
    ]
    lines.append(f"| asked | {ApprovalStatus.PENDING} | stay | {ExecutionStatus.WAITING} | {WAITING_FOR_APPROVAL} |")
    for ending, transition in TRANSITIONS.items():
        resumes = transition.effect is Effect.RESUME
        status = EFFECT_STATUS[transition.effect] + (", or stays waiting for the others" if resumes else "")
        reason = transition.reason + ("[: feedback]" if transition.with_feedback else "")
        others = "stay" if resumes else TRANSITIONS[Ending.WITHDRAWN].to
        lines.append(f"| {ending} | {transition.to} | {others} | {status} | {reason} |")
    withdrawn = TRANSITIONS[Ending.WITHDRAWN].to
    lines.append(f"| end reported by the agent | {withdrawn} | {withdrawn} | as reported | {EXECUTION_FINISHED} |")
    lines.append(
        f"| cancelled by an operator | {withdrawn} | {withdrawn} | {ExecutionStatus.CANCELLED} "
        f"| as given, else {CANCELLED_BY_OPERATOR} |"
    )
    return "\n".join(lines)
