"""Senders: made, given a new secret beside the old one, revoked; each change stands in the history with who did it."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct, structs

from controlplane.domain import senders as rules
from controlplane.domain import vault as sealing
from controlplane.domain.errors import FieldFault, SenderExists, SenderNotFound
from controlplane.domain.events import Actor, Fact, FactType
from controlplane.domain.ids import time_ordered
from controlplane.domain.senders import SECRET_PREFIX, Sender, SenderSecret
from controlplane.domain.vault import SecretUnreadable, Vault
from controlplane.storage import clock, history, senders
from controlplane.storage.engine import Connection
from controlplane.storage.senders import Held


class Fresh(Struct, frozen=True):
    """A secret that is not kept yet: its text, 10 random bytes for its id, and 12 that it is sealed with."""

    secret: str
    id_entropy: bytes
    nonce: bytes

    def __repr__(self) -> str:
        """Nothing of it."""
        return "Fresh()"


class Rotated(Struct, frozen=True):
    """The id of the new secret, and of those that end."""

    secret_id: str
    others: tuple[str, ...]


class ListedSecret(Struct, frozen=True, kw_only=True):
    """A sender's secret as an operator sees it: until when it holds, and under which master key it lies."""

    secret_id: str
    created_at: datetime
    valid_until: datetime | None
    holds: bool
    master_key: str | None


class Listed(Sender, frozen=True, kw_only=True):
    """A sender with all its secrets, newest first."""

    secrets: tuple[ListedSecret, ...]


async def listed(conn: Connection) -> list[Listed]:
    """Every sender by name, the revoked ones and the secrets that ended too."""
    now = await clock.now(conn)
    secrets: dict[str, list[ListedSecret]] = {}
    for each in await senders.secrets(conn):
        secrets.setdefault(each.sender, []).append(_shown(each, now))
    return [
        Listed(**structs.asdict(sender), secrets=tuple(secrets.get(sender.name, ())))
        for sender in await senders.listed(conn)
    ]


async def create(conn: Connection, vault: Vault, name: str, fresh: Fresh, actor: Actor) -> str:
    """Make a sender with its first secret, whose id is returned.

    One that was revoked comes back, its former secrets do not.

    Raises:
        FieldFault: the name can be none, or the secret is in use already.
        SenderExists: there is one of this name.
        TooManySecrets: there are as many secrets as a webhook is tried against.
        SecretUnreadable: a secret that is in use was sealed with a master key that this vault has not.
    """
    rules.check_sender(name)
    await senders.take_turn(conn)
    before = await senders.get(conn, name)
    if before is not None and before.revoked_at is None:
        raise SenderExists
    await senders.add(conn, name)
    secret_id = await _add(conn, vault, name, fresh)
    await history.record(conn, _fact(FactType.SENDER_CREATED, name, actor, secret_id=secret_id))
    return secret_id


async def rotate(
    conn: Connection, vault: Vault, name: str, fresh: Fresh, *, others_for: float, actor: Actor
) -> Rotated:
    """Give a sender a new secret; those it has hold on for a while, so that none of its webhooks is refused meanwhile.

    Args:
        conn: the open transaction.
        vault: what seals.
        name: of the sender.
        fresh: the new secret.
        others_for: seconds that the present secrets hold on at most.
        actor: who rotates.

    Raises:
        SenderNotFound: no such sender, or it was revoked.
        FieldFault, TooManySecrets, SecretUnreadable: as `create`.
    """
    await _in_use(conn, name)
    ending = await senders.end_secrets(conn, name, after=others_for)
    secret_id = await _add(conn, vault, name, fresh)
    data = {"secret_id": secret_id, "others": ending, "others_for": others_for}
    await history.record(conn, _fact(FactType.SENDER_ROTATED, name, actor, **data))
    return Rotated(secret_id, tuple(ending))


async def revoke(conn: Connection, name: str, actor: Actor) -> tuple[str, ...]:
    """End a sender with all its secrets, within seconds on every server; the ids of those that held until now.

    Raises:
        SenderNotFound: no such sender.
    """
    await senders.take_turn(conn)
    sender = await senders.get(conn, name)
    if sender is None:
        raise SenderNotFound
    ended = await senders.end_secrets(conn, name)
    await senders.revoke(conn, name)
    if sender.revoked_at is None:
        await history.record(conn, _fact(FactType.SENDER_REVOKED, name, actor, secrets=ended))
    return tuple(ended)


async def revoke_secret(conn: Connection, name: str, secret_id: str, actor: Actor) -> None:
    """End one secret of a sender, within seconds on every server.

    Raises:
        SenderNotFound: no such sender, or it was revoked, or it has no such secret that holds.
    """
    await _in_use(conn, name)
    if not await senders.end_secrets(conn, name, only=secret_id):
        raise SenderNotFound(f"{name} has no such secret that holds; list them with `holdshort senders list`.")
    await history.record(conn, _fact(FactType.SENDER_SECRET_REVOKED, name, actor, secret_id=secret_id))


async def newest_secret(conn: Connection, vault: Vault, name: str) -> str:
    """The secret that a sender signs with now, to sign as it would.

    Raises:
        SenderNotFound: no such sender, or it has no secret that holds.
        SecretUnreadable: its master key is not there.
    """
    held = [each for each in (await senders.standing(conn)).held if each.sender == name]
    if not held:
        raise SenderNotFound
    return _opened(vault, held[0])


async def _in_use(conn: Connection, name: str) -> None:
    await senders.take_turn(conn)
    sender = await senders.get(conn, name)
    if sender is None or sender.revoked_at is not None:
        raise SenderNotFound


async def _add(conn: Connection, vault: Vault, name: str, fresh: Fresh) -> str:
    held = (await senders.standing(conn)).held
    rules.check_room(name, [each.sender for each in held])
    _check_unused(vault, held, fresh)
    secret_id = time_ordered(SECRET_PREFIX, await clock.now(conn), fresh.id_entropy)
    sealed = vault.seal(fresh.secret, sealing.sender_secret(name, secret_id), fresh.nonce)
    await senders.add_secret(conn, name, secret_id, sealed)
    return secret_id


def _check_unused(vault: Vault, held: Sequence[Held], fresh: Fresh) -> None:
    # With a text that two have nobody could say who signed. That all can be opened shows that this is the right vault.
    others = {_opened(vault, each): each.sender for each in held}
    if fresh.secret in others:
        raise FieldFault("secret", f"is a secret of {others[fresh.secret]} already; each is for one sender, and new")


def _opened(vault: Vault, held: Held) -> str:
    try:
        return vault.open(held.sealed, sealing.sender_secret(held.sender, held.secret_id))
    except SecretUnreadable:
        raise SecretUnreadable(
            f"Secret {held.secret_id} of {held.sender} was sealed with a master key that is not known here; "
            "add it to HOLDSHORT_MASTER_KEYS, or revoke that secret."
        ) from None


def _shown(secret: SenderSecret, now: datetime) -> ListedSecret:
    return ListedSecret(
        secret_id=secret.secret_id,
        created_at=secret.created_at,
        valid_until=secret.valid_until,
        holds=secret.valid_until is None or now < secret.valid_until,
        master_key=sealing.sealed_by(secret.sealed),
    )


def _fact(type_: FactType, name: str, actor: Actor, **more: object) -> Fact:
    return Fact(type=type_, actor=actor, data={"sender": name, **more})
