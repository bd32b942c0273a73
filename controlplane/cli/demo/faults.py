"""Why the demo ended early; each message says what was expected and what was there instead."""

from controlplane.cli.faults import Fault


class DemoFault(Fault):
    """The demo could not go on."""


class NotSeen(DemoFault):
    """Something that the demo promises was not seen in time."""


def check(holds: bool, expected: str, found: object) -> None:
    """Go on only if it holds.

    Raises:
        NotSeen: it does not; the message has what was expected and what was found.
    """
    if not holds:
        raise NotSeen(f"expected {expected}; found {found}")
