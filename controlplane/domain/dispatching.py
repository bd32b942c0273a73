"""Dispatching: giving a run to an instance of its node until one has it, and what each reply to that means."""

import re
from datetime import datetime, timedelta
from enum import StrEnum
from urllib.parse import quote

import msgspec
from msgspec import Struct

from controlplane.domain.deliveries import REPLY_LIMIT_BYTES, Attempt, spread

LEASE = timedelta(seconds=15)
# A lease is not trusted to its very end: a process that was stopped for so long sends nothing any more.
SENT_WITHIN = LEASE * 2 / 3
CANCEL_GIVE_UP_AFTER = 8
# An end may overtake the run on its way: an agent that knows of no such run is told again before it is believed.
CANCEL_BELIEVED_AFTER = 3
SAID_LIMIT_BYTES = 2048
REASONERS_PATH = "/reasoners/"
SKILLS_PATH = "/skills/"

AGENT_UNREACHABLE = "agent_unreachable"
AGENT_REFUSED = "agent_refused"
AGENT_REPLY_INVALID = "agent_reply_invalid"

_SCHEDULE = tuple(timedelta(seconds=s) for s in (0.2, 1, 2, 5, 10, 30, 60))
# How long a reply was, in the place of the reply.
_UNTOLD = re.compile(r"(?<=^status \d{3}): invalid reply, [0-9,]+ bytes(?: or more)?$")
_NOT_NOW = frozenset({408, 425, 429})


class DispatchKind(StrEnum):
    """What an agent is to be told: to run something, or that what it runs is over."""

    RUN = "run"
    CANCEL = "cancel"


class Order(StrEnum):
    """What becomes of an execution's place in the dispatch queue."""

    RUN = "run"
    CANCEL = "cancel"
    NOTHING = "nothing"


class Dispatch(Struct, frozen=True, kw_only=True):
    """A place in the queue that this process has claimed; `claim` is the token that settles it.

    `attempts` counts the try that is about to be made; `taken`: an agent had the run before; `steps` is how many it
    has stored, `time_left` in seconds. `skill`: a plain function, which runs while its dispatch is answered.
    `allow` is what the node's own key lets be called, see `domain.keys`.
    """

    execution_id: str
    node_id: str
    kind: DispatchKind
    claim: int
    fence: int
    attempts: int
    base_url: str
    instance_id: str
    replay: bool
    taken: bool
    reasoner: str
    input: bytes | None
    reason: str | None
    run_id: str | None
    parent_execution_id: str | None
    steps: int
    time_left: float | None
    start_by: datetime
    now: datetime
    skill: bool = False
    allow: tuple[str, ...] = ()


class Settling(StrEnum):
    """What a try came to."""

    HAS_IT = "has_it"  # the agent has the run (or need not be told of its end any more)
    AGAIN = "again"  # tried again after a pause
    REFUSED = "refused"  # the run fails: no further try would do better
    ANSWERED = "answered"  # the agent ran it at once, and its reply is the result


class Verdict(Struct, frozen=True):
    """What becomes of a dispatch after a try; `reason` and `error` are kept with a run that fails.

    `reply` is what the agent answered with a refusal, as far as it is kept; nothing of it stands in `error`.
    """

    settling: Settling
    retry_in: timedelta | None = None
    error: str | None = None
    reason: str | None = None
    result: bytes | None = None
    reply: str | None = None


def run_request(sent: Dispatch) -> tuple[str, dict[str, str], bytes]:
    """Where a run is sent to, under which headers, and its raw input as the body."""
    headers = {
        "X-Execution-ID": sent.execution_id,
        "X-Holdshort-Fence": str(sent.fence),
        "X-Holdshort-Steps": str(sent.steps),
    }
    if sent.run_id is not None:
        headers |= {"X-Run-ID": sent.run_id, "X-Workflow-ID": sent.run_id}
    if sent.parent_execution_id is not None:
        headers["X-Parent-Execution-ID"] = sent.parent_execution_id
    if sent.replay:
        # Another process may be at that address by now; one that is not meant would have the run taken away again.
        headers["X-Holdshort-Instance"] = quote(sent.instance_id, safe="")
    if sent.time_left is not None:
        headers["X-Holdshort-Time-Left"] = f"{sent.time_left:.3f}"
    path = SKILLS_PATH if sent.skill else REASONERS_PATH
    return sent.base_url + path + quote(sent.reasoner, safe=""), headers, sent.input or b"{}"


