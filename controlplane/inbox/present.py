"""What templates may see of approvals, in a person's words: rows, states, times and what follows from an answer."""

from datetime import UTC, datetime

from msgspec import Struct

from controlplane.domain.approvals import ApprovalStatus, OnExpiry
from controlplane.inbox.present_text import pieces
from controlplane.storage.approvals import Shown
from controlplane.storage.inbox_lists import Listed

HOUR = 3600
DAY = 24 * HOUR
# Up to here a time is told in the smaller unit: "90 min" and "40 h" say more than "1 h" and "1 day".
_MINUTES_UP_TO = 2 * HOUR
_HOURS_UP_TO = 2 * DAY

PEOPLE = frozenset({"person", "sender"})
VERDICTS = {
    ApprovalStatus.APPROVED: "Approved",
    ApprovalStatus.REJECTED: "Rejected",
    ApprovalStatus.REQUEST_CHANGES: "Changes requested",
    ApprovalStatus.EXPIRED: "Expired",
    ApprovalStatus.WITHDRAWN: "Withdrawn",
    ApprovalStatus.PENDING: "Waiting",
}
# A verdict as what somebody tried.
OF_VERDICT = {"approved": "Your approval", "rejected": "Your rejection", "request_changes": "Your request for changes"}
FAULTS = {
    "verdict": "Nothing was decided: press one of the buttons.",
    "long": "Your comment has more than 20,000 characters; shorten it.",
    "comment": "Say what is to change: the agent works from your comment.",
    "payload": "This payload cannot be approved; reject it, or request changes.",
    "unread": "Open all that is folded and read it, then say so here.",
    "values": "Something is not as it must be; see the fields that are marked.",
}
RUN_STATES = {
    "queued": "Waits for its agent",
    "running": "Runs",
    "waiting": "Waits for a person",
    "succeeded": "Finished",
    "failed": "Failed",
    "cancelled": "Cancelled",
    "timeout": "Ran out of time",
}
DELIVERY_STATES = {
    "pending": "On its way",
    "delivered": "Told",
    "dead": "Given up",
    "obsolete": "Not needed any more",
}
REDRIVES = {
    "sent": "It is sent again now, with all its tries before it.",
    "settled": "It was settled meanwhile, so nothing was sent again.",
}
INSTANCE_STATES = {"live": "Connected", "draining": "Stopping", "gone": "Not connected"}
KINDS = {
    None: "Approval",
    "text": "Question",
    "yes_no": "Yes or no",
    "multiple_choice": "Choice",
    "form": "Form",
}


class Row(Struct, frozen=True, kw_only=True):
    """An approval in the list."""

    approval_id: str
    title: str
    request_id: str
    node_id: str
    execution_id: str
    kind: str
    status: str
    verdict: str
    round: int
    requested_at: datetime
    expires_at: datetime
    left: str
    urgency: str
    then: str
    decided_at: datetime | None
    by: str | None


def row(listed: Listed, now: datetime) -> Row:
    """A row of the list, as it stands at `now`."""
    return Row(
        approval_id=listed.approval_id,
        title=(listed.title or "").strip() or listed.approval_request_id,
        request_id=listed.approval_request_id,
        node_id=listed.node_id,
        execution_id=listed.execution_id,
        kind=KINDS.get(listed.kind if listed.question else None, "Question"),
        status=listed.status,
        verdict=verdict_of(listed.status, question=listed.question),
        round=listed.round,
        requested_at=listed.requested_at,
        expires_at=listed.expires_at,
        left=left(listed.expires_at, now),
        urgency=urgency(listed.expires_at, now),
        then=by_itself(listed.on_expiry),
        decided_at=listed.decided_at,
        by=listed.by if listed.by_kind in PEOPLE else None,
    )


def verdict_of(status: ApprovalStatus, *, question: bool) -> str:
    """A state in a person's words; what was asked as a question is answered, and not approved."""
    return "Answered" if question and status is ApprovalStatus.APPROVED else VERDICTS[status]


def title_of(shown: Shown) -> str:
    """What an approval is called: its title, else the asker's id of it."""
    return (shown.title or "").strip() or shown.approval_request_id


def by_itself(on_expiry: OnExpiry) -> str:
    """What happens to the run when nobody answers."""
    return "the run is cancelled" if on_expiry is OnExpiry.CANCEL else "the run goes on without an answer"


def left(until: datetime, now: datetime) -> str:
    """The time that is left, in words: `in 2 h`, or that it is up."""
    seconds = (until - now).total_seconds()
    return "now" if seconds <= 0 else f"in {lasting(seconds)}"


def ago(at: datetime, now: datetime) -> str:
    """How long ago a moment was, in words."""
    seconds = (now - at).total_seconds()
    return "just now" if seconds < 1 else f"{lasting(seconds)} ago"


def lasting(seconds: float) -> str:
    """A length of time in words, in one unit, rounded down."""
    if seconds < 100:
        return f"{max(0, int(seconds))} s"
    if seconds < _MINUTES_UP_TO:
        return f"{int(seconds // 60)} min"
    if seconds < _HOURS_UP_TO:
        return f"{int(seconds // HOUR)} h"
    return f"{int(seconds // DAY)} days"


def urgency(until: datetime, now: datetime) -> str:
    """How pressing a deadline is: `far`, `soon` (under an hour) or `over`."""
    seconds = (until - now).total_seconds()
    return "over" if seconds <= 0 else "soon" if seconds < HOUR else "far"


def stamp(at: datetime) -> str:
    """A moment for machines and for the script: RFC 3339 in UTC, to the second."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def exact(at: datetime) -> str:
    """A moment to the second, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def plainly(at: datetime) -> str:
    """A moment to the minute as it is read without script: in UTC, and saying so."""
    moment = at.astimezone(UTC)
    return f"{moment.day} {moment:%b %Y, %H:%M} UTC"


def size(count: int) -> str:
    """A number of bytes in words."""
    return f"{count:,} bytes" if count != 1 else "1 byte"


def counted(count: int, one: str, many: str | None = None) -> str:
    """A number with its noun: `1 note`, `2 notes`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def unmarked(text: str) -> str:
    """A text for where no mark can be drawn, such as a page's title: its hidden characters stand as their numbers."""
    return "".join(piece.text for piece in pieces(text))


FOR_TEMPLATES = (
    "stamp",
    "exact",
    "plainly",
    "left",
    "ago",
    "lasting",
    "urgency",
    "size",
    "counted",
    "unmarked",
    "verdict_of",
)
