"""Senders in memory: a webhook costs no look into the database, and a revoked secret is out everywhere in seconds.

What was read is used for two seconds. Then the next webhook has it read anew, once for all that come meanwhile; where
the database does not answer, what is known holds on until it is four seconds old, and then no signature is judged.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from controlplane import telemetry
from controlplane.domain import vault as sealing
from controlplane.domain.errors import DatabaseUnavailable
from controlplane.domain.vault import SecretUnreadable, Vault
from controlplane.domain.webhook_secrets import WebhookSecret, untried
from controlplane.storage.senders import Held, Standing

FRESH_SECONDS = 2.0
STALE_SECONDS = 4.0

_Kept = tuple[str, str, str]

_log = telemetry.logger("senders")


class Known(Struct, frozen=True):
    """What signatures are judged by: the secrets that hold, and whether there are more that cannot be read here."""

    secrets: tuple[WebhookSecret, ...]
    unreadable: bool = False


class _Entry(Struct, frozen=True):
    """What was read, asked for at `at` by the steady clock; `until` is when the first of its secrets ends."""

    at: float
    until: float
    known: Known


class _Noted(Struct, frozen=True):
    """What an operator was told: the ids of secrets that cannot be read, the senders of those that are never tried."""

    unreadable: list[str]
    left_out: list[str]


class SenderBook:
    """The secrets of all senders, those of the settings and those in the database.

    Args:
        read: reads what stands in the database.
        configured: the secrets of the settings, newest first.
        vault: what opens those of the database; None: nothing can be opened.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        read: Callable[[], Awaitable[Standing]],
        configured: Sequence[WebhookSecret],
        vault: Vault | None,
        clock: Callable[[], float],
    ) -> None:
        """Nothing read yet."""
        self._read = read
        self._configured = tuple(configured)
        self._vault = vault
        self._clock = clock
        self._entry: _Entry | None = None
        self._reading: asyncio.Task[_Entry] | None = None
        self._opened: dict[_Kept, WebhookSecret | None] = {}
        self._said = _Noted([], untried(self._configured))

    async def known(self) -> Known:
        """What signatures are judged by now, each sender's newest secret first.

        Raises:
            DatabaseUnavailable: it cannot be read, and what was read last is more than four seconds old.
        """
        entry = self._entry
        if entry is None or not self._good(entry, FRESH_SECONDS):
            entry = await self._renewed()
        return entry.known

    def close(self) -> None:
        """Let go of a look that is under way."""
        if self._reading is not None:
            self._reading.cancel()

    async def _renewed(self) -> _Entry:
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._renew())
            # Whoever waits is told; where nobody does any more, the fault is nobody's.
            self._reading.add_done_callback(lambda task: task.cancelled() or task.exception())
        try:
            # A caller that goes away must not take the others' look along.
            entry = await asyncio.shield(self._reading)
        except DatabaseUnavailable:
            if self._entry is None or not self._good(self._entry, STALE_SECONDS):
                raise
            return self._entry
        if self._clock() - entry.at >= STALE_SECONDS:
            raise DatabaseUnavailable  # it took so long to answer that what it said may hold no more
        return entry

    async def _renew(self) -> _Entry:
        at = self._clock()
        standing = await self._read()
        before = self._opened
        kept = [(each.sender, each.secret_id, each.sealed) for each in standing.held]
        self._opened = {each: before[each] if each in before else self._open(*each) for each in kept}
        self._entry = _Entry(at, at + _first_end(standing.held), self._merged(standing))
        return self._entry

    def _good(self, entry: _Entry, seconds: float) -> bool:
        return self._clock() < min(entry.at + seconds, entry.until)

    def _merged(self, standing: Standing) -> Known:
        """Those of the database are the newer ones, and a sender that was revoked there is out altogether."""
        kept = [secret for secret in self._opened.values() if secret is not None]
        given = [secret for secret in self._configured if secret.sender not in standing.revoked]
        unreadable = [secret_id for (_, secret_id, _), secret in self._opened.items() if secret is None]
        secrets = (*kept, *given)
        self._say(_Noted(unreadable, untried(secrets)))
        return Known(secrets, bool(unreadable))

    def _open(self, sender: str, secret_id: str, sealed: str) -> WebhookSecret | None:
        try:
            return WebhookSecret(
                sender, sealing.open_with(self._vault, sealed, sealing.sender_secret(sender, secret_id))
            )
        except SecretUnreadable:
            return None

    def _say(self, noted: _Noted) -> None:
        """Tell an operator, once for each change."""
        if noted == self._said:
            return
        self._said = noted
        if noted.unreadable:
            remedy = "add their master key to HOLDSHORT_MASTER_KEYS"
            _log.error("senders_unreadable", ids=noted.unreadable, remedy=remedy)
        for sender in noted.left_out:
            _log.warning("webhook_secret_is_never_tried", sender=sender)


def _first_end(held: Sequence[Held]) -> float:
    ends = [each.seconds_left for each in held if each.seconds_left is not None]
    return min(ends, default=float("inf"))
