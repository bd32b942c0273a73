"""Every kept secret under the newest master key, page by page, so that the older ones can be taken away."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from controlplane.domain import vault as sealing
from controlplane.domain.events import Actor, Fact, FactType
from controlplane.domain.vault import SecretUnreadable, Vault
from controlplane.storage import history, resealing
from controlplane.storage.engine import Connection
from controlplane.storage.resealing import Page, Place, Sealed

ROWS_A_PAGE = 1000


class Turned(Struct, frozen=True):
    """What became of a page: secrets sealed anew, how many another transaction had, and the ids that no key opens."""

    page: Page
    resealed: int
    busy: int
    unreadable: tuple[str, ...]


class Counted(Struct, frozen=True):
    """Under which master keys the secrets of a page lie; None: under none."""

    page: Page
    by_master_key: Sequence[tuple[str | None, int]]


async def turn(
    conn: Connection, vault: Vault, place: Place, after: str, *, nonce: Callable[[], bytes], actor: Actor
) -> Turned | None:
    """Seal the next page's secrets anew where an older key, or none, sealed them; None when there is no page left.

    Args:
        conn: the open transaction.
        vault: what opens and seals.
        place: which table.
        after: the key of the row that the page stands behind; "" begins.
        nonce: makes 12 random bytes for each.
        actor: who does it.
    """
    page = await resealing.page(conn, place, after, ROWS_A_PAGE)
    if page is None:
        return None
    outdated = await resealing.outdated(conn, page, vault.mark)
    if not outdated:
        return Turned(page, 0, 0, ())
    taken = await resealing.take(conn, page, vault.mark)
    anew = {each.id: _anew(vault, each, nonce) for each in taken}
    texts = {id_: text for id_, text in anew.items() if text is not None}
    if texts:
        await resealing.replace(conn, place, texts)
        data = {"place": place, "secrets": len(texts), "master_key": sealing.sealed_by(vault.mark)}
        await history.record(conn, Fact(type=FactType.SECRETS_RESEALED, actor=actor, data=data))
    unreadable = tuple(id_ for id_, text in anew.items() if text is None)
    return Turned(page, len(texts), max(0, outdated - len(taken)), unreadable)


async def count(conn: Connection, place: Place, after: str) -> Counted | None:
    """Under which master keys the next page's secrets lie; None when there is no page left."""
    page = await resealing.page(conn, place, after, ROWS_A_PAGE)
    return None if page is None else Counted(page, await resealing.by_master_key(conn, page))


def _anew(vault: Vault, each: Sealed, nonce: Callable[[], bytes]) -> str | None:
    owner = sealing.CALLBACK if each.sender is None else sealing.sender_secret(each.sender, each.id)
    try:
        return vault.seal(vault.open(each.text, owner), owner, nonce())
    except SecretUnreadable:
        return None
