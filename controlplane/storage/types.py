"""Column types that keep what the wire says: JSON as the bytes received, transaction ids in full."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.types import UserDefinedType


class ExactJson(UserDefinedType[bytes]):
    """PostgreSQL `json`: unlike `jsonb` it keeps spelling, order and white space, so a digest stays reproducible."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """The type's name in DDL."""
        return "JSON"

    def bind_processor(self, dialect: Dialect) -> Any:
        """Bytes go in as text."""
        return lambda value: None if value is None else bytes(value).decode()

    def column_expression(self, column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """Read as bytes: the driver would parse what it knows to be JSON, and the spelling would be lost."""
        return sa.type_coerce(sa.func.convert_to(sa.cast(column, sa.Text), "UTF8"), self)


class Xid8(UserDefinedType[str]):
    """PostgreSQL `xid8`: a transaction id that never wraps around."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """The type's name in DDL."""
        return "XID8"
