"""What tests of outgoing connections put in the place of name servers and of the Internet."""

from collections.abc import Iterable

import httpcore


class Names:
    """A name server that gives its answers in turn, the last of them for ever."""

    def __init__(self, answers: Iterable[Iterable[str]]) -> None:
        self.left = [list(each) for each in answers]
        self.asked: list[str] = []

    def look_up(self, name: str) -> list[str]:
        self.asked.append(name)
        if not self.left:
            raise OSError(name)
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


class Wire:
    """Where connections go: each is written down, then made by a real socket, but to a port of this machine."""

    def __init__(self, port: int, *, dead: Iterable[str] = ()) -> None:
        self.port = port
        self.dead = set(dead)
        self.dialled: list[tuple[str, int]] = []

    async def dial(self, address: str, port: int) -> httpcore.AsyncNetworkStream:
        """A connection to the port, or to one where nobody listens for an address that is `dead`."""
        self.dialled.append((address, port))
        return await httpcore.AnyIOBackend().connect_tcp("127.0.0.1", 1 if address in self.dead else self.port)
