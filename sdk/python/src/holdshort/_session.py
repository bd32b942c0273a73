"""What an agent holds on one event loop while something runs there: its client and its shared wait."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager

from holdshort._client import AsyncClient
from holdshort._errors import AccessLost, NotAuthorised
from holdshort._pauses import Registry
from holdshort._shared_wait import SharedWait
from holdshort._wire import ApprovalStatus, result_of


class Session:
    """The client and the shared wait of one event loop; pauses come and go, these stay.

    Args:
        client: waits as long as its callers do.
        registry: where answers are handed over.
        held: see SharedWait.
    """

    def __init__(self, client: AsyncClient, registry: Registry, *, held: bool) -> None:
        self.client = client
        self.registry = registry
        self.pulls = held
        self.waits = SharedWait(client, self._settled, self._refused, held=held)

    def _settled(self, approval: ApprovalStatus) -> None:
        self.registry.resolve(result_of(approval, approval.execution_id))

    def _refused(self, approval_ids: Collection[str], refused: NotAuthorised) -> None:
        known = {"status": refused.status, "request_id": refused.request_id, "details": refused.details}
        self.registry.lose(approval_ids, AccessLost(f"nothing was decided here: {refused.message}", **known))

    async def aclose(self) -> None:
        """End the shared wait and close the connections."""
        await self.waits.aclose()
        await self.client.aclose()


class Sessions:
    """Opens a session on a loop when it is first used there, and closes it with its last user.

    Args:
        make: a new session on the running loop.
    """

    def __init__(self, make: Callable[[], Session]) -> None:
        self._make = make
        self._open: dict[asyncio.AbstractEventLoop, tuple[Session, int]] = {}

    @asynccontextmanager
    async def use(self) -> AsyncIterator[Session]:
        """The running loop's session, open as long as somebody uses it."""
        session = self.enter()
        try:
            yield session
        finally:
            await self.leave()

    def enter(self) -> Session:
        """The running loop's session, open until as many have left as entered."""
        loop = asyncio.get_running_loop()
        session, users = self._open.get(loop) or (self._make(), 0)
        self._open[loop] = (session, users + 1)
        return session

    async def leave(self) -> None:
        """One less uses it."""
        loop = asyncio.get_running_loop()
        session, users = self._open.pop(loop)
        if users > 1:
            self._open[loop] = (session, users - 1)
        else:
            await session.aclose()
