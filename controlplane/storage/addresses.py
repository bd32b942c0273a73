"""Addresses of instances in SQL: what lies under one, as `domain.addresses` says it, and where a node is reached."""

from typing import Any

import sqlalchemy as sa

from controlplane.domain.nodes import InstanceStatus
from controlplane.storage.tables import instances

GONE: sa.ColumnElement[str] = sa.literal_column(f"'{InstanceStatus.GONE}'")
_LIVE: sa.ColumnElement[str] = sa.literal_column(f"'{InstanceStatus.LIVE}'")
_ORIGIN = "^[^/?#]+//[^/?#]*"
_DEFAULT_PORT = "^(http://.*?):(0*80)?$|^(https://.*?):(0*443)?$"
_WITHOUT_IT = r"\1\3"
# The empty text stands in every text: nothing may follow, too.
_SEGMENT_ENDS = "/?#"

Text = sa.ColumnElement[Any]


def plain(url: Text) -> Text:
    """A URL with its scheme and host in lower case and no default port."""
    origin = sa.func.substring(url, _ORIGIN)
    rest = sa.func.substr(url, sa.func.length(origin) + 1)
    return sa.func.regexp_replace(sa.func.lower(origin), _DEFAULT_PORT, _WITHOUT_IT).concat(rest)


def plainly(url: sa.Column[Any]) -> sa.FromClause:
    """The plain form of a row's URL beside the row, as `url.plain`: made once, however often it is looked at."""
    return sa.select(plain(url).label("plain")).correlate(url.table).offset(0).lateral("url")


def lies_under(plain_url: Text, base: Text) -> sa.ColumnElement[bool]:
    """Whether a plain URL lies under an instance's base address, by whole segments."""
    following = sa.func.substr(plain_url, sa.func.length(base) + 1, 1)
    return sa.and_(sa.func.starts_with(plain_url, base), sa.func.strpos(_SEGMENT_ENDS, following) > 0)


def home_of(node_id: Text) -> sa.FromClause:
    """The base address of a node's newest live instance, beside each row; none where none is live."""
    there = instances.alias("there")
    return (
        sa.select(there.c.base_url)
        .where(there.c.node_id == node_id, there.c.status == _LIVE)
        .order_by(there.c.registered_at.desc(), there.c.instance_id.desc())
        .limit(1)
        .lateral("home")
    )
