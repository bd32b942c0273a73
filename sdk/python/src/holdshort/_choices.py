"""What may be asked of a person, checked before it is sent: the rules of the control plane, and no clamping."""

import re
from collections.abc import Sequence
from typing import Any, Literal, get_args

from msgspec import Struct

from holdshort._errors import InvalidField

FeedbackKind = Literal["text", "yes_no", "multiple_choice", "secret"]
LEAST_SECONDS = 5
MOST_SECONDS = 1800
YES_WORDS = frozenset({"yes", "y", "true", "approve"})
NO_WORDS = frozenset({"no", "n", "false", "reject"})
_KINDS = get_args(FeedbackKind)
_ID = re.compile(r"[A-Za-z0-9._~:-]{1,128}")
_LONGEST_MESSAGE = 4000
_MOST_OPTIONS = 20
_LONGEST_OPTION = 200


class Choices(Struct, frozen=True, kw_only=True):
    """What a person may choose: `options` go with multiple_choice, the labels with yes_no."""

    kind: str
    options: tuple[str, ...] | None = None
    yes_label: str | None = None
    no_label: str | None = None


def invalid(field: str, rule: str) -> InvalidField:
    """The error of a field that breaks a rule, as the control plane's own."""
    return InvalidField(f"{field} {rule}", details={"errors": [{"field": field, "rule": rule}]})


def checked_choices(
    kind: str | None, options: Sequence[str] | None, yes_label: str | None = None, no_label: str | None = None
) -> Choices:
    """What may be chosen; the kind is multiple_choice where options are given, else text, unless it is named.

    Raises:
        InvalidField: nobody could choose between these.
    """
    if isinstance(options, str):
        raise invalid("options", "must be a list of texts")
    listed = None if options is None else tuple(options)
    choices = Choices(
        kind=kind or ("text" if listed is None else "multiple_choice"),
        options=listed,
        yes_label=yes_label,
        no_label=no_label,
    )
    if choices.kind not in _KINDS:
        raise invalid("kind", f"must be one of {', '.join(_KINDS)}")
    if (choices.kind == "multiple_choice") != (listed is not None):
        raise invalid("options", "go with the kind multiple_choice, and with no other")
    _check_labels("options", listed or (), least=1 if listed is not None else 0)
    _check_yes_no(choices)
    return choices


def check_unique_id(unique_id: Any) -> None:
    """Refuse what is no id.

    Raises:
        InvalidField: it is not 1-128 of `A-Z a-z 0-9 . _ ~ : -`.
    """
    if not isinstance(unique_id, str) or not _ID.fullmatch(unique_id):
        raise invalid("unique_id", "must be 1 to 128 of A-Z a-z 0-9 . _ ~ : -")


def check_question(unique_id: Any, message: Any, timeout_seconds: Any) -> None:
    """Refuse what cannot be asked.

    Raises:
        InvalidField: the id, the message or the time breaks its rule; no time is shortened or lengthened.
    """
    check_unique_id(unique_id)
    if not isinstance(message, str) or not message.strip() or len(message) > _LONGEST_MESSAGE:
        raise invalid("message_for_user", f"must be 1 to {_LONGEST_MESSAGE} characters, not only spaces")
    number = isinstance(timeout_seconds, int | float) and not isinstance(timeout_seconds, bool)
    if not number or not LEAST_SECONDS <= timeout_seconds <= MOST_SECONDS:
        rule = f"must be {LEAST_SECONDS} to {MOST_SECONDS}; what may wait longer is a question for ask()"
        raise invalid("timeout_seconds", rule)


def _check_yes_no(choices: Choices) -> None:
    labels = [label for label in (choices.yes_label, choices.no_label) if label is not None]
    if labels and choices.kind != "yes_no":
        raise invalid("yes_label", "goes with the kind yes_no, and with no other")
    _check_labels("yes_label", labels, least=0)
    for label, words in ((choices.yes_label, NO_WORDS), (choices.no_label, YES_WORDS)):
        if label is not None and label.strip().casefold() in words:
            raise invalid("yes_label", "and no_label must not say the opposite of what they mean")


def _check_labels(field: str, labels: Sequence[Any], *, least: int) -> None:
    if not least <= len(labels) <= _MOST_OPTIONS:
        raise invalid(field, f"must be {least} to {_MOST_OPTIONS} options")
    for label in labels:
        fits = isinstance(label, str) and label.strip() and len(label) <= _LONGEST_OPTION and label.isprintable()
        if not fits:
            raise invalid(field, f"must each be 1 to {_LONGEST_OPTION} printable characters, not only spaces")
    if len({label.strip() for label in labels}) < len(labels):
        raise invalid(field, "must differ from each other")
