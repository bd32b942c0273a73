"""Keys in memory: a known key costs no look into the database, and a revoked one is known everywhere in seconds."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

from msgspec import Struct

from controlplane.domain import keys as rules
from controlplane.domain.access import Principal
from controlplane.domain.keys import Presented
from controlplane.runtime.holding import End, Holding
from controlplane.runtime.turns import turn
from controlplane.storage.keys import Found

FRESH_SECONDS = 2.0
# A wrong secret for a key that is known has it read this often at most.
ROTATED_SECONDS = 0.25
REMEMBERED = 10_000
USED_EVERY = timedelta(seconds=30)

Find = Callable[[Sequence[str], bool], Awaitable[list[Found]]]


class _Entry(Struct):
    """A key as it was read at `at` by this process's steady clock, and who calls with it.

    `again`: it was read because a secret did not fit what was known.
    """

    found: Found | None
    at: float
    principal: Principal | None
    again: bool = False

    def now(self, clock: float) -> datetime:
        """The database's clock, carried on by ours since the key was read."""
        if self.found is None:
            raise RuntimeError("nothing was read")
        return self.found.now + timedelta(seconds=clock - self.at)

    def proven(self, presented: Presented, clock: float) -> bool:
        """Whether what was presented is the key's secret, or was and holds on for a while."""
        return self.found is not None and rules.holds(presented, self.found.proofs(self.now(clock)))

    def who(self, presented: Presented, clock: float) -> Principal | None:
        """Who calls with what was presented; None where it proves nothing, or the key is revoked or past its time."""
        if self.found is None or not self.proven(presented, clock) or not rules.usable(self.found, self.now(clock)):
            return None
        return self.principal


class KeyBook:
    """Recognises keys, remembers each for two seconds, and ends what is held open under a key that ended.

    Args:
        find: reads keys from the database; False: they may be invented, so nobody else must wait for that.
    """

    def __init__(self, find: Find) -> None:
        """Nothing read yet."""
        self._find = find
        self._entries: dict[str, _Entry] = {}
        self._held = Holding[Presented | None]()
        self._keyless_ended = False
        self._used: dict[str, datetime] = {}
        self._noted: dict[str, datetime] = {}
        self._invented: dict[str, _Entry] = {}
        self._line = asyncio.Semaphore(1)
        self._reading: dict[str, asyncio.Task[_Entry]] = {}

    async def recognise(self, presented: Presented, *, fresh: bool = False, suspect: bool = False) -> Principal | None:
        """Who calls with this key; None when it is no good.

        Args:
            presented: the key as sent.
            fresh: look it up anew, as what it owns may have grown on another replica.
            suspect: it comes from where many wrong ones came from: where this process has not met the key before, it
                is looked up one at a time, so that a flood of invented ids takes one connection and no more.

        Raises:
            DatabaseUnavailable: those that are looked up one at a time took 15 s before it.
        """
        if suspect and presented.key_id not in self._entries:
            entry = await self._in_line(presented.key_id, fresh=fresh)
        else:
            entry = await self._entry(presented.key_id, fresh=fresh)
        if entry.found is not None and not entry.proven(presented, _clock()):
            # Its new secret may be younger than what was read: whoever rotates restarts the program at once.
            within = ROTATED_SECONDS if entry.again else 0.0
            entry = await self._entry(presented.key_id, fresh=False, within=within, again=True)
        principal = entry.who(presented, _clock())
        if principal is not None:
            self._used[presented.key_id] = entry.now(_clock())
        return principal

    async def standing(self, presented: Presented, *, fresh: bool = False) -> Principal | None:
        """Who calls, now, with a key that was recognised before; None when it or its secret is no good any more.

        Args:
            presented: the key as it was sent then.
            fresh: look it up anew, as what it owns may have grown since.
        """
        return (await self._entry(presented.key_id, fresh=fresh)).who(presented, _clock())

    @contextmanager
    def holding(self, presented: Presented | None, end: End) -> Iterator[None]:
        """While a call is held open under a key: `end` is called when that key, or this secret, is no good any more.

        Without a key, in open mode, it is called when that ends.
        """
        with self._held.under(presented, end):
            if presented is None and self._keyless_ended:
                end()
            yield

    async def review(self) -> None:
        """Look again at every key that something is held open under, all at once, and end what must end."""
        held = [each for each in self._held if each is not None]
        if not held:
            return
        read = await self._read(sorted({each.key_id for each in held}), known=True)
        for presented in held:
            if read[presented.key_id].who(presented, _clock()) is None:
                self._held.end(presented)

    def end_keyless(self) -> None:
        """End what is held open without a key, and from now on whatever would be."""
        self._keyless_ended = True
        self._held.end(None)

    def take_used(self) -> dict[str, datetime]:
        """The keys whose last use is worth keeping now: at most twice a minute each."""
        due = {
            key_id: at
            for key_id, at in self._used.items()
            if key_id not in self._noted or at - self._noted[key_id] >= USED_EVERY
        }
        self._noted |= due
        self._used.clear()
        return due

    async def _entry(self, key_id: str, *, fresh: bool, within: float = FRESH_SECONDS, again: bool = False) -> _Entry:
        known = self._entries.get(key_id) or self._invented.get(key_id)
        if known is not None and not fresh and _clock() - known.at < within:
            return known
        if fresh:
            return (await self._read([key_id], known=True))[key_id]
        reading = self._reading.get(key_id)
        if reading is None:
            # A key that many calls come with is read once for all of them; none of them can cancel it for the others.
            is_known = known is not None and known.found is not None
            reading = asyncio.create_task(self._read_one(key_id, known=is_known, again=again))
            self._reading[key_id] = reading
        return await asyncio.shield(reading)

    async def _read_one(self, key_id: str, *, known: bool, again: bool) -> _Entry:
        try:
            entry = (await self._read([key_id], known=known))[key_id]
            entry.again = again
            return entry
        finally:
            del self._reading[key_id]

    async def _read(self, key_ids: Sequence[str], *, known: bool) -> dict[str, _Entry]:
        at = _clock()
        found = {one.key_id: one for one in await self._find(key_ids, known)}
        read = {key_id: _entry_of(found.get(key_id), at) for key_id in key_ids}
        for key_id, entry in read.items():
            self._remember(key_id, entry)
        return read

    def _remember(self, key_id: str, entry: _Entry) -> None:
        known = self._entries.get(key_id)
        if known is not None and known.at > entry.at:
            return  # a look that took longer saw less
        # Apart, so that invented ids never make a key of ours unknown.
        entries = self._invented if entry.found is None else self._entries
        self._entries.pop(key_id, None)
        if len(entries) >= REMEMBERED:
            del entries[next(iter(entries))]
        entries[key_id] = entry

    async def _in_line(self, key_id: str, *, fresh: bool) -> _Entry:
        async with turn(self._line):
            return await self._entry(key_id, fresh=fresh)


def _entry_of(found: Found | None, at: float) -> _Entry:
    return _Entry(found, at, None if found is None else _principal(found))


def _principal(found: Found) -> Principal:
    owned = frozenset(found.nodes)
    bound = frozenset[str]() if found.node_id is None or found.displaced else frozenset({found.node_id})
    return Principal(
        key_id=found.key_id,
        name=found.name,
        scopes=frozenset(found.scopes),
        node_id=found.node_id,
        owned=owned,
        nodes=bound if found.node_id is not None else owned,
        allowance=() if found.displaced else rules.allowance(found.allow),
    )


def _clock() -> float:
    return asyncio.get_running_loop().time()
