"""What a node may have called by the key whose it is: read where its runs and callbacks are claimed, so never stale."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from controlplane.storage.access_tables import api_keys, node_owners
from controlplane.storage.clock import MOMENT


def allowed_to(node_id: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """The entries of the key that owns a node now; none when the node is nobody's or that key is no good any more.

    Args:
        node_id: the column that names the node, of the statement around.
    """
    theirs = (
        sa.select(api_keys.c.allow)
        .select_from(node_owners.join(api_keys, api_keys.c.key_id == node_owners.c.key_id))
        .where(
            node_owners.c.node_id == node_id,
            api_keys.c.node_id == node_id,
            api_keys.c.revoked_at.is_(None),
            sa.or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > MOMENT),
        )
        .scalar_subquery()
    )
    nothing: Any = sa.cast(sa.literal_column("'{}'"), ARRAY(sa.Text))
    return sa.func.coalesce(theirs, nothing)
