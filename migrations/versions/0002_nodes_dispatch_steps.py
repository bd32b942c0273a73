"""Add nodes and their instances, the dispatch queue and steps; executions know who runs them and for how long.

Revision ID: 0002
Revises: 0001
"""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_STATEMENTS = (
    """
    ALTER TABLE executions
        ADD COLUMN parent_execution_id TEXT,
        ADD COLUMN idempotency_key TEXT,
        ADD COLUMN dispatched BOOLEAN DEFAULT false NOT NULL,
        ADD COLUMN fence BIGINT DEFAULT '0' NOT NULL,
        ADD COLUMN instance_id TEXT,
        ADD COLUMN replay BOOLEAN DEFAULT false NOT NULL,
        ADD COLUMN fenced BOOLEAN DEFAULT false NOT NULL,
        ADD COLUMN proven BOOLEAN DEFAULT false NOT NULL,
        ADD COLUMN stalls INTEGER DEFAULT '0' NOT NULL,
        ADD COLUMN resume_at_start BOOLEAN DEFAULT false NOT NULL,
        ADD COLUMN outcome_pending BOOLEAN DEFAULT false NOT NULL,
        ADD COLUMN limit_seconds DOUBLE PRECISION,
        ADD COLUMN worked_seconds DOUBLE PRECISION DEFAULT '0' NOT NULL,
        ADD COLUMN running_since TIMESTAMP WITH TIME ZONE,
        ADD COLUMN work_deadline TIMESTAMP WITH TIME ZONE,
        ADD CONSTRAINT executions_queue_is_ours CHECK (status <> 'queued' OR dispatched),
        ADD CONSTRAINT executions_work_has_a_start CHECK (running_since IS NULL OR status = 'running'),
        ADD CONSTRAINT executions_limit_while_working CHECK (work_deadline IS NULL OR running_since IS NOT NULL),
        ADD CONSTRAINT executions_outcome_of_an_end CHECK (NOT outcome_pending OR (dispatched AND
            status = 'cancelled')),
        ADD CONSTRAINT executions_held_under_a_fence CHECK (instance_id IS NULL OR (dispatched AND fence > 0))
    """,
    """
    CREATE UNIQUE INDEX executions_by_key ON executions (idempotency_key) WHERE idempotency_key IS NOT NULL
    """,
    """
    CREATE INDEX executions_held ON executions (instance_id)
        WHERE instance_id IS NOT NULL AND (ended_at IS NULL OR outcome_pending)
    """,
    """
    CREATE INDEX approvals_calling ON approvals (node_id)
        WHERE status = 'pending' AND callback_url IS NOT NULL
    """,
    """
    CREATE INDEX executions_out_of_time ON executions (work_deadline) WHERE work_deadline IS NOT NULL
    """,
    """
    CREATE TABLE nodes (
        node_id TEXT NOT NULL,
        version TEXT NOT NULL,
        reasoners JSONB NOT NULL,
        skills TEXT[] NOT NULL,
        max_concurrent INTEGER,
        registered_at TIMESTAMP WITH TIME ZONE NOT NULL,
        updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
        PRIMARY KEY (node_id),
        CONSTRAINT nodes_max_concurrent CHECK (max_concurrent >= 1)
    )
    """,
    """
    CREATE TABLE instances (
        node_id TEXT NOT NULL,
        instance_id TEXT NOT NULL,
        base_url TEXT NOT NULL,
        version TEXT NOT NULL,
        reasoners TEXT[] NOT NULL,
        replay BOOLEAN NOT NULL,
        fenced BOOLEAN NOT NULL,
        status TEXT NOT NULL,
        gone_reason TEXT,
        lease_seconds DOUBLE PRECISION NOT NULL,
        lease_until TIMESTAMP WITH TIME ZONE NOT NULL,
        registered_at TIMESTAMP WITH TIME ZONE NOT NULL,
        seen_at TIMESTAMP WITH TIME ZONE NOT NULL,
        gone_at TIMESTAMP WITH TIME ZONE,
        callbacks_left BOOLEAN DEFAULT false NOT NULL,
        PRIMARY KEY (instance_id),
        CONSTRAINT instances_status CHECK (status IN ('live', 'draining', 'gone')),
        CONSTRAINT instances_end_has_a_time CHECK ((status = 'gone') = (gone_at IS NOT NULL)),
        CONSTRAINT instances_end_has_a_reason CHECK ((status = 'gone') = (gone_reason IS NOT NULL)),
        CONSTRAINT instances_leave_when_gone CHECK (NOT callbacks_left OR status = 'gone'),
        FOREIGN KEY(node_id) REFERENCES nodes (node_id) ON DELETE CASCADE
    )
 WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1)
    """,
    """
    CREATE INDEX instances_of_node ON instances (node_id, status)
    """,
    """
    CREATE TABLE dispatches (
        execution_id TEXT NOT NULL,
        node_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        due_at TIMESTAMP WITH TIME ZONE,
        claim BIGINT DEFAULT '0' NOT NULL,
        lease_until TIMESTAMP WITH TIME ZONE,
        writing_claim BIGINT,
        attempts INTEGER DEFAULT '0' NOT NULL,
        taken BOOLEAN DEFAULT false NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE NOT NULL,
        start_by TIMESTAMP WITH TIME ZONE NOT NULL,
        last_attempt_at TIMESTAMP WITH TIME ZONE,
        last_status INTEGER,
        last_error TEXT,
        last_instance_id TEXT,
        PRIMARY KEY (execution_id),
        CONSTRAINT dispatches_kind CHECK (kind IN ('run', 'cancel')),
        FOREIGN KEY(execution_id) REFERENCES executions (execution_id) ON DELETE CASCADE
    )
 WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1)
    """,
    """
    CREATE INDEX dispatches_due ON dispatches (node_id, due_at) WHERE due_at IS NOT NULL
    """,
    """
    CREATE INDEX dispatches_unstarted ON dispatches (start_by) WHERE due_at IS NOT NULL AND NOT taken
    """,
    """
    CREATE TABLE steps (
        execution_id TEXT NOT NULL,
        name TEXT NOT NULL,
        occurrence INTEGER NOT NULL,
        position INTEGER NOT NULL,
        previous TEXT,
        result JSON NOT NULL,
        at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
        PRIMARY KEY (execution_id, name, occurrence),
        CONSTRAINT steps_one_a_position UNIQUE (execution_id, position),
        CONSTRAINT steps_occurrence CHECK (occurrence >= 1),
        FOREIGN KEY(execution_id) REFERENCES executions (execution_id) ON DELETE CASCADE
    )
    """,
    """
    ALTER TABLE deliveries ADD COLUMN resting BOOLEAN DEFAULT false NOT NULL
    """,
    """
    DROP INDEX deliveries_due
    """,
    """
    CREATE INDEX deliveries_due ON deliveries (due_at) WHERE status = 'pending' AND NOT resting
    """,
    """
    CREATE INDEX deliveries_resting ON deliveries (node_id) WHERE status = 'pending' AND resting
    """,
)


def upgrade() -> None:
    """Add what dispatching and recovery need; what runs already stays a run that its own program started."""
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """Refuse: what a run has done so far must not be lost by stepping back."""
    message = "there is no way back past this revision; restore a backup instead"
    raise NotImplementedError(message)
