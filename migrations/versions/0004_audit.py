"""Let history only grow but for what is pruned as its owner, and add the seals that chain it.

Revision ID: 0004
Revises: 0003
"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_STATEMENTS = (
    """
    CREATE TABLE seals (
        number BIGINT NOT NULL,
        first_xid XID8 NOT NULL,
        first_seq BIGINT NOT NULL,
        last_xid XID8 NOT NULL,
        last_seq BIGINT NOT NULL,
        rows INTEGER NOT NULL,
        sha256 BYTEA NOT NULL,
        at TIMESTAMP WITH TIME ZONE NOT NULL,
        PRIMARY KEY (number),
        CONSTRAINT seals_are_whole CHECK (number >= 1 AND rows >= 1 AND octet_length(sha256) = 32)
    )
    """,
    """
    CREATE TABLE prunings (
        seal BIGINT NOT NULL,
        xid XID8 DEFAULT pg_current_xact_id() NOT NULL,
        PRIMARY KEY (seal)
    )
    """,
    """
    CREATE INDEX prunings_by_xid ON prunings (xid)
    """,
    (
        "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN"
        " RAISE EXCEPTION '% only grows: % is refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'insufficient_privilege';"
        " END$$"
    ),
    (
        "CREATE OR REPLACE FUNCTION refuse_unmarked_change() RETURNS trigger LANGUAGE plpgsql AS $$"
        "DECLARE marked boolean; BEGIN"
        " EXECUTE format('SELECT EXISTS (SELECT FROM %I.prunings WHERE xid = pg_current_xact_id())', TG_TABLE_SCHEMA)"
        " INTO marked;"
        " IF TG_OP <> 'DELETE' OR NOT marked THEN"
        " RAISE EXCEPTION '% only grows: % is refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'insufficient_privilege';"
        " END IF; RETURN NULL; END$$"
    ),
    """
    CREATE TRIGGER history_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON history
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_unmarked_change()
    """,
    """
    ALTER TABLE history ENABLE ALWAYS TRIGGER history_only_grows
    """,
    """
    CREATE TRIGGER seals_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON seals
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()
    """,
    """
    ALTER TABLE seals ENABLE ALWAYS TRIGGER seals_only_grows
    """,
    """
    CREATE TRIGGER prunings_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON prunings
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()
    """,
    """
    ALTER TABLE prunings ENABLE ALWAYS TRIGGER prunings_only_grows
    """,
)


def upgrade() -> None:
    """Refuse changes from here on; what there is already is sealed by the servers, oldest first."""
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """Refuse: what has been sealed must stay so."""
    message = "there is no way back past this revision; restore a backup instead"
    raise NotImplementedError(message)
