"""Webhook senders for tests: made by the service, as the shell would, with a secret that the test knows."""

import json
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from controlplane.domain.events import Actor, ActorKind
from controlplane.domain.senders import ENTROPY_BYTES, mint
from controlplane.domain.vault import NONCE_BYTES, Vault, parse_master_keys
from controlplane.services import senders as service
from controlplane.services.senders import Fresh, Rotated
from controlplane.storage.engine import Connection
from tests.app import MASTER_KEY

OPERATOR = Actor(ActorKind.PERSON, "operator", "cli")
NEW_MASTER_KEY = "YW5vdGhlci1tYXN0ZXIta2V5LW9mLXRlc3RzLW9ubHk="
VAULT = Vault(parse_master_keys(MASTER_KEY))
NEW_VAULT = Vault(parse_master_keys(f"{NEW_MASTER_KEY},{MASTER_KEY}"))
NEW_VAULT_ALONE = Vault(parse_master_keys(NEW_MASTER_KEY))

Open = Callable[[], AbstractAsyncContextManager[Connection]]


def fresh(secret: str | None = None) -> Fresh:
    """A secret that is new, or is this text."""
    return Fresh(secret or mint(os.urandom(ENTROPY_BYTES)), os.urandom(10), os.urandom(NONCE_BYTES))


class Senders:
    """The service, each call in a transaction of its own.

    Args:
        open_: opens one.
        vault: what seals.
    """

    def __init__(self, open_: Open, vault: Vault = VAULT) -> None:
        self._open = open_
        self.vault = vault

    async def create(self, name: str, secret: str | None = None) -> str:
        """Make a sender; its secret."""
        made = fresh(secret)
        async with self._open() as conn:
            await service.create(conn, self.vault, name, made, OPERATOR)
        return made.secret

    async def rotate(self, name: str, secret: str | None = None, *, overlap: float = 3600.0) -> tuple[str, Rotated]:
        """Give a sender another secret; it, and what became of the others."""
        made = fresh(secret)
        async with self._open() as conn:
            return made.secret, await service.rotate(conn, self.vault, name, made, others_for=overlap, actor=OPERATOR)

    async def revoke(self, name: str) -> tuple[str, ...]:
        async with self._open() as conn:
            return await service.revoke(conn, name, OPERATOR)

    async def revoke_secret(self, name: str, secret_id: str) -> None:
        async with self._open() as conn:
            await service.revoke_secret(conn, name, secret_id, OPERATOR)

    async def newest(self, name: str) -> str:
        async with self._open() as conn:
            return await service.newest_secret(conn, self.vault, name)

    async def holding(self, name: str) -> list[str]:
        """The ids of a sender's secrets that hold, newest first."""
        async with self._open() as conn:
            found = await service.listed(conn)
        return [each.secret_id for sender in found if sender.name == name for each in sender.secrets if each.holds]


async def told(rows: Any) -> list[tuple[str, str, str, dict[str, Any]]]:
    """What history has of senders: type, actor, way, data."""
    found = await rows.fetch(
        "SELECT type, actor_name, actor_via, data FROM history WHERE type ~ '^(sender|secrets)[.]' ORDER BY seq"
    )
    return [(row["type"], row["actor_name"], row["actor_via"], json.loads(row["data"])) for row in found]
