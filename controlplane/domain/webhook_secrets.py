"""The secrets that senders sign their webhooks with, as the operator sets them."""

import re

import msgspec

from controlplane.domain.errors import FieldFault

SETTING = "HOLDSHORT_WEBHOOK_SECRETS"
MAX_TRIED = 5
STRONG_CHARACTERS = 16
WHSEC = "whsec_"

# A base64 secret may end in "=", so only a colon separates, and only after a plain lower-case name.
_NAMED = re.compile(r"([a-z][a-z0-9-]{0,31}):(.*)", re.DOTALL)


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


def weak(secrets: tuple[WebhookSecret, ...]) -> list[str]:
    """The senders whose secret has under 16 characters; "(unnamed)" stands for one without a name."""
    return [each.sender or "(unnamed)" for each in secrets if len(each.secret) < STRONG_CHARACTERS]


def untried(secrets: tuple[WebhookSecret, ...]) -> list[str]:
    """The senders whose secret stands after the first five, which are all that a webhook is tried against."""
    return [each.sender or "(unnamed)" for each in secrets[MAX_TRIED:]]


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
