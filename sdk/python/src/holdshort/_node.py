"""This process as an instance of its node: registered, kept alive, drained, and at the end gone."""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from holdshort import _core, _node_routes
from holdshort._client import AsyncClient
from holdshort._core import Call, Unreachable
from holdshort._errors import HoldshortError, NotAuthorised, NotFound
from holdshort._node_routes import Registration
from holdshort._wire import Registered

LEASE_S = 15.0
_BEAT_S = 5.0
_FASTEST_S = 0.05
_LAST_S = 3.0
_WORD_S = 1.0
_GATHER_S = 0.02
_BATCH = 1000
_UNKNOWN = "node_not_found"
# A sign of life is not written down while so much of the lease is left.
_SURE = 2 / 3
_NO_ANSWER = Unreachable("none")
log = logging.getLogger("holdshort")


class Node:
    """Keeps one instance registered from `start` to `stop`.

    The control plane may be away at any time: that is logged once, and tried again for as long as the process lives. So
    is a refusal, as an error: a node may be moved to this key, and what is wrong may be the control plane's.

    Args:
        client: of its own, so that a crowd of other calls never makes a heartbeat late.
        describe: what is registered; None while no address is known.
        lost: called when the control plane took this instance for gone: the runs that wait are not its own any more.
    """

    def __init__(
        self, client: AsyncClient, describe: Callable[[], Registration | None], lost: Callable[[], None]
    ) -> None:
        self._client = client
        self._describe = describe
        self._lost = lost
        self._known: Registration | None = None
        self._taken: Registration | None = None
        self._registered = False
        self._answer = Registered()
        self._held_until = 0.0
        self._draining = False
        self._stopping = False
        self._failures = 0
        self._refused = False
        self._wake = asyncio.Event()
        self._turned = asyncio.Event()
        self._told_draining = asyncio.Event()
        self._given: deque[tuple[str, int]] = deque()
        self._giving: asyncio.Task[None] | None = None
        self._living = asyncio.create_task(self._live(), name="holdshort node")

    @property
    def registered(self) -> bool:
        """True while the control plane knows this instance, as far as it said."""
        return self._registered

    def look_again(self) -> None:
        """What is described may have changed."""
        self._wake.set()

    def drain(self) -> None:
        """Take nothing new from here on, and say so at once."""
        self._draining = True
        self._wake.set()

    async def confirmed(self) -> None:
        """Return once the lease is surely held; a process that stood still for long must ask first."""
        if self._known is not None and not self._held:
            self._wake.set()
        while self._known is not None and not self._held and not self._living.done():
            await self._turned.wait()

    @property
    def _held(self) -> bool:
        return self._registered and asyncio.get_running_loop().time() < self._held_until

    def hand_back(self, execution_id: str, fence: int) -> None:
        """Give up a run whose code has ended, together with those that end at the same time."""
        self._given.append((execution_id, fence))
        if self._giving is None or self._giving.done():
            self._giving = asyncio.create_task(self._give_back(), name="holdshort hand-back")

    async def stop(self) -> None:
        """Let what was handed back be kept, and say that this instance is gone; takes a few seconds at most."""
        self.drain()
        self._stopping = True
        until = asyncio.get_running_loop().time() + _LAST_S
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_S):
                await asyncio.wait([task for task in (self._living, self._giving) if task is not None])
        tasks = [task for task in (self._living, self._giving) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._known is not None:
            left = 0.0 if self._failures else until - asyncio.get_running_loop().time()
            await self._shut_down(self._known, max(_WORD_S, left))
        await self._client.aclose()

    async def _shut_down(self, known: Registration, seconds: float) -> None:
        gone = _node_routes.shutdown_node(known.node_id, known.instance_id)
        try:
            async with asyncio.timeout(seconds):
                await self._client.send(gone, patience=seconds)
        except (HoldshortError, TimeoutError) as error:
            log.warning("the control plane was not told that this instance stops; its lease passes: %s", error)

    async def _live(self) -> None:
        try:
            while self._goes_on:
                self._wake.clear()
                delay = await self._turn()
                turned, self._turned = self._turned, asyncio.Event()
                turned.set()
                if self._goes_on:
                    await self._until_woken(delay)
        finally:
            self._told_draining.set()
            self._turned.set()

    @property
    def _goes_on(self) -> bool:
        return not self._stopping or (self._registered and not self._told_draining.is_set())

    async def _until_woken(self, delay: float | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await self._wake.wait()

    async def _turn(self) -> float | None:
        """Register, or give a sign of life; seconds until the next."""
        draining = self._draining
        try:
            if self._registered and (draining or self._taken == self._describe()):
                await self._beat()
            elif draining or not await self._register():
                return None
        except Exception as error:  # whatever happens, the process goes on trying
            return self._failed(error)
        finally:
            if draining:
                self._told_draining.set()
        if self._failures:
            log.info("the control plane is back; %s is registered", self._known and self._known.node_id)
        self._failures = 0
        self._refused = False
        every = max(_FASTEST_S, self._answer.heartbeat_seconds)
        return every * (0.8 + 0.2 * random.random())  # noqa: S311  # no secret

    def _failed(self, error: Exception) -> float:
        if isinstance(error, NotFound) and self._registered:
            why = "did another process register its address? " if self._held else ""
            log.warning("the control plane does not know this instance; it registers again: %s%s", why, error)
            self._registered = False
            if error.code == _UNKNOWN:
                self._lost()
            return 0.0
        self._failures += 1
        doing = "give a sign of life" if self._registered else "register"
        if isinstance(error, NotAuthorised):
            if not self._refused:
                log.error("the control plane refuses that this agent should %s, trying on: %s", doing, error)
            self._refused = True
        elif self._failures == 1:
            log.warning("could not %s at the control plane, trying on: %s", doing, error)
        delay = _core.delay_after(_NO_ANSWER, self._failures, random.random())  # noqa: S311  # no secret
        return min(delay, _BEAT_S) if self._registered else delay

    async def _register(self) -> bool:
        described = self._describe()
        if described is None:
            log.debug("no address is known at which this agent is reached; it is not registered")
            return False
        self._known = described
        began = asyncio.get_running_loop().time()
        self._answer = await self._once(_node_routes.register_node(described))
        self._registered = True
        self._taken = described
        self._held_until = began + _SURE * self._answer.lease_seconds
        return True

    async def _beat(self) -> None:
        assert self._known is not None  # noqa: S101  # it is registered
        word = "draining" if self._draining else "ready"
        began = asyncio.get_running_loop().time()
        beaten = await self._once(_node_routes.heartbeat(self._known.node_id, self._known.instance_id, status=word))
        self._held_until = began + _SURE * beaten.lease_seconds

    async def _once(self, call: Call[Any]) -> Any:
        """One try: the next turn is the retry."""
        return await self._client.send(call, patience=0)

    @property
    def _may_give_back(self) -> bool:
        # Not before the control plane knows that this instance takes nothing new: it would have them back at once.
        return self._told_draining.is_set() if self._draining else self._registered

    async def _give_back(self) -> None:
        while not self._may_give_back and not self._living.done():
            await self._turned.wait()
        await asyncio.sleep(_GATHER_S)
        while self._given and self._known is not None:
            batch = [self._given.popleft() for _ in range(min(_BATCH, len(self._given)))]
            try:
                await self._client.send(
                    _node_routes.hand_back(self._known.node_id, self._known.instance_id, batch), patience=None
                )
            except HoldshortError as error:
                log.warning("%d runs are handed back when the lease passes: %s", len(batch), error)
