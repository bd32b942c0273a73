"""`holdshort demo`: the real thing on one machine, in separate processes; seen, decided, killed, and seen again."""

from controlplane.cli.demo.command import demo

__all__ = ["demo"]
