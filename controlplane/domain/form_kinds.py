"""What a durable question asks for: its kind, what may be chosen, or the schema of the values it takes."""

from enum import StrEnum
from typing import Any

from msgspec import Struct

from controlplane.domain.answers import Choices, Kind

Schema = dict[str, Any]


class FormKind(StrEnum):
    """What a question takes: a text, a yes or no, one of its options, or an object that fits its schema."""

    TEXT = "text"
    YES_NO = "yes_no"
    MULTIPLE_CHOICE = "multiple_choice"
    FORM = "form"


class Form(Struct, frozen=True, kw_only=True):
    """A question's form; `editable` says that the values are the payload, which a reviewer may change."""

    kind: FormKind
    options: tuple[str, ...] | None = None
    yes_label: str | None = None
    no_label: str | None = None
    schema: Schema | None = None
    editable: bool = False

    @property
    def choices(self) -> Choices:
        """What may be chosen, for every kind but `form`."""
        return Choices(
            kind=Kind(self.kind.value), options=self.options, yes_label=self.yes_label, no_label=self.no_label
        )
