"""Senders: review services that sign webhooks, each with a name and a few secrets that hold at the same time.

The name stands in the history of what its webhooks decide. A secret is shown once and kept sealed (`vault`), as it is
needed again to check signatures. A sender that was revoked is out by every secret of its name, also those that stand
in the settings.
"""

import base64
import re
from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from controlplane.domain.errors import FieldFault, TooManySecrets
from controlplane.domain.webhook_secrets import MAX_IN_ALL, MAX_OF_A_SENDER, NAME, STRONG_CHARACTERS, WHSEC

SECRET_PREFIX = "whs_"  # noqa: S105 - what the ids of secrets begin with
ENTROPY_BYTES = 32
MAX_CHARACTERS = 256

_NAME = re.compile(NAME)


class Sender(Struct, frozen=True, kw_only=True):
    """A sender as it is kept."""

    name: str
    created_at: datetime
    revoked_at: datetime | None = None


class SenderSecret(Struct, frozen=True, kw_only=True):
    """One of a sender's secrets, sealed; it holds until `valid_until`, or as long as its sender where there is none."""

    secret_id: str
    sender: str
    sealed: str
    created_at: datetime
    valid_until: datetime | None = None


def check_sender(value: str) -> str:
    """A sender's name as it is.

    Raises:
        FieldFault: it can be none.
    """
    if not _NAME.fullmatch(value):
        raise FieldFault("name", "must be a-z 0-9 -, beginning with a letter, at most 32 characters")
    return value


def check_secret(value: str) -> str:
    """A secret that was made elsewhere, without the space around it.

    Raises:
        FieldFault: it is too short to be one, too long, or no single line of text.
    """
    secret = value.strip()
    if not STRONG_CHARACTERS <= len(secret.removeprefix(WHSEC)) <= MAX_CHARACTERS:
        raise FieldFault("secret", f"must have {STRONG_CHARACTERS} to {MAX_CHARACTERS} characters")
    if not secret.isprintable():
        raise FieldFault("secret", "must be one line of text")
    return secret


def mint(entropy: bytes) -> str:
    """A new secret, as Standard Webhooks spells them.

    Args:
        entropy: 32 random bytes.
    """
    return WHSEC + base64.b64encode(entropy[:ENTROPY_BYTES]).decode()


def check_room(sender: str, others: Sequence[str]) -> None:
    """Make sure that one more secret of a sender would be tried.

    Args:
        sender: whose it is.
        others: the sender of each secret that holds beside it.

    Raises:
        TooManySecrets: this sender has, or all have, as many as a webhook is tried against.
    """
    if others.count(sender) >= MAX_OF_A_SENDER:
        raise TooManySecrets(
            f"{sender} has {MAX_OF_A_SENDER} secrets, as many as may hold at once; "
            "end one with `holdshort senders revoke NAME --secret ID`, or rotate with --overlap 0."
        )
    if len(others) >= MAX_IN_ALL:
        raise TooManySecrets