def cancel_request(sent: Dispatch) -> tuple[str, dict[str, str], bytes]:
    """Where an agent is told that a run is over, under which headers, and why."""
    url = f"{sent.base_url}/_internal/executions/{quote(sent.execution_id, safe='')}/cancel"
    headers = {"X-Execution-ID": sent.execution_id, "X-Holdshort-Fence": str(sent.fence)}
    return url, headers, msgspec.json.encode({"reason": sent.reason})


def judge(sent: Dispatch, attempt: Attempt, *, jitter: float) -> Verdict:
    """Decide what follows from an agent's reply to a dispatch.

    Args:
        sent: the dispatch as claimed.
        attempt: what the try brought.
        jitter: a number in 0..1 that spreads retries by 20 % either way.
    """
    if sent.kind is DispatchKind.CANCEL:
        return _judge_cancel(sent, attempt, jitter)
    if attempt.status is None:
        if attempt.written and not sent.replay:
            # It may well have started, and such a node's runs are never started twice.
            return Verdict(Settling.HAS_IT, error=f"no reply, the agent may have it: {attempt.error}")
        return _again(sent, attempt.error or "no reply", jitter)
    if 200 <= attempt.status < 300:
        return _taken(sent, attempt)
    # A plain function that raised is a 500, and is not for us to run again.
    failed = sent.skill and attempt.status == 500
    if not failed and (attempt.status >= 500 or attempt.status in _NOT_NOW):
        return _again(sent, _fault(attempt), jitter, _said(attempt))
    reason = AGENT_REFUSED if attempt.status >= 400 else AGENT_REPLY_INVALID
    return Verdict(Settling.REFUSED, reason=reason, error=_fault(attempt), reply=_said(attempt))


def with_reply(error: str | None, reply: str | None) -> str | None:
    """A run's error with what the agent answered in it, for those who may see that; no other error is changed."""
    return error if error is None or reply is None else _UNTOLD.sub(lambda _: f": {reply}", error)


def retry_delay(attempts: int, jitter: float) -> timedelta:
    """The pause after the n-th try: 0.2 s, 1, 2, 5, 10, 30 s, then each minute, each within 20 %."""
    return spread(_SCHEDULE[min(attempts, len(_SCHEDULE)) - 1], jitter)


def _taken(sent: Dispatch, attempt: Attempt) -> Verdict:
    """202 is an agent that runs on; any other success is the result of one that ran it at once."""
    if attempt.status == 202:
        return Verdict(Settling.HAS_IT)
    try:
        msgspec.json.decode(attempt.reply)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Verdict(Settling.REFUSED, reason=AGENT_REPLY_INVALID, error=_fault(attempt), reply=_said(attempt))
    return Verdict(Settling.ANSWERED, result=attempt.reply)


def _judge_cancel(sent: Dispatch, attempt: Attempt, jitter: float) -> Verdict:
    heard = attempt.status is not None and attempt.status < 500 and attempt.status not in _NOT_NOW
    if attempt.status == 404 and sent.attempts < CANCEL_BELIEVED_AFTER:
        return _again(sent, _fault(attempt), jitter)
    if heard or sent.attempts >= CANCEL_GIVE_UP_AFTER:
        return Verdict(Settling.HAS_IT, error=None if heard else attempt.error)
    return _again(sent, _fault(attempt), jitter)


def _again(sent: Dispatch, error: str, jitter: float, reply: str | None = None) -> Verdict:
    pause = retry_delay(sent.attempts, jitter)
    if sent.kind is DispatchKind.RUN and not sent.taken and sent.now + pause >= sent.start_by:
        # Nobody took it in all that time; what was begun once waits for its node, however long.
        return Verdict(Settling.REFUSED, reason=AGENT_UNREACHABLE, error=error, reply=reply)
    return Verdict(Settling.AGAIN, retry_in=pause, error=error, reply=reply)


def _fault(attempt: Attempt) -> str:
    """Why a try was none, in words of ours: of a reply only its status and how long it is."""
    if attempt.status is None:
        return attempt.error or "no reply"
    size = len(attempt.reply)
    more = " or more" if size >= REPLY_LIMIT_BYTES else ""
    return f"status {attempt.status}" + (f": invalid reply, {size:,} bytes{more}" if size else "")


def _said(attempt: Attempt) -> str | None:
    """What an agent answered, as far as it is kept; None where it said nothing."""
    return attempt.reply[:SAID_LIMIT_BYTES].decode(errors="replace").replace("\0", "\ufffd") or None
