"""What counts as an answer to a question of each kind; nothing unclear ever becomes one."""

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from controlplane.domain.errors import FieldFault, InvalidAnswer

MAX_OPTIONS = 20
MAX_OPTION = 200
YES = "yes"
NO = "no"

_YES_WORDS = frozenset({"yes", "y", "true", "approve"})
_NO_WORDS = frozenset({"no", "n", "false", "reject"})


class Kind(StrEnum):
    """What a question takes; `secret` is text that is masked while it is typed."""

    TEXT = "text"
    YES_NO = "yes_no"
    MULTIPLE_CHOICE = "multiple_choice"
    SECRET = "secret"  # noqa: S105 - a kind of question


class Choices(Struct, frozen=True, kw_only=True):
    """What may be chosen: the options of a choice, the labels of a yes and a no; None where the words are our own."""

    kind: Kind
    options: tuple[str, ...] | None = None
    yes_label: str | None = None
    no_label: str | None = None


def check_choices(choices: Choices) -> Choices:
    """Refuse what nobody could choose between.

    Raises:
        FieldFault: options that are missing, too many, empty, too long or alike, or labels that are; or either of
            them beside a kind that has none.
    """
    if (choices.kind is Kind.MULTIPLE_CHOICE) != (choices.options is not None):
        raise FieldFault("options", "go with the kind multiple_choice, and with no other")
    _check_labels("options", choices.options or (), least=1 if choices.options is not None else 0)
    labels = [label for label in (choices.yes_label, choices.no_label) if label is not None]
    if labels and choices.kind is not Kind.YES_NO:
        raise FieldFault("yes_label", "goes with the kind yes_no, and with no other")
    _check_labels("yes_label", labels, least=0)
    if choices.kind is Kind.YES_NO:
        _check_words(choices)
    return choices


def answer_to(choices: Choices, response: str) -> str:
    """The answer that a person's text is: the text itself, `yes` or `no`, or the label that was chosen.

    A label counts exactly, then in another case; labels win over words. Space around is ignored, but in a text.

    Raises:
        InvalidAnswer: it is empty, none of the options, neither a yes nor a no, or two at once.
    """
    if not response.strip():
        raise InvalidAnswer("The answer is empty; write one.")
    if choices.kind in {Kind.TEXT, Kind.SECRET}:
        return response
    if choices.kind is Kind.MULTIPLE_CHOICE:
        return _chosen(choices.options or (), response.strip())
    return _yes_or_no(choices, response.strip())


def _chosen(options: Sequence[str], response: str) -> str:
    found = _label(options, response)
    if found is None:
        raise InvalidAnswer("This is none of the options; choose one of them.")
    return found


def _yes_or_no(choices: Choices, response: str) -> str:
    labels = {choices.yes_label: YES, choices.no_label: NO}
    found = _label([label for label in labels if label is not None], response)
    if found is not None:
        return labels[found]
    word = response.lower() if response.isascii() else ""
    if word in _YES_WORDS | _NO_WORDS:
        return YES if word in _YES_WORDS else NO
    raise InvalidAnswer("This is neither a yes nor a no; choose one of the two.")


def _label(labels: Sequence[str], response: str) -> str | None:
    """The label that is meant: the same text, else the only one that differs in case alone."""
    same = [label for label in labels if label.strip() == response]
    alike = same or [label for label in labels if label.strip().casefold() == response.casefold()]
    return alike[0] if len(alike) == 1 else None


def _check_labels(field: str, labels: Sequence[str], *, least: int) -> None:
    if not least <= len(labels) <= MAX_OPTIONS:
        raise FieldFault(field, f"must be {least} to {MAX_OPTIONS} options")
    for label in labels:
        if not label.strip() or len(label) > MAX_OPTION or not label.isprintable():
            raise FieldFault(field, f"must each be 1 to {MAX_OPTION} printable characters, not only spaces")
    if len({label.strip() for label in labels}) < len(labels):
        raise FieldFault(field, "must differ from each other")


def _check_words(choices: Choices) -> None:
    """A label must not read as the other answer: a no called "yes" would be pressed for what it says."""
    for label, words in ((choices.yes_label, _NO_WORDS), (choices.no_label, _YES_WORDS)):
        if label is not None and label.strip().casefold() in words:
            raise FieldFault("yes_label", "and no_label must not say the opposite of what they mean")
