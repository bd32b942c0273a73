"""What every table is declared with: the one metadata, and the kinds of columns."""

from collections.abc import Iterable

import sqlalchemy as sa

from controlplane.storage import append_only

metadata = sa.MetaData()
append_only.declare(metadata)
NOW = sa.text("clock_timestamp()")


def busy(fillfactor: int) -> dict[str, str]:
    """Storage of a hot table: room for updates in place, and vacuum after a share of dead rows that stays small."""
    return {
        "fillfactor": str(fillfactor),
        "autovacuum_vacuum_scale_factor": "0.02",
        "autovacuum_vacuum_cost_delay": "1",
    }


def one_of(column: str, words: Iterable[str]) -> str:
    """A CHECK that a column holds one of these words."""
    return f"{column} IN ({', '.join(repr(str(word)) for word in words)})"


def moment(name: str, *, nullable: bool = False) -> sa.Column[object]:
    """A point in time."""
    return sa.Column(name, sa.TIMESTAMP(timezone=True), nullable=nullable)


def flag(name: str) -> sa.Column[bool]:
    """True or false, false unless said otherwise."""
    return sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false())


def text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    """A text."""
    return sa.Column(name, sa.Text, nullable=nullable)
