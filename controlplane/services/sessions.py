"""Sessions: a person signs in with a key, and out; what is past its time, or whose key ended, is ended."""

from msgspec import Struct

from controlplane.domain.events import Actor, ActorKind, Fact, FactType
from controlplane.domain.keys import Presented
from controlplane.domain.sessions import Session, Why
from controlplane.storage import history, sessions
from controlplane.storage.engine import Connection

KEEPER = Actor(ActorKind.SYSTEM, "holdshort", "sessions")


class Opening(Struct, frozen=True, kw_only=True):
    """A session to be opened: its digest and id, the key that opens it, and the digest that its browser had before."""

    digest: bytes
    session_id: str
    presented: Presented
    before: bytes | None = None


async def open_session(conn: Connection, opening: Opening, actor: Actor) -> None:
    """Open a session for a key that was recognised, and end the one that its browser held."""
    if opening.before is not None:
        await end(conn, opening.before, Why.REPLACED, actor)
    key = opening.presented
    await sessions.add(
        conn,
        digest=opening.digest,
        session_id=opening.session_id,
        key_id=key.key_id,
        key_digest=key.digest,
    )
    data = {"session_id": opening.session_id, "key_id": key.key_id}
    await history.record(conn, Fact(type=FactType.SESSION_OPENED, actor=actor, data=data))


async def end(conn: Connection, digest: bytes, why: Why, actor: Actor) -> bool:
    """End a session; whether it was open. The first end stands."""
    ended = await sessions.end(conn, digest)
    if ended is not None:
        await history.record(conn, _ended(ended, why, actor))
    return ended is not None


async def sweep(conn: Connection, *, limit: int) -> int:
    """End sessions that are past their time or whose key ended, drop those that ended long ago; how many it ended."""
    over = await sessions.over(conn, limit=limit)
    for each in over:
        await end(conn, each.digest, each.why, KEEPER)
    await sessions.drop_ended(conn)
    return len(over)


def _ended(session: Session, why: Why, actor: Actor) -> Fact:
    data = {
        "session_id": session.session_id,
        "key_id": session.key_id,
        "why": why,
        "opened_at": session.created_at,
        "seen_at": session.seen_at,
    }
    return Fact(type=FactType.SESSION_ENDED, actor=actor, data=data)
