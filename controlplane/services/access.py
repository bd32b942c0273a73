"""Access: keys are made, rotated and revoked; a node belongs to the key that named it first."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec import Struct

from controlplane.domain import keys as rules
from controlplane.domain.access import Principal
from controlplane.domain.errors import FieldFault, KeyNotFound, NodeNotFound, NodeOwned
from controlplane.domain.events import Actor, Fact, FactType
from controlplane.domain.keys import Key
from controlplane.storage import clock, history, keys, nodes
from controlplane.storage.engine import Connection


class Wanted(Struct, frozen=True, kw_only=True):
    """A key to be made: its name, its scopes, the node it is bound to, and in how long it ends.

    `allow` is what its node may have called, `dangerous` whether that may be wide, see `domain.keys.check_allow`.
    """

    name: str
    scopes: tuple[str, ...]
    node_id: str | None = None
    expires_in: timedelta | None = None
    allow: tuple[str, ...] = ()
    dangerous: bool = False


async def create(conn: Connection, wanted: Wanted, *, entropy: bytes, actor: Actor) -> tuple[Key, str]:
    """Make a key; the text is shown now and never again.

    Raises:
        FieldFault: the scopes do not go together, or what it may have called is wrong.
    """
    scopes = rules.check_scopes(wanted.scopes, wanted.node_id)
    key_id, text, digest = rules.mint(entropy)
    await keys.lock_first(conn)
    return await _keep(conn, _key(wanted, key_id, scopes, await clock.now(conn)), digest, actor), text


async def adopt(conn: Connection, text: str, wanted: Wanted, actor: Actor) -> Key | None:
    """Keep a key that was made elsewhere, if there is no key at all yet; None where there is one.

    Raises:
        FieldFault: the text is no key.
    """
    presented = rules.read(text)
    if presented is None:
        raise FieldFault("key", "must be a key as `holdshort keys create` prints it")
    if await keys.any_there(conn):
        return None
    # Replicas that start together bring a key each: the first one in has it, and the others see that.
    await keys.lock_first(conn)
    if await keys.any_there(conn):
        return None
    scopes = rules.check_scopes(wanted.scopes, wanted.node_id)
    key = _key(wanted, presented.key_id, scopes, await clock.now(conn))
    return await _keep(conn, key, presented.digest, actor)


async def rotate(conn: Connection, key_id: str, *, entropy: bytes, others_for: float, actor: Actor) -> tuple[Key, str]:
    """Give a key a new secret; the present one holds on for a while, so that nobody is locked out meanwhile.

    Args:
        conn: the open transaction.
        key_id: of the key.
        entropy: 32 random bytes.
        others_for: seconds the present secret holds on.
        actor: who rotates.

    Raises:
        KeyNotFound: no such key, or it was revoked.
    """
    key = await keys.get(conn, key_id)
    if key is None or key.revoked_at is not None:
        raise KeyNotFound
    text, digest = rules.secret_for(key_id, entropy)
    await keys.add_secret(conn, key_id, digest, others_for=others_for)
    await history.record(conn, _fact(FactType.KEY_ROTATED, key, actor, others_for=others_for))
    return key, text


async def revoke(conn: Connection, key_id: str, actor: Actor) -> Key:
    """End a key; on every replica within seconds.

    Raises:
        KeyNotFound: no such key.
    """
    before = await keys.get(conn, key_id)
    after = await keys.revoke(conn, key_id)
    if before is None or after is None:
        raise KeyNotFound
    if before.revoked_at is None:
        await history.record(conn, _fact(FactType.KEY_REVOKED, after, actor, last_used_at=after.last_used_at))
    return after


async def own(conn: Connection, principal: Principal, node_id: str, actor: Actor) -> None:
    """Make sure that a caller may act as a node, which becomes its key's own if it is nobody's.

    Raises:
        NodeOwned: the key is bound to another node, or another key owns this one.
    """
    if principal.key_id is None or node_id in principal.owned:
        return
    if principal.node_id is not None and principal.node_id != node_id:
        raise NodeOwned
    before = await keys.owner_of(conn, node_id)
    if await keys.claim_node(conn, node_id, principal.key_id) != principal.key_id:
        raise NodeOwned
    if before is None:
        data = {"from": None, "to": principal.key_id}
        await history.record(conn, Fact(type=FactType.NODE_OWNED, actor=actor, node_id=node_id, data=data))


async def acts_for(conn: Connection, principal: Principal, node_id: str) -> None:
    """Make sure that a caller acts for a node that is theirs already.

    Raises:
        NodeOwned: it is another key's, or nobody's.
    """
    if principal.key_id is None or node_id in principal.nodes:
        return
    if principal.node_id is not None or await keys.owner_of(conn, node_id) != principal.key_id:
        raise NodeOwned


async def move_node(conn: Connection, node_id: str, key_id: str, actor: Actor) -> None:
    """Give a node to another key: the one before may no longer act for it, and its allowance serves it no more.

    Raises:
        KeyNotFound: no such key, or none that an agent can use for this node now.
        NodeNotFound: nobody has named this node yet, so that it is nobody's.
    """
    key = await keys.get(conn, key_id)
    if key is None or not rules.serves(key, node_id, await clock.now(conn)):
        raise KeyNotFound(f"No key {key_id} is in use that an agent may use for {node_id}; see `holdshort keys list`.")
    before = await keys.owner_of(conn, node_id)
    if before is None and await nodes.get(conn, node_id) is None:
        raise NodeNotFound
    if before == key_id:
        return
    data = {"from": before, "to": key_id}
    await keys.move_node(conn, node_id, key_id)
    await history.record(conn, Fact(type=FactType.NODE_MOVED, actor=actor, node_id=node_id, data=data))


async def _keep(conn: Connection, key: Key, digest: bytes, actor: Actor) -> Key:
    await keys.add(conn, key, digest)
    await history.record(conn, _fact(FactType.KEY_CREATED, key, actor))
    return key


def _key(wanted: Wanted, key_id: str, scopes: Iterable[rules.Scope], at: datetime) -> Key:
    return Key(
        key_id=key_id,
        name=wanted.name,
        scopes=tuple(scopes),
        node_id=wanted.node_id,
        created_at=at,
        allow=rules.check_allow(wanted.allow, wanted.node_id, dangerous=wanted.dangerous),
        expires_at=None if wanted.expires_in is None else at + wanted.expires_in,
    )


def _fact(type_: FactType, key: Key, actor: Actor, **more: object) -> Fact:
    data = {
        "key_id": key.key_id,
        "name": key.name,
        "scopes": list(key.scopes),
        "allow": list(key.allow),
        "expires_at": key.expires_at,
    }
    return Fact(type=type_, actor=actor, node_id=key.node_id, data=data | more)
