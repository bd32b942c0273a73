"""The tables of who may do what: keys, what proves them, and whose each node is."""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from controlplane.storage.schema import NOW, metadata, moment, text

api_keys = sa.Table(
    "api_keys",
    metadata,
    sa.Column("key_id", sa.Text, primary_key=True),
    text("name"),
    sa.Column("scopes", ARRAY(sa.Text), nullable=False),
    text("node_id", nullable=True),
    sa.Column("created_at", sa.TIMESTAMP(timezone=True), nullable=False, server_default=NOW),
    moment("expires_at", nullable=True),
    moment("revoked_at", nullable=True),
    moment("last_used_at", nullable=True),
    sa.CheckConstraint(
        "scopes <@ ARRAY['agent', 'review', 'admin'] AND cardinality(scopes) > 0", name="api_keys_scopes"
    ),
    sa.CheckConstraint("NOT 'agent' = ANY (scopes) OR cardinality(scopes) = 1", name="api_keys_asks_or_decides"),
    sa.CheckConstraint("node_id IS NULL OR 'agent' = ANY (scopes)", name="api_keys_node_of_agent"),
)

key_secrets = sa.Table(
    "key_secrets",
    metadata,
    sa.Column("key_id", sa.Text, sa.ForeignKey("api_keys.key_id", ondelete="CASCADE"), primary_key=True),
    sa.Column("digest", sa.LargeBinary, primary_key=True),
    sa.Column("created_at", sa.TIMESTAMP(timezone=True), nullable=False, server_default=NOW),
    moment("valid_until", nullable=True),
)

node_owners = sa.Table(
    "node_owners",
    metadata,
    sa.Column("node_id", sa.Text, primary_key=True),
    sa.Column("key_id", sa.Text, sa.ForeignKey("api_keys.key_id"), nullable=False),
    sa.Column("since", sa.TIMESTAMP(timezone=True), nullable=False, server_default=NOW),
    sa.Index("node_owners_by_key", "key_id"),
)
