"""The `holdshort` command: what a person or a start script types; prints, exits, and does nothing else itself."""


def main() -> None:
    """Run the command line."""
    # Imported here: the embedded PostgreSQL is used from this package by programs that need no command line.
    from controlplane.cli.main import holdshort  # noqa: PLC0415

    holdshort(prog_name="holdshort")
