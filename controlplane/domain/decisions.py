"""What a decision is, the words that mean one, and a decision as it came in from outside.

A word that is not in the table is refused: a missing or unknown decision never approves.
"""

from enum import StrEnum
from typing import Literal

import msgspec

from controlplane.domain.errors import InvalidDecision

_SPACE = " \t\n\r\v\f"


class Decision(StrEnum):
    """The four answers that an approval can get."""

    APPROVED = "approved"
    REJECTED = "rejected"
    REQUEST_CHANGES = "request_changes"
    EXPIRED = "expired"


_ALIASES = {
    "approve": Decision.APPROVED,
    "continue": Decision.APPROVED,
    "confirm": Decision.APPROVED,
    "reject": Decision.REJECTED,
    "deny": Decision.REJECTED,
    "abort": Decision.REJECTED,
    "cancel": Decision.REJECTED,
}
_WORDS = _ALIASES | {decision.value: decision for decision in Decision}
WORDS = sorted(_WORDS)


class DecisionReceived(msgspec.Struct, frozen=True, kw_only=True):
    """One decision read from a webhook's body, before anything was looked up.

    Attributes:
        request_id: the caller's approval_request_id; None when only our own `approval_id` was named.
        approval_id: the control plane's id of the approval, where the sender named it.
        execution_id: the execution that is meant, where named.
        round: the round that is meant, where named.
        decision: the canonical decision.
        feedback: the reviewer's words, "" when there are none.
        response: the sender's own value as the JSON bytes received; None when absent or null.
        shape: which of the two body shapes it came in.
    """

    request_id: str | None
    approval_id: str | None
    execution_id: str | None
    round: int | None
    decision: Decision
    feedback: str
    response: bytes | None
    shape: Literal["flat", "envelope"]


def canonical(word: object) -> Decision:
    """The decision that a word means: ASCII letters in any case, ASCII space around them ignored.

    Raises:
        InvalidDecision: the word is unknown or no string at all.
    """
    decision = known(word)
    if decision is None:
        raise InvalidDecision
    return decision


def known(word: object) -> Decision | None:
    """As `canonical`, with None for anything that is no decision."""
    # isascii stands before lower: U+212A would otherwise become an ordinary k.
    if not isinstance(word, str) or not word.isascii():
        return None
    return _WORDS.get(word.strip(_SPACE).lower())
