"""One approval in a person's words: what follows from each answer, what came of it, and who is told of it how."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from controlplane.domain.approvals import Approval, ApprovalStatus
from controlplane.domain.deliveries import DeliveryStatus
from controlplane.inbox.present import PEOPLE, by_itself, counted, verdict_of
from controlplane.inbox.present_payload import Change, changed
from controlplane.storage.history import Entry
from controlplane.storage.inbox_approvals import Beside, Presence, Round, Telling


class Settled(Struct, frozen=True, kw_only=True):
    """How an approval ended: the verdict in words, which person gave it (None: nobody), when, and with what words."""

    status: ApprovalStatus
    verdict: str
    by: str | None
    at: datetime
    feedback: str | None
    after: str


class Consequences(Struct, frozen=True, kw_only=True):
    """What follows from each answer, each the end of a sentence that the page begins."""

    approved: str
    rejected: str
    request_changes: str
    by_itself: str


class Earlier(Struct, frozen=True, kw_only=True):
    """An earlier round: how it ended, and what the agent has changed since; None where that is not said."""

    approval_id: str
    round: int
    verdict: str
    status: ApprovalStatus
    by: str | None
    at: datetime | None
    feedback: str | None
    changes: Sequence[Change] | None


_TOLD = {
    DeliveryStatus.DELIVERED: "The agent was told.",
    DeliveryStatus.OBSOLETE: "The run ended before the agent was told.",
    DeliveryStatus.DEAD: "The agent could not be told, and is not tried any more; an administrator can send it again.",
}


def settled(approval: Approval, entries: Sequence[Entry], *, question: bool) -> Settled | None:
    """How an approval ended; None while it is pending."""
    if not approval.final or approval.decided_at is None:
        return None
    end = next((each for each in entries if each.settles), None)
    return Settled(
        status=approval.status,
        verdict=verdict_of(approval.status, question=question),
        by=end.actor_name if end is not None and end.actor_kind in PEOPLE else None,
        at=approval.decided_at,
        feedback=approval.feedback,
        after=_after(approval),
    )


def consequences(approval: Approval, beside: Sequence[Beside], *, question: bool) -> Consequences:
    """What follows from each answer to an approval, given what else its run waits for."""
    others = counted(len(beside), "other question", "other questions")
    goes_on = f"the run goes on once its {others} {'is' if len(beside) == 1 else 'are'} answered" if beside else ""
    withdrawn = f", and its {others} {'is' if len(beside) == 1 else 'are'} withdrawn" if beside else ""
    ends = by_itself(approval.on_expiry)
    with_answer = "the run goes on with your answer"
    return Consequences(
        approved=goes_on or (with_answer if question else "the run goes on"),
        rejected=f"the run is cancelled{withdrawn}",
        request_changes=goes_on or "the run goes on with your comment, and may ask again",
        by_itself=ends + (withdrawn if "cancelled" in ends else ""),
    )


def earlier(rounds: Sequence[Round], approval: Approval, payload: bytes | None) -> list[Earlier]:
    """The rounds before an approval's, newest first; the first with what differs between its payload and this one."""
    return [
        Earlier(
            approval_id=each.approval_id,
            round=each.round,
            verdict=verdict_of(each.status, question=each.question),
            status=each.status,
            by=each.by if each.by_kind in PEOPLE else None,
            at=each.decided_at,
            feedback=each.feedback,
            changes=changed(each.payload, payload) if number == 0 else None,
        )
        for number, each in enumerate(each for each in rounds if each.round < approval.round)
    ]


def since_seen(rounds: Sequence[Round], approval: Approval, digest: str | None) -> list[Change]:
    """What differs between what somebody had before them, where an earlier round shows it, and what stands."""
    seen = next((each for each in rounds if digest and each.payload_digest == digest), None)
    now = next((each for each in rounds if each.approval_id == approval.approval_id), None)
    if seen is None or now is None or seen is now:
        return []
    return changed(seen.payload, now.payload) or []


def newer(rounds: Sequence[Round], approval: Approval) -> Round | None:
    """The newest round after an approval's; None when it is the newest."""
    return rounds[0] if rounds and rounds[0].round > approval.round else None


def telling(approval: Approval, presence: Presence, told: Telling | None) -> str:
    """How the agent learns of the answer: before it, what will happen, after it, what has."""
    if not approval.final:
        return _before(approval, presence)
    is_gone = presence.registered and not presence.there
    if told is not None:
        return _TOLD.get(told.status) or _telling(told, is_gone=is_gone)
    if approval.read_at is not None:
        return "The agent has read the answer."
    return "The agent reads the answer when it is back." if is_gone else "The agent reads the answer itself."


def _telling(told: Telling, *, is_gone: bool) -> str:
    if told.resting or is_gone:
        return "The agent is not connected; it will be told when it is back."
    # A try that is under way counts already, and nothing has failed.
    if told.last_error is None:
        return "The agent is being told."
    return "The agent could not be told yet; it is tried again."


def _before(approval: Approval, presence: Presence) -> str:
    if presence.there:
        return "The agent is connected."
    if presence.registered:
        return "The agent is not connected. You can decide all the same; it will be told when it is back."
    if approval.callback_url is not None:
        return "The agent is told at the address that it gave."
    return "The agent asks for the answer itself."


def _after(approval: Approval) -> str:
    if approval.new_status == "cancelled":
        return "The run was cancelled."
    if approval.new_status == "waiting":
        return "The run waits for another answer."
    return "The run went on." if approval.new_status == "running" else ""
