"""${message}.

Revision ID: ${up_revision}
Revises: ${down_revision | comma,n}
"""

from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def upgrade() -> None:
    """Expand first; contract in a later release. Locks are waited for 4 s, statements run 60 s at most."""
    ${upgrades if upgrades else "op.execute('')"}


def downgrade() -> None:
    """Refuse: a decision must not be lost by stepping back."""
    message = "there is no way back; restore a backup instead"
    raise NotImplementedError(message)
