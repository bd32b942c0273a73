"""Rows to structs: no second model, the struct's own field names are the columns."""

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa

StructType = TypeVar("StructType", bound=msgspec.Struct)


def to_struct(row: Any, kind: type[StructType]) -> StructType:
    """Build a frozen struct from a row that has a column for each of its required fields."""
    # By attributes, which both kinds of row have, SQLAlchemy's and those of `Statement`.
    return msgspec.convert(row, kind, from_attributes=True)


def columns(table: sa.Table, kind: type[msgspec.Struct]) -> Sequence[sa.ColumnElement[Any]]:
    """The columns of a table that a struct is made of."""
    return [table.c[field] for field in kind.__struct_fields__ if field in table.c]


def texts(values: Sequence[str]) -> sa.ColumnElement[Any]:
    """A bound `text[]`, however many values it has: one statement, one plan."""
    array: Any = sa.ARRAY(sa.Text)
    return sa.literal(list(values), array)


def bound_texts(name: str) -> sa.ColumnElement[Any]:
    """A `text[]` parameter of a statement that is built once."""
    array: Any = sa.ARRAY(sa.Text)
    return sa.bindparam(name, type_=array)
