"""The tables of who may do what: keys, what proves them, whose each node is, and who signs webhooks with what."""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from controlplane.domain.vault import PREFIX
from controlplane.domain.webhook_secrets import NAME
from controlplane.storage.schema import NOW, metadata, moment, text

api_keys = sa.Table(
    "api_keys",
    metadata,
    sa.Column("key_id", sa.Text, primary_key=True),
    text("name"),
    sa.Column("scopes", ARRAY(sa.Text), nullable=False),
    text("node_id", nullable=True),
    sa.Column("allow", ARRAY(sa.Text), nullable=False, server_default="{}"),
    sa.Column("created_at", sa.TIMESTAMP(timezone=True), nullable=False, server_default=NOW),
    moment("expires_at", nullable=True),
    moment("revoked_at", nullable=True),
    moment("last_used_at", nullable=True),
    sa.CheckConstraint(
        "scopes <@ ARRAY['agent', 'review', 'admin'] AND cardinality(scopes) > 0", name="api_keys_scopes"
    ),
    sa.CheckConstraint("NOT 'agent' = ANY (scopes) OR cardinality(scopes) = 1", name="api_keys_asks_or_decides"),
    sa.CheckConstraint("node_id IS NULL OR 'agent' = ANY (scopes)", name="api_keys_node_of_agent"),
    sa.CheckConstraint("cardinality(allow) = 0 OR node_id IS NOT NULL", name="api_keys_allow_of_node"),
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

senders = sa.Table(
    "senders",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("created_at", sa.TIMESTAMP(timezone=True), nullable=False, server_default=NOW),
    moment("revoked_at", nullable=True),
    sa.CheckConstraint(f"name ~ '^{NAME}$'", name="senders_name"),
)

sender_secrets = sa.Table(
    "sender_secrets",
    metadata,
    sa.Column("secret_id", sa.Text, primary_key=True),
    sa.Column("sender", sa.Text, sa.ForeignKey("senders.name"), nullable=False),
    text("sealed"),
    sa.Column("created_at", sa.TIMESTAMP(timezone=True), nullable=False, server_default=NOW),
    moment("valid_until", nullable=True),
    sa.CheckConstraint(f"starts_with(sealed, '{PREFIX}')", name="sender_secrets_sealed"),
    sa.Index("sender_secrets_of_sender", "sender"),
)
