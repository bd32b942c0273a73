"""Keep short-lived questions, the sessions of people, and what an approval's answer must look like.

Revision ID: 0005
Revises: 0004
"""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_STATEMENTS = (
    """
    ALTER TABLE approvals ADD COLUMN form JSON
    """,
    """
    CREATE INDEX approvals_decided ON approvals (decided_at, approval_id)
        WHERE status IN ('approved', 'rejected', 'request_changes')
    """,
    """
    CREATE INDEX approvals_lapsed ON approvals (decided_at, approval_id) WHERE status IN ('expired', 'withdrawn')
    """,
    """
    CREATE TABLE feedback (
        unique_id TEXT NOT NULL,
        owner TEXT,
        status TEXT NOT NULL,
        kind TEXT,
        message TEXT,
        options TEXT[],
        yes_label TEXT,
        no_label TEXT,
        session_id TEXT,
        execution_id TEXT,
        public_key BYTEA,
        created_at TIMESTAMP WITH TIME ZONE NOT NULL,
        expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
        waiter_until TIMESTAMP WITH TIME ZONE NOT NULL,
        enc BYTEA,
        ct BYTEA,
        read_at TIMESTAMP WITH TIME ZONE,
        submission_id TEXT,
        ended_at TIMESTAMP WITH TIME ZONE,
        stops_clock BOOLEAN DEFAULT false NOT NULL,
        PRIMARY KEY (unique_id),
        CONSTRAINT feedback_status CHECK (status IN ('pending', 'answered', 'expired', 'cancelled')),
        CONSTRAINT feedback_end_has_a_time CHECK ((status = 'pending') = (ended_at IS NULL)),
        CONSTRAINT feedback_words_while_pending CHECK (
            (status = 'pending') = (message IS NOT NULL) AND (status = 'pending' OR options IS NULL)
        ),
        CONSTRAINT feedback_sealed_whole CHECK ((enc IS NULL) = (ct IS NULL)),
        CONSTRAINT feedback_answer_of_an_end CHECK (enc IS NULL OR status = 'answered'),
        CONSTRAINT feedback_public_key CHECK (status <> 'pending' OR octet_length(public_key) = 32),
        CONSTRAINT feedback_answered_in_time CHECK (status <> 'answered' OR ended_at < expires_at),
        CONSTRAINT feedback_clock_while_pending CHECK (NOT stops_clock OR status = 'pending')
    )
     WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1)
    """,
    """
    CREATE INDEX feedback_of_execution ON feedback (execution_id) WHERE stops_clock
    """,
    """
    CREATE INDEX feedback_ended ON feedback (ended_at) WHERE status <> 'pending'
    """,
    """
    CREATE INDEX feedback_pending ON feedback (created_at, unique_id) WHERE status = 'pending'
    """,
    """
    CREATE INDEX feedback_owner ON feedback (coalesce(owner, ''::text)) WHERE status = 'pending'
    """,
    """
    CREATE INDEX feedback_sealed ON feedback (unique_id) WHERE enc IS NOT NULL
    """,
    """
    CREATE TABLE sessions (
        digest BYTEA NOT NULL,
        session_id TEXT NOT NULL,
        key_id TEXT NOT NULL,
        key_digest BYTEA NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        seen_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        ended_at TIMESTAMP WITH TIME ZONE,
        PRIMARY KEY (digest),
        CONSTRAINT sessions_digest CHECK (octet_length(digest) = 32 AND octet_length(key_digest) = 32),
        FOREIGN KEY(key_id) REFERENCES api_keys (key_id)
    )
    """,
    """
    CREATE INDEX sessions_of_key ON sessions (key_id)
    """,
)


def upgrade() -> None:
    """Add the column and the tables."""
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """Refuse: questions of people would be lost."""
    message = "there is no way back past this revision; restore a backup instead"
    raise NotImplementedError(message)
