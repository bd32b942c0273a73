"""What happened, in a person's words: history rows as lines of a timeline."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from controlplane.storage.history import Entry

_WORDS = {
    "approval.requested": "Asked",
    "approval.approved": "Approved",
    "approval.rejected": "Rejected",
    "approval.request_changes": "Changes requested",
    "approval.expired": "Expired, nobody answered",
    "approval.withdrawn": "Withdrawn",
    "approval.callback_changed": "Gave another address for the answer",
    "execution.created": "Run started",
    "execution.queued": "Waits for a free instance of its agent",
    "execution.dispatched": "Given to the agent",
    "execution.released": "Let go of, while it waits",
    "execution.running": "Runs",
    "execution.waiting": "Waits for a person",
    "execution.succeeded": "Finished",
    "execution.failed": "Failed",
    "execution.cancelled": "Cancelled",
    "execution.timeout": "Ran out of time",
    "execution.result": "Brought a result after its end",
    "execution.note": "Note",
    "execution.step": "A step is done",
    "webhook.parked": "An answer came before its question, and is kept",
    "webhook.parked_used": "The answer that had come before counts",
    "webhook.parked_dropped": "The answer that had come before does not count",
    "delivery.delivered": "The agent was told",
    "delivery.dead": "The agent could not be told, and is not tried any more",
    "delivery.obsolete": "The agent needs not be told any more",
    "delivery.redriven": "Sent to the agent again, by hand",
    "delivery.told_again": "The agent is told once more",
    "delivery.moved": "The agent is told at its new address",
    "feedback.asked": "Asked a question for now",
    "feedback.answered": "The question for now was answered",
    "feedback.expired": "The question for now expired",
    "feedback.cancelled": "The question for now was withdrawn",
}
_REASONS = {
    "dispatch_failed": "the agent could not be reached",
    "instance_gone": "the agent went away",
    "handed_back": "the agent stopped and handed it back",
    "too_many_restarts": "it was started too often without getting further",
    "execution_timeout": "its time to work was up",
    "agent_unreachable": "the agent could not be reached",
    "agent_refused": "the agent refused it",
    "agent_reply_invalid": "the reply of the agent could not be read",
    "cancelled_by_operator": "by an operator",
    "approval_rejected": "an approval was rejected",
    "approval_expired": "an approval expired",
    "approval_granted": "approved",
    "approval_changes_requested": "changes were requested",
    "approval_withdrawn": "a question was withdrawn",
    "waiting_for_node": "no instance of its agent is there",
    "waiting_for_approval": "",
    "execution_finished": "",
}


class Line(Struct, frozen=True, kw_only=True):
    """One thing that happened: when, what, through whom, and what was said with it."""

    at: datetime
    what: str
    by: str
    said: str | None


def timeline(entries: Sequence[Entry]) -> list[Line]:
    """History rows as lines, in their order."""
    return [Line(at=each.at, what=_what(each), by=_by(each), said=_said(each)) for each in entries]


def reason(text: str | None) -> str:
    """Why a run stands as it does; the words of a person or agent in it stay as they are."""
    known, colon, said = (text or "").partition(": ")
    return _REASONS.get(known, known) + colon + said


def _what(entry: Entry) -> str:
    words = _WORDS.get(entry.type, entry.type)
    number = entry.data.get("round")
    if entry.type == "approval.requested" and isinstance(number, int) and number > 1:
        return f"{words}, round {number}"
    why = entry.data.get("reason")
    told = reason(why) if entry.type.startswith("execution.") and isinstance(why, str) else ""
    return f"{words}: {told}" if told else words


def _by(entry: Entry) -> str:
    if entry.actor_kind == "system":
        return ""
    return f"{entry.actor_name}, by webhook" if entry.actor_kind == "sender" else entry.actor_name


def _said(entry: Entry) -> str | None:
    said = entry.data.get("message" if entry.type == "execution.note" else "feedback")
    return said if isinstance(said, str) and said else None
