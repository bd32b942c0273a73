"""Pages of lists: an opaque cursor that says where the last page ended, stable while rows come and go."""

import base64
import binascii
from datetime import datetime
from typing import Annotated

import msgspec
from litestar.params import Parameter

from controlplane.domain.errors import FieldFault
from controlplane.storage.approvals import Place

DEFAULT_LIMIT = 50
MAX_LIMIT = 200
MAX_TEXT = 256

Limit = Annotated[int, Parameter(ge=1, le=MAX_LIMIT, description="Rows of a page, 1 to 200.")]
Cursor = Annotated[str | None, Parameter(max_length=1024, description="`next_cursor` of the page before.")]


def after(cursor: str | None) -> Place | None:
    """The place that a cursor names.

    Raises:
        FieldFault: it is no cursor of ours.
    """
    if cursor is None:
        return None
    try:
        at, row_id = msgspec.json.decode(base64.urlsafe_b64decode(cursor), type=tuple[datetime, str])
    except (msgspec.MsgspecError, binascii.Error, ValueError):
        raise FieldFault("cursor", "must be the next_cursor of an earlier page") from None
    # Near either end of the calendar a moment has no place in UTC.
    if at.tzinfo is None or not 1 < at.year < 9999 or "\x00" in row_id:
        raise FieldFault("cursor", "must be the next_cursor of an earlier page")
    return Place(at, row_id)


def cursor(at: datetime, row_id: str) -> str:
    """The cursor of a page that ends with this row."""
    return base64.urlsafe_b64encode(msgspec.json.encode((at, row_id))).decode()


def clean(field: str, value: str | None) -> str | None:
    """A text of the query, which must be one that the database can hold.

    Raises:
        FieldFault: it has a NUL or more than 256 characters.
    """
    if value is not None and ("\x00" in value or len(value) > MAX_TEXT):
        raise FieldFault(field, f"must have at most {MAX_TEXT} characters and no NUL")
    return value
