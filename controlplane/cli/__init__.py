"""The `holdshort` command: what a person or a start script types; prints, exits, and does nothing else itself."""

import gc


def main() -> None:
    """Run the command line."""
    # What is loaded stays, and searching it for garbage would be an eighth of a start; `get_command` ends this.
    gc.disable()
    # Imported here: the embedded PostgreSQL is used from this package by programs that need no command line.
    from controlplane.cli.main import holdshort  # noqa: PLC0415

    holdshort(prog_name="holdshort")
