"""Tables that only grow: a trigger refuses to change or remove a row, to everybody but an owner who turns it off.

From history rows are deleted by `holdshort audit prune`, which marks it in `prunings`: only the owner may.
"""

import sqlalchemy as sa
from msgspec import Struct

from controlplane.storage.engine import Connection

# Spelled as in the migrations, as the dumps of both are compared.
_FUNCTION = (
    "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN"
    " RAISE EXCEPTION '% only grows: % is refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'insufficient_privilege';"
    " END$$"
)
# Rows leave history in a transaction that marks it, and only the owner may mark: no lock keeps the servers out, and
# none of it goes unmarked. By the schema of the table, as anyone may have a temporary one of the same name.
_PRUNING = (
    "CREATE OR REPLACE FUNCTION refuse_unmarked_change() RETURNS trigger LANGUAGE plpgsql AS $$"
    "DECLARE marked boolean; BEGIN"
    " EXECUTE format('SELECT EXISTS (SELECT FROM %I.prunings WHERE xid = pg_current_xact_id())', TG_TABLE_SCHEMA)"
    " INTO marked;"
    " IF TG_OP <> 'DELETE' OR NOT marked THEN"
    " RAISE EXCEPTION '% only grows: % is refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'insufficient_privilege';"
    " END IF; RETURN NULL; END$$"
)
_REFUSING = {"history": "refuse_unmarked_change", "seals": "refuse_change", "prunings": "refuse_change"}


class Guard(Struct, frozen=True):
    """What keeps our own role from changing history: triggers that are on, and its not having the right to."""

    triggers: bool
    grants: bool


def declare(metadata: sa.MetaData) -> None:
    """Have the guard made with the tables of `metadata`."""
    statements = [_FUNCTION, _PRUNING]
    for table, function in _REFUSING.items():
        made = f"CREATE TRIGGER {table}_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}"
        statements.append(f"{made} FOR EACH STATEMENT EXECUTE FUNCTION {function}()")
        # Otherwise a session that is set to replicate would pass it by.
        statements.append(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_only_grows")
    for statement in statements:
        sa.event.listen(metadata, "after_create", _ddl(statement))
    sa.event.listen(metadata, "after_drop", _ddl("DROP FUNCTION IF EXISTS refuse_change(), refuse_unmarked_change()"))


def _ddl(statement: str) -> sa.DDL:
    return sa.DDL(statement.replace("%", "%%"))  # type: ignore[no-untyped-call]


async def guard(conn: Connection) -> Guard:
    """What guards history from the role of this connection."""
    row = await conn.row(
        _GUARD, {"tables": list(_REFUSING), "triggers": [f"{table}_only_grows" for table in _REFUSING]}
    )
    if row is None:
        raise RuntimeError("an aggregate returned no row")
    return Guard(triggers=row.triggers, grants=row.grants)


_GUARD = sa.text("""
SELECT bool_and(EXISTS (
           SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgname = g.trigger AND t.tgenabled = 'A'))
           AS triggers,
       bool_and(coalesce(NOT pg_has_role(current_user, c.relowner, 'MEMBER')
           AND NOT has_table_privilege(c.oid, 'UPDATE, DELETE, TRUNCATE, TRIGGER')
           AND NOT has_any_column_privilege(c.oid, 'UPDATE'), false)) AS grants
FROM unnest(CAST(:tables AS text[]), CAST(:triggers AS text[])) AS g(name, trigger)
LEFT JOIN pg_class c ON c.oid = to_regclass(g.name)
""")
