"""Create the tables of executions, approvals, deliveries and history.

Revision ID: 0001
Revises:
"""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_STATEMENTS = (
    """
    CREATE TABLE executions (
        execution_id TEXT NOT NULL,
        node_id TEXT NOT NULL,
        reasoner TEXT,
        run_id TEXT,
        status TEXT NOT NULL,
        status_reason TEXT,
        pending_approvals INTEGER DEFAULT '0' NOT NULL,
        input JSON,
        result JSON,
        error TEXT,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        updated_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        started_at TIMESTAMP WITH TIME ZONE,
        ended_at TIMESTAMP WITH TIME ZONE,
        PRIMARY KEY (execution_id),
        CONSTRAINT executions_status CHECK (status IN ('queued', 'running', 'waiting', 'succeeded', 'failed',
            'cancelled', 'timeout')),
        CONSTRAINT executions_pending_counted CHECK (pending_approvals >= 0),
        CONSTRAINT executions_waits_for_something CHECK ((status = 'waiting') = (pending_approvals > 0)),
        CONSTRAINT executions_end_has_a_time CHECK ((status IN ('cancelled', 'failed', 'succeeded', 'timeout')) =
            (ended_at IS NOT NULL))
    )
 WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1)
    """,
    """
    CREATE INDEX executions_by_node ON executions (node_id, created_at, execution_id)
    """,
    """
    CREATE INDEX executions_by_status ON executions (status, created_at, execution_id)
    """,
    """
    CREATE INDEX executions_by_time ON executions (created_at, execution_id)
    """,
    """
    CREATE TABLE history (
        seq BIGINT GENERATED ALWAYS AS IDENTITY,
        xid XID8 DEFAULT pg_current_xact_id() NOT NULL,
        at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        type TEXT NOT NULL,
        execution_id TEXT,
        approval_id TEXT,
        approval_request_id TEXT,
        node_id TEXT,
        actor_kind TEXT NOT NULL,
        actor_name TEXT NOT NULL,
        actor_via TEXT NOT NULL,
        actor_address TEXT,
        settles BOOLEAN DEFAULT false NOT NULL,
        data JSONB NOT NULL,
        PRIMARY KEY (seq),
        CONSTRAINT history_actor_kind CHECK (actor_kind IN ('agent', 'sender', 'person', 'system'))
    )
    """,
    """
    CREATE INDEX history_of_approval ON history (approval_id, seq)
    """,
    """
    CREATE INDEX history_of_execution ON history (execution_id, seq)
    """,
    """
    CREATE UNIQUE INDEX history_one_end ON history (approval_id) WHERE settles
    """,
    """
    CREATE INDEX history_stream ON history (xid, seq)
    """,
    """
    CREATE TABLE parked (
        parked_id TEXT NOT NULL,
        sender TEXT NOT NULL,
        approval_request_id TEXT NOT NULL,
        execution_id TEXT,
        decision TEXT NOT NULL,
        feedback TEXT NOT NULL,
        response JSON,
        keys TEXT[] NOT NULL,
        received_at TIMESTAMP WITH TIME ZONE NOT NULL,
        expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
        PRIMARY KEY (parked_id),
        CONSTRAINT parked_decision CHECK (decision IN ('approved', 'expired', 'rejected', 'request_changes'))
    )
    """,
    """
    CREATE INDEX parked_due ON parked (expires_at)
    """,
    """
    CREATE INDEX parked_of_sender ON parked (sender, received_at, parked_id)
    """,
    """
    CREATE UNIQUE INDEX parked_one_a_sender ON parked (approval_request_id, sender, coalesce(execution_id, ''))
    """,
    """
    CREATE TABLE approvals (
        approval_id TEXT NOT NULL,
        execution_id TEXT NOT NULL,
        node_id TEXT NOT NULL,
        approval_request_id TEXT NOT NULL,
        round INTEGER NOT NULL,
        status TEXT NOT NULL,
        on_expiry TEXT NOT NULL,
        requested_at TIMESTAMP WITH TIME ZONE NOT NULL,
        expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
        approval_request_url TEXT,
        title TEXT,
        description TEXT,
        payload JSON,
        payload_digest TEXT,
        decided_by TEXT,
        callback_url TEXT,
        callback_secret TEXT,
        decided_at TIMESTAMP WITH TIME ZONE,
        feedback TEXT,
        response JSON,
        new_status TEXT,
        read_at TIMESTAMP WITH TIME ZONE,
        PRIMARY KEY (approval_id),
        CONSTRAINT approvals_one_a_round UNIQUE (approval_request_id, execution_id, round),
        CONSTRAINT approvals_status CHECK (status IN ('pending', 'approved', 'rejected', 'request_changes',
            'expired', 'withdrawn')),
        CONSTRAINT approvals_on_expiry CHECK (on_expiry IN ('cancel', 'resume')),
        CONSTRAINT approvals_new_status CHECK (new_status IN ('queued', 'running', 'waiting', 'succeeded',
            'failed', 'cancelled', 'timeout')),
        CONSTRAINT approvals_round CHECK (round >= 1),
        CONSTRAINT approvals_deadline_after_request CHECK (expires_at > requested_at),
        CONSTRAINT approvals_end_has_a_time CHECK ((status = 'pending') = (decided_at IS NULL)),
        CONSTRAINT approvals_end_has_an_effect CHECK ((decided_at IS NULL) = (new_status IS NULL)),
        CONSTRAINT approvals_decided_in_time CHECK (NOT (status IN ('approved', 'rejected', 'request_changes')) OR
            decided_at < expires_at),
        FOREIGN KEY(execution_id) REFERENCES executions (execution_id)
    )
 WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1)
    """,
    """
    CREATE INDEX approvals_by_deadline ON approvals (expires_at, approval_id)
    """,
    """
    CREATE INDEX approvals_by_node ON approvals (node_id, requested_at, approval_id)
    """,
    """
    CREATE INDEX approvals_by_request_id ON approvals (approval_request_id, requested_at)
    """,
    """
    CREATE INDEX approvals_by_time ON approvals (requested_at, approval_id)
    """,
    """
    CREATE INDEX approvals_due ON approvals (expires_at, execution_id) WHERE status = 'pending'
    """,
    """
    CREATE INDEX approvals_of_execution ON approvals (execution_id, requested_at)
    """,
    """
    CREATE TABLE notes (
        execution_id TEXT NOT NULL,
        note_id TEXT NOT NULL,
        message TEXT NOT NULL,
        tags TEXT[] NOT NULL,
        at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        PRIMARY KEY (execution_id, note_id),
        FOREIGN KEY(execution_id) REFERENCES executions (execution_id) ON DELETE CASCADE
    )
    """,
    """
    CREATE TABLE deliveries (
        delivery_id TEXT NOT NULL,
        approval_id TEXT NOT NULL,
        execution_id TEXT NOT NULL,
        node_id TEXT NOT NULL,
        status TEXT NOT NULL,
        url TEXT NOT NULL,
        target TEXT NOT NULL,
        secret TEXT,
        attempts INTEGER DEFAULT '0' NOT NULL,
        fence BIGINT DEFAULT '0' NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE NOT NULL,
        told_at TIMESTAMP WITH TIME ZONE NOT NULL,
        due_at TIMESTAMP WITH TIME ZONE NOT NULL,
        lease_until TIMESTAMP WITH TIME ZONE,
        writing_fence BIGINT,
        last_status INTEGER,
        last_error TEXT,
        last_attempt_at TIMESTAMP WITH TIME ZONE,
        settled_at TIMESTAMP WITH TIME ZONE,
        PRIMARY KEY (delivery_id),
        CONSTRAINT deliveries_one_an_approval UNIQUE (approval_id),
        CONSTRAINT deliveries_status CHECK (status IN ('pending', 'delivered', 'dead', 'obsolete')),
        CONSTRAINT deliveries_end_has_a_time CHECK ((status = 'pending') = (settled_at IS NULL)),
        FOREIGN KEY(approval_id) REFERENCES approvals (approval_id) ON DELETE CASCADE
    )
 WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1)
    """,
    """
    CREATE INDEX deliveries_by_status ON deliveries (status, created_at, delivery_id)
    """,
    """
    CREATE INDEX deliveries_due ON deliveries (due_at) WHERE status = 'pending'
    """,
    """
    CREATE INDEX deliveries_of_execution ON deliveries (execution_id)
    """,
    """
    CREATE TABLE seen_webhooks (
        sender TEXT NOT NULL,
        key TEXT NOT NULL,
        approval_id TEXT NOT NULL,
        outcome JSONB NOT NULL,
        at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        PRIMARY KEY (sender, key),
        FOREIGN KEY(approval_id) REFERENCES approvals (approval_id) ON DELETE CASCADE
    )
    """,
    """
    CREATE INDEX seen_webhooks_of_approval ON seen_webhooks (approval_id)
    """,
)


def upgrade() -> None:
    """Build everything from nothing."""
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """Refuse: a decision must not be lost by stepping back."""
    message = "there is no way back past the first revision; restore a backup instead"
    raise NotImplementedError(message)
