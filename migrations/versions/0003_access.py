"""Add API keys, who owns which node, and webhook senders; executions know who started them.

Revision ID: 0003
Revises: 0002
"""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_STATEMENTS = (
    """
    CREATE TABLE api_keys (
        key_id TEXT NOT NULL,
        name TEXT NOT NULL,
        scopes TEXT[] NOT NULL,
        node_id TEXT,
        allow TEXT[] DEFAULT '{}' NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        expires_at TIMESTAMP WITH TIME ZONE,
        revoked_at TIMESTAMP WITH TIME ZONE,
        last_used_at TIMESTAMP WITH TIME ZONE,
        PRIMARY KEY (key_id),
        CONSTRAINT api_keys_scopes CHECK (scopes <@ ARRAY['agent', 'review', 'admin'] AND cardinality(scopes) > 0),
        CONSTRAINT api_keys_asks_or_decides CHECK (NOT 'agent' = ANY (scopes) OR cardinality(scopes) = 1),
        CONSTRAINT api_keys_node_of_agent CHECK (node_id IS NULL OR 'agent' = ANY (scopes)),
        CONSTRAINT api_keys_allow_of_node CHECK (cardinality(allow) = 0 OR node_id IS NOT NULL)
    )
    """,
    """
    CREATE TABLE key_secrets (
        key_id TEXT NOT NULL,
        digest BYTEA NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        valid_until TIMESTAMP WITH TIME ZONE,
        PRIMARY KEY (key_id, digest),
        FOREIGN KEY(key_id) REFERENCES api_keys (key_id) ON DELETE CASCADE
    )
    """,
    """
    CREATE TABLE node_owners (
        node_id TEXT NOT NULL,
        key_id TEXT NOT NULL,
        since TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        PRIMARY KEY (node_id),
        FOREIGN KEY(key_id) REFERENCES api_keys (key_id)
    )
    """,
    """
    CREATE INDEX node_owners_by_key ON node_owners (key_id)
    """,
    """
    CREATE TABLE senders (
        name TEXT NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        revoked_at TIMESTAMP WITH TIME ZONE,
        PRIMARY KEY (name),
        CONSTRAINT senders_name CHECK (name ~ '^[a-z][a-z0-9-]{0,31}$')
    )
    """,
    """
    CREATE TABLE sender_secrets (
        secret_id TEXT NOT NULL,
        sender TEXT NOT NULL,
        sealed TEXT NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        valid_until TIMESTAMP WITH TIME ZONE,
        PRIMARY KEY (secret_id),
        FOREIGN KEY(sender) REFERENCES senders (name),
        CONSTRAINT sender_secrets_sealed CHECK (starts_with(sealed, 'hsv1.'))
    )
    """,
    """
    CREATE INDEX sender_secrets_of_sender ON sender_secrets (sender)
    """,
    """
    ALTER TABLE executions ADD COLUMN started_by TEXT
    """,
    # One caller's idempotency keys are nothing to another one.
    """
    DROP INDEX executions_by_key
    """,
    """
    CREATE UNIQUE INDEX executions_by_key ON executions (idempotency_key, coalesce(started_by, ''))
        WHERE idempotency_key IS NOT NULL
    """,
    """
    ALTER TABLE history ADD COLUMN actor_id TEXT
    """,
    """
    ALTER TABLE executions ADD COLUMN agent_reply TEXT
    """,
)


def upgrade() -> None:
    """Add what says who may do what; what there is belongs to nobody yet, and is anybody's to claim first."""
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """Refuse: without keys everything would stand open."""
    message = "there is no way back past this revision; restore a backup instead"
    raise NotImplementedError(message)
