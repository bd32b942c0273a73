"""One server process's real things; the only reader of the clock and of entropy."""

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime

from controlplane.delivery.backend import JudgedBackend
from controlplane.delivery.gate import Gate
from controlplane.delivery.resolver import Resolver
from controlplane.delivery.transport import Transport
from controlplane.domain.access import EVERYTHING, Reach
from controlplane.domain.egress import Endpoint, Policy
from controlplane.domain.events import Actor, ActorKind
from controlplane.domain.ids import time_ordered
from controlplane.domain.sealing import KEY_BYTES, Opener
from controlplane.domain.throttle import Failures
from controlplane.domain.vault import CALLBACK, NONCE_BYTES, Vault, open_with
from controlplane.runtime.askers import Askers
from controlplane.runtime.board import Board
from controlplane.runtime.desk import Desk
from controlplane.runtime.ends import Ends
from controlplane.runtime.happenings import Happenings
from controlplane.runtime.key_book import KeyBook
from controlplane.runtime.pulse import Pulse
from controlplane.runtime.sender_book import SenderBook
from controlplane.runtime.session_book import SessionBook
from controlplane.runtime.turns import turn
from controlplane.runtime.waits import WaitHub
from controlplane.services import access
from controlplane.services import approvals as service
from controlplane.settings import Settings
from controlplane.storage import approvals, keys, senders, sessions
from controlplane.storage.approvals import Shown
from controlplane.storage.engine import Changes, Connection, make_engine, transaction
from controlplane.storage.keys import Found
from controlplane.storage.senders import Standing

KEPT_FOR_DECISIONS = 3
BOOTSTRAP = access.Wanted(name="bootstrap", scopes=("admin",))
SETUP = Actor(ActorKind.SYSTEM, "holdshort", "start")


