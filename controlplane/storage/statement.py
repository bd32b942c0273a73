"""Statements of the busy paths: built and compiled once, then run by the driver itself.

SQLAlchemy's way to a statement costs more than PostgreSQL's answer to it. What is run for every ask, decision and
delivery is compiled when its module is loaded; lists and other rare questions take the ordinary way.
"""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg
from sqlalchemy.sql.base import Executable

_DIALECT = PGDialect_asyncpg()  # type: ignore[no-untyped-call]
_Encoder = Callable[[Any], Any]


class Statement:
    """A compiled statement; `text` is what the driver is given, `sql` what it was compiled from."""

    __slots__ = ("_constants", "_encoders", "_order", "sql", "text")

    def __init__(self, sql: Executable, *columns: str) -> None:
        """Compile `sql`; an INSERT of whole rows names its `columns`."""
        # Types and positions are SQLAlchemy's; only the running is ours.
        compiled: Any = sql.compile(dialect=_DIALECT, column_keys=list(columns) or None)  # type: ignore[attr-defined]
        self.sql = sql
        self.text: str = compiled.string
        self._order: tuple[str, ...] = tuple(compiled.positiontup or ())
        self._constants: dict[str, Any] = compiled.params
        self._encoders = _encoders(compiled.binds)

    def arguments(self, values: Mapping[str, Any]) -> list[Any]:
        """The driver's arguments for these values, in their order."""
        return [self._argument(name, values) for name in self._order]

    def _argument(self, name: str, values: Mapping[str, Any]) -> Any:
        value = values[name] if name in values else self._constants[name]
        encode = self._encoders.get(name)
        return value if encode is None or value is None else encode(value)


def to_row(record: Mapping[str, Any]) -> Any:
    """A driver's record with its columns as attributes."""
    return SimpleNamespace(**record)


def _encoders(binds: Mapping[str, sa.BindParameter[Any]]) -> dict[str, _Encoder]:
    found = {name: bind.type.dialect_impl(_DIALECT).bind_processor(_DIALECT) for name, bind in binds.items()}
    return {name: encode for name, encode in found.items() if encode is not None}
