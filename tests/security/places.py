"""Where canaries are looked for: every column of a database, every answer, every file, every command line."""

import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.cli.processes import children_of
from tests.security.canaries import Aviary, Found

# Which texts of callers a column is there to hold; a secret stands in none of them. Whatever is not listed holds none.
HOLDS: Mapping[tuple[str, str], frozenset[str]] = {
    # A key that somebody puts into what is theirs to write is kept there, as any text, and masked in the history.
    ("executions", "input"): frozenset({"input", "field_key"}),
    ("executions", "result"): frozenset({"result"}),
    ("executions", "error"): frozenset({"error"}),
    # What the agent of the node answered to a dispatch: kept once, for its node and administrators.
    ("executions", "agent_reply"): frozenset({"reply"}),
    # Why a run was cancelled, and the first line of a rejection, are said with its state.
    ("executions", "status_reason"): frozenset({"reason", "feedback"}),
    ("approvals", "title"): frozenset({"title"}),
    ("approvals", "description"): frozenset({"description"}),
    ("approvals", "payload"): frozenset({"payload"}),
    ("approvals", "form"): frozenset({"form"}),
    ("approvals", "feedback"): frozenset({"feedback"}),
    ("approvals", "response"): frozenset({"response"}),
    ("parked", "feedback"): frozenset({"feedback"}),
    ("parked", "response"): frozenset({"response"}),
    ("notes", "message"): frozenset({"note", "field_key"}),
    ("nodes", "reasoners"): frozenset({"schema"}),
    ("notes", "tags"): frozenset({"note"}),
    ("steps", "result"): frozenset({"step"}),
    # The words of a short-lived question, while it is pending; what a person answers stands nowhere at all.
    ("feedback", "message"): frozenset({"question"}),
    ("feedback", "options"): frozenset({"question"}),
    ("feedback", "session_id"): frozenset({"session"}),
    # Its sender's own name for an answer, and nothing made from it.
    ("feedback", "submission_id"): frozenset({"submission"}),
    # History says what a person said: the beginning of their feedback, why a run was cancelled, and an agent's notes.
    ("history", "data"): frozenset({"feedback", "reason", "note"}),
}
IN_HISTORY = HOLDS["history", "data"]
IN_ANSWERS = frozenset().union(*HOLDS.values())


async def search_database(aviary: Aviary, sql: Any) -> list[Found]:
    """Every column of every table, as text and, where it holds bytes, as these."""
    columns = await sql.fetch(
        "SELECT table_name, column_name, data_type FROM information_schema.columns"
        " WHERE table_schema NOT IN ('pg_catalog', 'information_schema')"
    )
    found = []
    for table, column, kind in columns:
        values = await sql.fetch(f'SELECT "{column}" AS raw, "{column}"::text AS text FROM "{table}"')
        text = "\n".join(row["text"] or "" for row in values)
        content = text.encode() + b"".join(row["raw"] or b"" for row in values if kind == "bytea")
        found += aviary.search(f"{table}.{column}", content, allowed=HOLDS.get((table, column), ()))
    return found


def search_files(aviary: Aviary, home: Path, *, allowed: Mapping[str, Iterable[str]]) -> list[Found]:
    """Every file below a directory.

    Args:
        aviary: what is looked for.
        home: the directory.
        allowed: what may stand in the files below a name, which only their owner may read then.
    """
    found = []
    for file in sorted(path for path in home.rglob("*") if path.is_file() and not path.is_symlink()):
        name = str(file.relative_to(home))
        may = next((list(names) for prefix, names in allowed.items() if name.startswith(prefix)), [])
        if may:
            assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, f"{name} is open to others"
        found += aviary.search(name, file.read_bytes(), allowed=may)
    return found


def search_command_lines(aviary: Aviary, pid: int) -> list[Found]:
    """The command line of a process, and those of all that it started and that are still there."""
    try:
        line, children = Path(f"/proc/{pid}/cmdline").read_bytes(), children_of(pid)
    except (FileNotFoundError, ProcessLookupError):
        return []
    found = aviary.search(f"command line of {pid}", line)
    for child in children:
        found += search_command_lines(aviary, child)
    return found