class Runtime:
    """What the edges work with. Make it inside the event loop that it serves; `close` it there.

    `waits` holds who waits for approvals, `runs` for executions, `answers` for a person's answer to a short-lived
    question, by their ids; `askers` keep those questions standing, `board` shows them. `due` beats when a delivery
    may be due, `work` when a run may be dispatched or released, `news` when history has grown, `wrote` when this
    process made it grow; `happenings` tells what was committed anywhere, `desk` what open pages are told. `failures`
    counts wrong keys and signatures. `egress` judges what callers want to be called; `transport` and `dispatching`
    call it.
    """

    def __init__(self, settings: Settings, own: tuple[Endpoint, ...] = ()) -> None:
        """Open nothing yet: connections are made when they are needed.

        Args:
            settings: what the process was told at its start.
            own: where it listens, which it never calls.

        Raises:
            ValueError: no database is configured.
        """
        if settings.database_url is None:
            raise ValueError("HOLDSHORT_DATABASE_URL is not set")
        self.settings = settings
        self.database_url = settings.database_url
        self.engine = make_engine(settings.database_url, settings.pool_size)
        self._looks = asyncio.Semaphore(max(1, settings.pool_size - KEPT_FOR_DECISIONS))
        policy = Policy(open_mode=settings.open_mode, allow=settings.callback_allow, own=own)
        backend = JudgedBackend(policy, Resolver())
        self.egress = Gate(policy, Resolver())
        self.transport = Transport(backend)
        self.dispatching = Transport(backend, kept_alive=0)
        self.waits = WaitHub(settings.max_waits)
        self.runs = WaitHub(settings.max_waits)
        self.answers = WaitHub(settings.max_waits)
        self.askers = Askers()
        self.board = Board()
        self.ends = Ends(self._final)
        self.keys = KeyBook(self._find_keys)
        self.sessions = SessionBook(self._find_sessions, self.keys)
        self.failures = Failures(settings.processes)
        self._vault = Vault(settings.master_keys) if settings.master_keys else None
        self.senders = SenderBook(self._standing, settings.webhook_secrets, self._vault, self.monotonic)
        self._may_stand_open = settings.open_mode
        self.open = False
        self.due = Pulse()
        self.work = Pulse()
        self.news = Pulse()
        self.wrote = Pulse()
        self.happenings = Happenings()
        self.desk = Desk()
        self.stopping = False

    async def settle_access(self) -> None:
        """Settle whether this process stands open: it was started for that, and no key exists, or ever did.

        From the first key on it never does again, and what was held open without a key is ended. The bootstrap key is
        kept if it is the first of all.
        """
        async with self.transaction() as conn:
            if self.settings.bootstrap_admin_key is not None:
                await access.adopt(conn, self.settings.bootstrap_admin_key, BOOTSTRAP, SETUP)
            self.open = self._may_stand_open = self._may_stand_open and not await keys.any_there(conn)
        if not self.open:
            self.keys.end_keyless()

    def transaction(self, reach: Reach = EVERYTHING) -> AbstractAsyncContextManager[Connection]:
        """A transaction whose changes wake this process's waits, streams and dispatcher once it is committed.

        `reach` is what its caller may see.
        """
        return transaction(self.engine, self._committed, reach)

    @asynccontextmanager
    async def look(self, reach: Reach = EVERYTHING) -> AsyncIterator[Connection]:
        """A transaction for looking: fewer at once than there are connections, so that no decision waits for looks.

        Raises:
            DatabaseUnavailable: as `transaction`, or the looks before it took 15 s.
        """
        async with turn(self._looks), self.transaction(reach) as conn:
            yield conn

    def seal(self, secret: str | None) -> str | None:
        """A callback's secret as it stands in the database: sealed where there is a master key."""
        if secret is None or self._vault is None:
            return secret
        return self._vault.seal(secret, CALLBACK, os.urandom(NONCE_BYTES))

    def unseal(self, sealed: str) -> str:
        """A callback's secret as it was given.

        Raises:
            SecretUnreadable: the master key that sealed it is not configured any more.
        """
        return open_with(self._vault, sealed, CALLBACK)

    def new_opener(self) -> Opener:
        """A key pair for one question, which nothing outside of this process's memory holds."""
        return Opener(os.urandom(KEY_BYTES))

    def new_id(self, prefix: str) -> str:
        """A fresh time-ordered id."""
        return time_ordered(prefix, self.now(), os.urandom(10))

    def entropy(self, count: int) -> bytes:
        """Random bytes that nobody can guess."""
        return os.urandom(count)

    def now(self) -> datetime:
        """This process's clock: for ids and for the freshness of signatures, never for deadlines."""
        return datetime.now(UTC)

    def unix(self) -> int:
        """This process's clock in whole seconds."""
        return int(time.time())

    def monotonic(self) -> float:
        """Seconds that only grow: for pauses of this process."""
        return time.monotonic()

    def jitter(self) -> float:
        """A number in 0..1 that spreads retries."""
        return random.random()  # noqa: S311 - spreads load, keeps no secret

    def stop(self) -> None:
        """Answer everyone who waits and let nobody wait any more."""
        self.stopping = True
        self.waits.close()
        self.runs.close()
        self.answers.close()
        self.board.close()
        self.news.beat()
        self.desk.wake()

    async def close(self) -> None:
        """Let go of every connection."""
        self.stop()
        self.senders.close()
        await self.transport.close()
        await self.dispatching.close()
        await self.engine.dispose()

    async def _find_keys(self, key_ids: Sequence[str], known: bool) -> list[Found]:
        # A key that is known decides and works, and waits for no look; an invented one waits in their line.
        async with self.transaction() if known else self.look() as conn:
            return await keys.find(conn, key_ids)

    async def _find_sessions(self, digests: Sequence[bytes], known: bool) -> list[sessions.Found]:
        async with self.transaction() if known else self.look() as conn:
            return await sessions.find(conn, digests)

    async def _standing(self) -> Standing:
        # Not a look: a webhook decides, so it does not queue behind those who look.
        async with self.transaction() as conn:
            return await senders.standing(conn)

    async def _final(self, approval_ids: list[str], read: Callable[[Shown], bool]) -> list[Shown]:
        async with self.look() as conn:
            ended = await approvals.final_among(conn, approval_ids)
            await service.note_read(conn, [shown for shown in ended if read(shown)])
        return ended

    def _committed(self, changes: Changes) -> None:
        self.waits.settle(changes.settled)
        self.runs.settle(changes.ended)
        self.answers.settle(changes.closed)
        if changes.work:
            self.work.beat()
        if changes.due:
            self.due.beat()
        if changes.wrote:
            self.news.beat()
            self.wrote.beat()
