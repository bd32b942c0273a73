"""What the role of the servers may do: everything but change the schema, and history only by adding to it."""

from controlplane.storage.tables import history, metadata, prunings, seals

# By default of the database, so that no caller says when or in which place something happened.
_BY_DATABASE = frozenset({"seq", "xid", "at"})
_GROWING = frozenset({history.name, seals.name, prunings.name})
# Nothing that was ever asked, run, told or let in is deleted.
KEPT = frozenset(
    {
        "executions",
        "approvals",
        "deliveries",
        "notes",
        "steps",
        "dispatches",
        "nodes",
        "api_keys",
        "key_secrets",
        "node_owners",
        "senders",
        "sender_secrets",
    }
)


def statements(role: str) -> list[str]:
    """The statements that give a role what the servers need, and take from it whatever else it was given before.

    Args:
        role: its name, as it is.
    """
    who = _quoted(role)
    others = [table for table in sorted(metadata.tables) if table not in _GROWING]
    kept = ", ".join(table for table in others if table in KEPT)
    loose = ", ".join(table for table in others if table not in KEPT)
    written = ", ".join(column.name for column in history.columns if column.name not in _BY_DATABASE)
    return [
        "BEGIN",
        f"REVOKE ALL ON {', '.join([*sorted(metadata.tables), 'alembic_version'])} FROM {who}",
        f"GRANT USAGE ON SCHEMA public TO {who}",
        f"GRANT SELECT ON alembic_version TO {who}",
        f"GRANT SELECT, INSERT, UPDATE ON {kept} TO {who}",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON {loose} TO {who}",
        f"GRANT SELECT, INSERT ({written}) ON {history.name} TO {who}",
        f"GRANT SELECT, INSERT ON {seals.name} TO {who}",
        f"GRANT SELECT ON {prunings.name} TO {who}",
        "COMMIT",
    ]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
