"""What the look-ups of several pages read of an approval beside its own columns."""

from typing import Any

import sqlalchemy as sa

from controlplane.storage.tables import approvals, history

# What is answered rather than approved: a form, unless it is the payload's own.
IS_QUESTION = sa.literal_column(
    "(approvals.form IS NOT NULL AND NOT coalesce(CAST(approvals.form ->> 'editable' AS boolean), false))", sa.Boolean
).label("question")


def of_end(column: sa.Column[Any]) -> sa.ScalarSelect[Any]:
    """A column of the history row that made an approval final; null while it is pending."""
    return (
        sa.select(column).where(history.c.approval_id == approvals.c.approval_id, history.c.settles).scalar_subquery()
    )
