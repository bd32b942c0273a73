"""Every table, CHECK and index. The migrations build the same; a test compares the two schema dumps."""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from controlplane.domain.approvals import BEFORE_DEADLINE, ApprovalStatus, OnExpiry
from controlplane.domain.deliveries import DeliveryStatus
from controlplane.domain.dispatching import DispatchKind
from controlplane.domain.events import ActorKind
from controlplane.domain.executions import FINAL_EXECUTION, ExecutionStatus
from controlplane.domain.nodes import InstanceStatus
from controlplane.storage import access_tables, inbox_tables
from controlplane.storage.schema import NOW, busy, flag, moment, one_of, text
from controlplane.storage.types import ExactJson, Xid8

# That of every table: those declared elsewhere are in it once they are imported.
DECLARED_ELSEWHERE = (access_tables.api_keys, inbox_tables.feedback)
metadata = DECLARED_ELSEWHERE[0].metadata
_FINAL = sorted(FINAL_EXECUTION)
_DECIDED = sorted(BEFORE_DEADLINE)
# Ended without anybody's verdict.
_LAPSED = sorted({ApprovalStatus.EXPIRED, ApprovalStatus.WITHDRAWN})

executions = sa.Table(
    "executions",
    metadata,
    sa.Column("execution_id", sa.Text, primary_key=True),
    text("node_id"),
    text("reasoner", nullable=True),
    text("run_id", nullable=True),
    text("status"),
    text("status_reason", nullable=True),
    sa.Column("pending_approvals", sa.Integer, nullable=False, server_default="0"),
    sa.Column("input", ExactJson, nullable=True),
    sa.Column("result", ExactJson, nullable=True),
    text("error", nullable=True),
    sa.Column("created_at", sa.TIMESTAMP(timezone=True), nullable=False, server_default=NOW),
    sa.Column("updated_at", sa.TIMESTAMP(timezone=True), nullable=False, server_default=NOW),
    moment("started_at", nullable=True),
    moment("ended_at", nullable=True),
    text("parent_execution_id", nullable=True),
    text("idempotency_key", nullable=True),
    flag("dispatched"),
    sa.Column("fence", sa.BigInteger, nullable=False, server_default="0"),
    text("instance_id", nullable=True),
    flag("replay"),
    flag("fenced"),
    flag("proven"),
    sa.Column("stalls", sa.Integer, nullable=False, server_default="0"),
    flag("resume_at_start"),
    flag("outcome_pending"),
    sa.Column("limit_seconds", sa.Double, nullable=True),
    sa.Column("worked_seconds", sa.Double, nullable=False, server_default="0"),
    moment("running_since", nullable=True),
    moment("work_deadline", nullable=True),
    text("started_by", nullable=True),
    text("agent_reply", nullable=True),
    sa.CheckConstraint(one_of("status", ExecutionStatus), name="executions_status"),
    sa.CheckConstraint("pending_approvals >= 0", name="executions_pending_counted"),
    sa.CheckConstraint("(status = 'waiting') = (pending_approvals > 0)", name="executions_waits_for_something"),
    sa.CheckConstraint(f"({one_of('status', _FINAL)}) = (ended_at IS NOT NULL)", name="executions_end_has_a_time"),
    sa.CheckConstraint("status <> 'queued' OR dispatched", name="executions_queue_is_ours"),
    sa.CheckConstraint("running_since IS NULL OR status = 'running'", name="executions_work_has_a_start"),
    sa.CheckConstraint("work_deadline IS NULL OR running_since IS NOT NULL", name="executions_limit_while_working"),
    sa.CheckConstraint(
        "NOT outcome_pending OR (dispatched AND status = 'cancelled')", name="executions_outcome_of_an_end"
    ),
    sa.CheckConstraint("instance_id IS NULL OR (dispatched AND fence > 0)", name="executions_held_under_a_fence"),
    sa.Index("executions_by_time", "created_at", "execution_id"),
    sa.Index("executions_by_node", "node_id", "created_at", "execution_id"),
    sa.Index("executions_by_status", "status", "created_at", "execution_id"),
    sa.Index(
        "executions_by_key",
        "idempotency_key",
        sa.text("coalesce(started_by, '')"),
        unique=True,
        postgresql_where=sa.text("idempotency_key IS NOT NULL"),
    ),
    sa.Index(
        "executions_held",
        "instance_id",
        postgresql_where=sa.text("instance_id IS NOT NULL AND (ended_at IS NULL OR outcome_pending)"),
    ),
    sa.Index("executions_out_of_time", "work_deadline", postgresql_where=sa.text("work_deadline IS NOT NULL")),
    postgresql_with=busy(80),
)

