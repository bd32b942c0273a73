"""The tables of what people do: short-lived questions, and the sessions that they sign in to."""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from controlplane.domain.feedback import FeedbackStatus
from controlplane.storage.schema import NOW, busy, flag, metadata, moment, one_of, text

# Of what was asked only the words of a pending question are kept, and of an answer only what its asker can open.
feedback = sa.Table(
    "feedback",
    metadata,
    sa.Column("unique_id", sa.Text, primary_key=True),
    text("owner", nullable=True),
    text("status"),
    text("kind", nullable=True),
    text("message", nullable=True),
    sa.Column("options", ARRAY(sa.Text), nullable=True),
    text("yes_label", nullable=True),
    text("no_label", nullable=True),
    text("session_id", nullable=True),
    text("execution_id", nullable=True),
    sa.Column("public_key", sa.LargeBinary, nullable=True),
    moment("created_at"),
    moment("expires_at"),
    moment("waiter_until"),
    sa.Column("enc", sa.LargeBinary, nullable=True),
    sa.Column("ct", sa.LargeBinary, nullable=True),
    moment("read_at", nullable=True),
    text("submission_id", nullable=True),
    moment("ended_at", nullable=True),
    flag("stops_clock"),
    sa.CheckConstraint(one_of("status", FeedbackStatus), name="feedback_status"),
    sa.CheckConstraint("(status = 'pending') = (ended_at IS NULL)", name="feedback_end_has_a_time"),
    sa.CheckConstraint(
        "(status = 'pending') = (message IS NOT NULL) AND (status = 'pending' OR options IS NULL)",
        name="feedback_words_while_pending",
    ),
    sa.CheckConstraint("(enc IS NULL) = (ct IS NULL)", name="feedback_sealed_whole"),
    sa.CheckConstraint("enc IS NULL OR status = 'answered'", name="feedback_answer_of_an_end"),
    sa.CheckConstraint("status <> 'pending' OR octet_length(public_key) = 32", name="feedback_public_key"),
    sa.CheckConstraint("status <> 'answered' OR ended_at < expires_at", name="feedback_answered_in_time"),
    sa.CheckConstraint("NOT stops_clock OR status = 'pending'", name="feedback_clock_while_pending"),
    sa.Index("feedback_of_execution", "execution_id", postgresql_where=sa.text("stops_clock")),
    sa.Index("feedback_pending", "created_at", "unique_id", postgresql_where=sa.text("status = 'pending'")),
    sa.Index("feedback_owner", sa.text("coalesce(owner, ''::text)"), postgresql_where=sa.text("status = 'pending'")),
    sa.Index("feedback_sealed", "unique_id", postgresql_where=sa.text("enc IS NOT NULL")),
    sa.Index("feedback_ended", "ended_at", postgresql_where=sa.text("status <> 'pending'")),
    postgresql_with=busy(70),
)

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("digest", sa.LargeBinary, primary_key=True),
    text("session_id"),
    sa.Column("key_id", sa.Text, sa.ForeignKey("api_keys.key_id"), nullable=False),
    sa.Column("key_digest", sa.LargeBinary, nullable=False),
    sa.Column("created_at", sa.TIMESTAMP(timezone=True), nullable=False, server_default=NOW),
    sa.Column("seen_at", sa.TIMESTAMP(timezone=True), nullable=False, server_default=NOW),
    moment("ended_at", nullable=True),
    sa.CheckConstraint("octet_length(digest) = 32 AND octet_length(key_digest) = 32", name="sessions_digest"),
    sa.Index("sessions_of_key", "key_id"),
)
