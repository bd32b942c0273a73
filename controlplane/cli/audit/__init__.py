"""`holdshort audit`: is history what was sealed, and taking it out."""

from controlplane.cli.audit.command import audit

__all__ = ["audit"]
