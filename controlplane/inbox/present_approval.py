"""One approval in a person's words: what follows from each answer, what came of it, and who is told."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from controlplane.inbox.present import VERDICTS
from controlplane.storage.approvals import Shown
from controlplane.storage.history import Entry


class Settled(Struct, frozen=True, kw_only=True):
    """How an approval ended: the verdict in words, who gave it (None: nobody), and when."""

    status: str
    verdict: str
    by: str | None
    at: datetime


def settled(shown: Shown, entries: Sequence[Entry]) -> Settled | None:
    """How an approval ended; None while it is pending."""
    if not shown.final or shown.decided_at is None:
        return None
    end = next((each for each in entries if each.settles), None)
    person = end is not None and end.actor_kind in {"person", "sender"}
    return Settled(
        status=shown.status,
        verdict=VERDICTS[shown.status],
        by=end.actor_name if end is not None and person else None,
        at=shown.decided_at,
    )
