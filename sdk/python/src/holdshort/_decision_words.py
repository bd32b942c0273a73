"""The words that mean a decision; any other is refused, so a missing or unknown one never approves."""

from typing import Literal

from holdshort._errors import BadRequest

Word = Literal["approved", "rejected", "request_changes", "expired"]
_SPACE = " \t\n\r\v\f"
_WORDS: dict[str, Word] = {
    "approved": "approved",
    "approve": "approved",
    "continue": "approved",
    "confirm": "approved",
    "rejected": "rejected",
    "reject": "rejected",
    "deny": "rejected",
    "abort": "rejected",
    "cancel": "rejected",
    "request_changes": "request_changes",
    "expired": "expired",
}


def decision_word(word: object) -> Word:
    """The decision that a word means: ASCII letters in any case, ASCII space around them ignored.

    Args:
        word: as somebody sent it, of any type.

    Returns:
        "approved", "rejected", "request_changes" or "expired".

    Raises:
        BadRequest: invalid_decision; the word is none of those known, or no text at all.
    """
    found = known(word)
    if found is None:
        meant = "approved, rejected, request_changes or expired"
        raise BadRequest(f"the decision is none of the known words; send {meant}", code="invalid_decision")
    return found


def known(word: object) -> Word | None:
    """As `decision_word`, with None for anything that is no decision."""
    # ASCII is asked for before lower(), which makes an ordinary k of a Kelvin sign.
    if not isinstance(word, str) or not word.isascii():
        return None
    return _WORDS.get(word.strip(_SPACE).lower())
