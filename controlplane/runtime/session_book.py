"""Sessions in memory: a known one costs no look into the database, and an ended one is known everywhere in seconds."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta

from msgspec import Struct

from controlplane.domain import sessions as rules
from controlplane.domain.access import Principal
from controlplane.domain.keys import Presented
from controlplane.domain.sessions import Session
from controlplane.runtime.holding import End, Holding
from controlplane.runtime.key_book import FRESH_SECONDS, REMEMBERED, KeyBook
from controlplane.runtime.turns import turn
from controlplane.storage.sessions import Found

Find = Callable[[Sequence[bytes], bool], Awaitable[list[Found]]]


class Signed(Struct, frozen=True):
    """Who is signed in: the session, and who its key says they are."""

    session: Session
    principal: Principal

    @property
    def presented(self) -> Presented:
        """The key that the session was opened with."""
        return Presented(self.session.key_id, self.session.key_digest)


class _Entry(Struct):
    """A session as it was read at `at` by this process's steady clock."""

    found: Found | None
    at: float

    def now(self, clock: float) -> datetime:
        """The database's clock, carried on by ours since the session was read."""
        if self.found is None:
            raise RuntimeError("nothing was read")
        return self.found.now + timedelta(seconds=clock - self.at)

    def held(self, clock: float) -> Session | None:
        """The session, if it holds."""
        return self.found if self.found is not None and rules.holds(self.found, self.now(clock)) else None


class SessionBook:
    """Recognises sessions, remembers each for two seconds, and ends what is held open under one that ended.

    Args:
        find: reads sessions from the database; False: they may be invented, so nobody else must wait for that.
        keys: knows how the keys stand that sessions were opened with.
    """

    def __init__(self, find: Find, keys: KeyBook) -> None:
        """Nothing read yet."""
        self._find = find
        self._keys = keys
        self._entries: dict[bytes, _Entry] = {}
        self._invented: dict[bytes, _Entry] = {}
        self._held = Holding[bytes]()
        self._seen: dict[bytes, datetime] = {}
        self._noted: dict[bytes, datetime] = {}
        self._line = asyncio.Semaphore(1)

    async def recognise(self, digest: bytes, *, used: bool, suspect: bool = False) -> Signed | None:
        """Who is signed in with the session of this digest; None when it, or its key, is no good.

        Args:
            digest: of what the cookie holds.
            used: a person did something, so that the session's twelve hours begin anew.
            suspect: it comes from where many wrong keys came from: what this process does not know is then looked up
                one at a time.

        Raises:
            DatabaseUnavailable: those that are looked up one at a time took 15 s before it.
        """
        entry = self._known(digest)
        if entry is None:
            entry = await self._in_turn(digest) if suspect and digest not in self._entries else await self._look(digest)
        session = entry.held(_clock())
        if session is None:
            return None
        signed = await self._signed(session)
        if signed is not None and used:
            self._note(session, entry.now(_clock()))
        return signed

    async def standing(self, signed: Signed) -> Signed | None:
        """Who is signed in, now, with a session that was recognised before; None when it is no good any more."""
        return await self.recognise(signed.session.digest, used=False)

    @contextmanager
    def holding(self, signed: Signed | None, end: End) -> Iterator[None]:
        """While a page is held open: `end` is called when its session, or the key of that, is no good any more.

        Without a session, in open mode, it is called when that ends.
        """
        if signed is None:
            with self._keys.holding(None, end):
                yield
            return
        with self._held.under(signed.session.digest, end), self._keys.holding(signed.presented, end):
            yield

    async def review(self) -> None:
        """Look again at every session that something is held open under, all at once, and end what must end."""
        held = list(self._held)
        if not held:
            return
        read = await self._read(held, known=True)
        for digest in held:
            if read[digest].held(_clock()) is None:
                self._held.end(digest)

    def forget(self, digest: bytes) -> None:
        """A session was ended here: it is no good from now on, and what is held open under it ends."""
        self._remember(digest, _Entry(None, _clock()))
        self._held.end(digest)

    @asynccontextmanager
    async def noting(self) -> AsyncIterator[dict[bytes, datetime]]:
        """The sessions whose last use is worth keeping now; where the block fails they are tried again."""
        due, self._seen = self._seen, {}
        try:
            yield due
        except BaseException:
            self._seen = due | self._seen
            raise
        self._noted = {digest: at for digest, at in (self._noted | due).items() if digest in self._entries}

    async def _signed(self, session: Session) -> Signed | None:
        principal = await self._keys.standing(Presented(session.key_id, session.key_digest))
        return None if principal is None else Signed(session, principal)

    def _note(self, session: Session, now: datetime) -> None:
        noted = self._noted.get(session.digest)
        if rules.is_worth_noting(session, now) and (noted is None or now - noted >= rules.SEEN_EVERY):
            self._seen[session.digest] = now

    def _known(self, digest: bytes) -> _Entry | None:
        known = self._entry(digest)
        return known if known is not None and _clock() - known.at < FRESH_SECONDS else None

    async def _look(self, digest: bytes) -> _Entry:
        return (await self._read([digest], known=digest in self._entries))[digest]

    async def _in_turn(self, digest: bytes) -> _Entry:
        async with turn(self._line):
            return self._known(digest) or await self._look(digest)

    async def _read(self, digests: Sequence[bytes], *, known: bool) -> dict[bytes, _Entry]:
        at = _clock()
        found = {one.digest: one for one in await self._find(digests, known)}
        read = {digest: _Entry(found.get(digest), at) for digest in digests}
        for digest, entry in read.items():
            self._remember(digest, entry)
        return read

    def _remember(self, digest: bytes, entry: _Entry) -> None:
        known = self._entry(digest)
        if known is not None and known.at > entry.at:
            return  # a look that took longer saw less
        self._entries.pop(digest, None)
        self._invented.pop(digest, None)
        # Invented ones never push out those that are there.
        shelf = self._invented if entry.found is None else self._entries
        shelf[digest] = entry
        while len(shelf) > REMEMBERED:
            del shelf[next(iter(shelf))]

    def _entry(self, digest: bytes) -> _Entry | None:
        return self._entries.get(digest) or self._invented.get(digest)


def _clock() -> float:
    return asyncio.get_running_loop().time()
