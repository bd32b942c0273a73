"""The `holdshort` command: what a person or a start script types; prints, exits, and does nothing else itself."""
