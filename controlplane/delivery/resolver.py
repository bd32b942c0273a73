"""Looking up names: bounded in time, in threads and in how many may wait, and never in the event loop.

The system's resolver cannot be interrupted, so each look-up has a thread of its own that ends when it ends. Whoever
asks for a name that is being looked up waits for that look-up: a name that hangs holds one thread, not one a caller.
"""

import asyncio
import socket
import threading
from collections.abc import Callable

DEADLINE_SECONDS = 2.0
MOST_RUNNING = 16
MOST_WAITING = 1000

LookUp = Callable[[str], list[str]]


class Unresolved(Exception):
    """The name has no address, or none that was found in time."""


def system_look_up(name: str) -> list[str]:
    """The addresses of a name as this system resolves it, each once; waits for as long as that takes.

    Raises:
        OSError: it has none, or that cannot be found out now.
    """
    answers = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in answers))


class Resolver:
    """Looks up names for one event loop.

    Args:
        look_up: how a name is looked up, in a thread.
        most_running: look-ups at once, hanging ones among them.
        seconds: how long anybody waits, for a place and an answer together.
    """

    def __init__(
        self,
        look_up: LookUp = system_look_up,
        *,
        most_running: int = MOST_RUNNING,
        seconds: float = DEADLINE_SECONDS,
    ) -> None:
        self._look_up = look_up
        self._seconds = seconds
        self._places = asyncio.Semaphore(most_running)
        self._waiting = 0
        self._running: dict[str, asyncio.Future[list[str]]] = {}

    async def resolve(self, name: str) -> list[str]:
        """The addresses of a name, at least one.

        Raises:
            Unresolved: it has none, the time has passed, or too many wait already.
        """
        if self._waiting >= MOST_WAITING:
            raise Unresolved("too many names are being looked up")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._seconds):
                answers = await self._answers(name)
        except TimeoutError:
            raise Unresolved(f"the name was not resolved within {self._seconds:g} s") from None
        except (OSError, UnicodeError) as fault:
            raise Unresolved("the name does not resolve") from fault
        finally:
            self._waiting -= 1
        if not answers:
            raise Unresolved("the name does not resolve")
        return answers

    async def _answers(self, name: str) -> list[str]:
        if name not in self._running:
            await self._places.acquire()
            if name in self._running:
                self._places.release()
            else:
                self._start(name)
        return await asyncio.shield(self._running[name])

    def _start(self, name: str) -> None:
        loop = asyncio.get_running_loop()
        thread = threading.Thread(target=self._run, args=(loop, name), name="look-up", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            self._places.release()
            raise Unresolved("no thread is left to look names up") from None
        self._running[name] = loop.create_future()

    def _run(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        """What the thread does; the loop may be gone by the time it has an answer."""
        try:
            answers: list[str] | Exception = self._look_up(name)
        except Exception as fault:
            answers = fault
        try:
            loop.call_soon_threadsafe(self._ended, name, answers)
        except RuntimeError:
            return

    def _ended(self, name: str, answers: list[str] | Exception) -> None:
        self._places.release()
        future = self._running.pop(name)
        if isinstance(answers, Exception):
            future.set_exception(answers)
            future.exception()  # nobody may be waiting any more
        else:
            future.set_result(answers)
