"""The secrets that senders sign their webhooks with: as the settings give them, and which of them are tried.

A signature names no sender, so it is tried against every secret: at most five of each sender, and fifty in all, as
many as one signature may cost (see `signatures`). The newest of each sender come first, so that where there are more
than fifty only secrets that a newer one has taken over from are left out.
"""

import re
from collections import Counter
from collections.abc import Sequence

import msgspec

from controlplane.domain.errors import FieldFault

SETTING = "HOLDSHORT_WEBHOOK_SECRETS"
MAX_OF_A_SENDER = 5
MAX_IN_ALL = 50
STRONG_CHARACTERS = 16
WHSEC = "whsec_"

NAME = "[a-z][a-z0-9-]{0,31}"
# A base64 secret may end in "=", so only a colon separates, and only after a plain lower-case name.
_NAMED = re.compile(rf"({NAME}):(.*)", re.DOTALL)


class WebhookSecret(msgspec.Struct, frozen=True):
    """One sender's secret; its repr shows the sender only.

    Attributes:
        sender: the name in the history, "" for a secret without a name.
        secret: the text as configured; `signatures` makes keys of it.
    """

    sender: str
    secret: str

    def __repr__(self) -> str:
        """Without the secret, so that no log or traceback shows it."""
        return f"WebhookSecret(sender={self.sender!r})"


def parse(value: str) -> tuple[WebhookSecret, ...]:
    """The secrets in a comma-separated setting, newest first.

    Args:
        value: entries of the form `secret` or `name:secret`; "" means that none is configured.

    Raises:
        FieldFault: an entry or a secret is empty, or is no Unicode text.
    """
    if value == "":
        return ()
    return tuple(_entry(entry.strip()) for entry in value.split(","))


def tried(secrets: Sequence[WebhookSecret]) -> list[WebhookSecret]:
    """Those that a webhook is tried against, in the order in which that is done.

    Args:
        secrets: of all senders, each sender's newest first; those without a name count as of one sender.
    """
    ranked = _ranked(secrets)
    # Sorting keeps the order among equals: that of the settings, or of their names.
    inside = sorted(((rank, each) for rank, each in ranked if rank < MAX_OF_A_SENDER), key=lambda found: found[0])
    return [each for _, each in inside[:MAX_IN_ALL]]


def weak(secrets: tuple[WebhookSecret, ...]) -> list[str]:
    """The senders whose secret has under 16 characters; "(unnamed)" stands for one without a name."""
    return [each.sender or "(unnamed)" for each in secrets if len(each.secret) < STRONG_CHARACTERS]


def untried(secrets: Sequence[WebhookSecret]) -> list[str]:
    """The senders of the secrets that no webhook is tried against, a name for each such secret."""
    left = list(secrets)
    for each in tried(secrets):
        left.remove(each)
    return [each.sender or "(unnamed)" for each in left]


def _ranked(secrets: Sequence[WebhookSecret]) -> list[tuple[int, WebhookSecret]]:
    """Each secret with how many newer ones its sender has."""
    seen = Counter[str]()
    found = []
    for each in secrets:
        found.append((seen[each.sender], each))
        seen[each.sender] += 1
    return found


def _entry(entry: str) -> WebhookSecret:
    if not entry:
        raise FieldFault(SETTING, "empty entry")
    named = _NAMED.fullmatch(entry)
    sender, secret = (named[1], named[2].strip()) if named else ("", entry)
    if secret in {"", WHSEC}:
        raise FieldFault(SETTING, "empty secret")
    if any("\ud800" <= character <= "\udfff" for character in secret):
        raise FieldFault(SETTING, "a secret is not UTF-8 text")
    return WebhookSecret(sender, secret)