approvals = sa.Table(
    "approvals",
    metadata,
    sa.Column("approval_id", sa.Text, primary_key=True),
    sa.Column("execution_id", sa.Text, sa.ForeignKey("executions.execution_id"), nullable=False),
    text("node_id"),
    text("approval_request_id"),
    sa.Column("round", sa.Integer, nullable=False),
    text("status"),
    text("on_expiry"),
    moment("requested_at"),
    moment("expires_at"),
    text("approval_request_url", nullable=True),
    text("title", nullable=True),
    text("description", nullable=True),
    sa.Column("payload", ExactJson, nullable=True),
    text("payload_digest", nullable=True),
    text("decided_by", nullable=True),
    text("callback_url", nullable=True),
    text("callback_secret", nullable=True),
    moment("decided_at", nullable=True),
    text("feedback", nullable=True),
    sa.Column("response", ExactJson, nullable=True),
    text("new_status", nullable=True),
    moment("read_at", nullable=True),
    sa.Column("form", ExactJson, nullable=True),
    sa.UniqueConstraint("approval_request_id", "execution_id", "round", name="approvals_one_a_round"),
    sa.CheckConstraint(one_of("status", ApprovalStatus), name="approvals_status"),
    sa.CheckConstraint(one_of("on_expiry", OnExpiry), name="approvals_on_expiry"),
    sa.CheckConstraint(one_of("new_status", ExecutionStatus), name="approvals_new_status"),
    sa.CheckConstraint("round >= 1", name="approvals_round"),
    sa.CheckConstraint("expires_at > requested_at", name="approvals_deadline_after_request"),
    sa.CheckConstraint("(status = 'pending') = (decided_at IS NULL)", name="approvals_end_has_a_time"),
    sa.CheckConstraint("(decided_at IS NULL) = (new_status IS NULL)", name="approvals_end_has_an_effect"),
    sa.CheckConstraint(
        f"NOT ({one_of('status', _DECIDED)}) OR decided_at < expires_at", name="approvals_decided_in_time"
    ),
    sa.Index("approvals_of_execution", "execution_id", "requested_at"),
    sa.Index("approvals_by_request_id", "approval_request_id", "requested_at"),
    sa.Index("approvals_by_time", "requested_at", "approval_id"),
    sa.Index("approvals_by_node", "node_id", "requested_at", "approval_id"),
    sa.Index("approvals_by_deadline", "expires_at", "approval_id"),
    sa.Index("approvals_due", "expires_at", "execution_id", postgresql_where=sa.text("status = 'pending'")),
    sa.Index("approvals_decided", "decided_at", "approval_id", postgresql_where=sa.text(one_of("status", _DECIDED))),
    sa.Index("approvals_lapsed", "decided_at", "approval_id", postgresql_where=sa.text(one_of("status", _LAPSED))),
    sa.Index(
        "approvals_calling",
        "node_id",
        postgresql_where=sa.text("status = 'pending' AND callback_url IS NOT NULL"),
    ),
    postgresql_with=busy(80),
)

deliveries = sa.Table(
    "deliveries",
    metadata,
    sa.Column("delivery_id", sa.Text, primary_key=True),
    sa.Column("approval_id", sa.Text, sa.ForeignKey("approvals.approval_id", ondelete="CASCADE"), nullable=False),
    text("execution_id"),
    text("node_id"),
    text("status"),
    text("url"),
    text("target"),
    text("secret", nullable=True),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("fence", sa.BigInteger, nullable=False, server_default="0"),
    moment("created_at"),
    moment("told_at"),
    moment("due_at"),
    moment("lease_until", nullable=True),
    sa.Column("writing_fence", sa.BigInteger, nullable=True),
    sa.Column("last_status", sa.Integer, nullable=True),
    text("last_error", nullable=True),
    moment("last_attempt_at", nullable=True),
    moment("settled_at", nullable=True),
    flag("resting"),
    sa.UniqueConstraint("approval_id", name="deliveries_one_an_approval"),
    sa.CheckConstraint(one_of("status", DeliveryStatus), name="deliveries_status"),
    sa.CheckConstraint("(status = 'pending') = (settled_at IS NULL)", name="deliveries_end_has_a_time"),
    sa.Index("deliveries_due", "due_at", postgresql_where=sa.text("status = 'pending' AND NOT resting")),
    sa.Index("deliveries_resting", "node_id", postgresql_where=sa.text("status = 'pending' AND resting")),
    sa.Index("deliveries_of_execution", "execution_id"),
    sa.Index("deliveries_by_status", "status", "created_at", "delivery_id"),
    postgresql_with=busy(70),
)

history = sa.Table(
    "history",
    metadata,
    sa.Column("seq", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    sa.Column("xid", Xid8, nullable=False, server_default=sa.text("pg_current_xact_id()")),
    sa.Column("at", sa.TIMESTAMP(timezone=True), nullable=False, server_default=NOW),
    text("type"),
    text("execution_id", nullable=True),
    text("approval_id", nullable=True),
    text("approval_request_id", nullable=True),
    text("node_id", nullable=True),
    text("actor_kind"),
    text("actor_name"),
    text("actor_via"),
    text("actor_address", nullable=True),
    sa.Column("settles", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("data", JSONB, nullable=False),
    text("actor_id", nullable=True),
    sa.CheckConstraint(one_of("actor_kind", ActorKind), name="history_actor_kind"),
    sa.Index("history_stream", "xid", "seq"),
    sa.Index("history_of_execution", "execution_id", "seq"),
    sa.Index("history_of_approval", "approval_id", "seq"),
    sa.Index("history_one_end", "approval_id", unique=True, postgresql_where=sa.text("settles")),
)

seals = sa.Table(
    "seals",
    metadata,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("first_xid", Xid8, nullable=False),
    sa.Column("first_seq", sa.BigInteger, nullable=False),
    sa.Column("last_xid", Xid8, nullable=False),
    sa.Column("last_seq", sa.BigInteger, nullable=False),
    sa.Column("rows", sa.Integer, nullable=False),
    sa.Column("sha256", sa.LargeBinary, nullable=False),
    moment("at"),
    sa.CheckConstraint("number >= 1 AND rows >= 1 AND octet_length(sha256) = 32", name="seals_are_whole"),
)

prunings = sa.Table(
    "prunings",
    metadata,
    sa.Column("seal", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("xid", Xid8, nullable=False, server_default=sa.text("pg_current_xact_id()")),
    sa.Index("prunings_by_xid", "xid"),
)

seen_webhooks = sa.Table(
    "seen_webhooks",
    metadata,
    sa.Column("sender", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("approval_id", sa.Text, sa.ForeignKey("approvals.approval_id", ondelete="CASCADE"), nullable=False),
    sa.Column("outcome", JSONB, nullable=False),
    sa.Column("at", sa.TIMESTAMP(timezone=True), nullable=False, server_default=NOW),
    sa.Index("seen_webhooks_of_approval", "approval_id"),
)

parked = sa.Table(
    "parked",
    metadata,
    sa.Column("parked_id", sa.Text, primary_key=True),
    text("sender"),
    text("approval_request_id"),
    text("execution_id", nullable=True),
    text("decision"),
    text("feedback"),
    sa.Column("response", ExactJson, nullable=True),
    sa.Column("keys", ARRAY(sa.Text), nullable=False),
    moment("received_at"),
    moment("expires_at"),
    sa.CheckConstraint(one_of("decision", sorted({*_DECIDED, ApprovalStatus.EXPIRED})), name="parked_decision"),
    sa.Index(
        "parked_one_a_sender",
        "approval_request_id",
        "sender",
        sa.text("coalesce(execution_id, '')"),
        unique=True,
    ),
    sa.Index("parked_of_sender", "sender", "received_at", "parked_id"),
    sa.Index("parked_due", "expires_at"),
)

notes = sa.Table(
    "notes",
    metadata,
    sa.Column("execution_id", sa.Text, sa.ForeignKey("executions.execution_id", ondelete="CASCADE"), primary_key=True),
    sa.Column("note_id", sa.Text, primary_key=True),
    text("message"),
    sa.Column("tags", ARRAY(sa.Text), nullable=False),
    sa.Column("at", sa.TIMESTAMP(timezone=True), nullable=False, server_default=NOW),
)

nodes = sa.Table(
    "nodes",
    metadata,
    sa.Column("node_id", sa.Text, primary_key=True),
    text("version"),
    sa.Column("reasoners", JSONB, nullable=False),
    sa.Column("skills", ARRAY(sa.Text), nullable=False),
    sa.Column("max_concurrent", sa.Integer, nullable=True),
    moment("registered_at"),
    moment("updated_at"),
    sa.CheckConstraint("max_concurrent >= 1", name="nodes_max_concurrent"),
)

instances = sa.Table(
    "instances",
    metadata,
    sa.Column("node_id", sa.Text, sa.ForeignKey("nodes.node_id", ondelete="CASCADE"), nullable=False),
    sa.Column("instance_id", sa.Text, primary_key=True),
    text("base_url"),
    text("version"),
    sa.Column("reasoners", ARRAY(sa.Text), nullable=False),
    sa.Column("replay", sa.Boolean, nullable=False),
    sa.Column("fenced", sa.Boolean, nullable=False),
    text("status"),
    text("gone_reason", nullable=True),
    sa.Column("lease_seconds", sa.Double, nullable=False),
    moment("lease_until"),
    moment("registered_at"),
    moment("seen_at"),
    moment("gone_at", nullable=True),
    flag("callbacks_left"),
    sa.CheckConstraint(one_of("status", InstanceStatus), name="instances_status"),
    sa.CheckConstraint("(status = 'gone') = (gone_at IS NOT NULL)", name="instances_end_has_a_time"),
    sa.CheckConstraint("(status = 'gone') = (gone_reason IS NOT NULL)", name="instances_end_has_a_reason"),
    sa.CheckConstraint("NOT callbacks_left OR status = 'gone'", name="instances_leave_when_gone"),
    sa.Index("instances_of_node", "node_id", "status"),
    postgresql_with=busy(70),
)

dispatches = sa.Table(
    "dispatches",
    metadata,
    sa.Column("execution_id", sa.Text, sa.ForeignKey("executions.execution_id", ondelete="CASCADE"), primary_key=True),
    text("node_id"),
    text("kind"),
    moment("due_at", nullable=True),
    sa.Column("claim", sa.BigInteger, nullable=False, server_default="0"),
    moment("lease_until", nullable=True),
    sa.Column("writing_claim", sa.BigInteger, nullable=True),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    flag("taken"),
    moment("created_at"),
    moment("start_by"),
    moment("last_attempt_at", nullable=True),
    sa.Column("last_status", sa.Integer, nullable=True),
    text("last_error", nullable=True),
    text("last_instance_id", nullable=True),
    sa.CheckConstraint(one_of("kind", DispatchKind), name="dispatches_kind"),
    sa.Index("dispatches_unstarted", "start_by", postgresql_where=sa.text("due_at IS NOT NULL AND NOT taken")),
    sa.Index("dispatches_due", "node_id", "due_at", postgresql_where=sa.text("due_at IS NOT NULL")),
    postgresql_with=busy(70),
)

steps = sa.Table(
    "steps",
    metadata,
    sa.Column("execution_id", sa.Text, sa.ForeignKey("executions.execution_id", ondelete="CASCADE"), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("occurrence", sa.Integer, primary_key=True),
    sa.Column("position", sa.Integer, nullable=False),
    text("previous", nullable=True),
    sa.Column("result", ExactJson, nullable=False),
    sa.Column("at", sa.TIMESTAMP(timezone=True), nullable=False, server_default=NOW),
    sa.UniqueConstraint("execution_id", "position", name="steps_one_a_position"),
    sa.CheckConstraint("occurrence >= 1", name="steps_occurrence"),
)

# Written out, not bound: a plan that serves every value could not use an index over the pending rows alone.
APPROVAL_DECIDED = sa.text(one_of("status", _DECIDED))
APPROVAL_LAPSED = sa.text(one_of("status", _LAPSED))
APPROVAL_PENDING = approvals.c.status == sa.literal_column(f"'{ApprovalStatus.PENDING}'")
DELIVERY_PENDING = deliveries.c.status == sa.literal_column(f"'{DeliveryStatus.PENDING}'")
