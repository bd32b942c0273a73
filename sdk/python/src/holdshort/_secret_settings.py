"""The setting that holds the secrets of webhook senders, as the control plane reads it."""

import re

import msgspec

# A base64 secret may end in "=", so only a colon separates, and only behind a plain lower-case name.
_NAMED = re.compile(r"([a-z][a-z0-9-]{0,31}):(.*)", re.DOTALL)


class SenderSecret(msgspec.Struct, frozen=True):
    """One secret of a webhook's sender; its repr shows the sender only.

    Args:
        sender: its name, "" for a secret without one.
        secret: for `sign` and `verify`.
    """

    sender: str
    secret: str

    def __repr__(self) -> str:
        """Without the secret, so that no log and no traceback shows it."""
        return f"SenderSecret(sender={self.sender!r})"


def parse_secrets(setting: str) -> list[SenderSecret]:
    """The secrets in a setting such as HOLDSHORT_WEBHOOK_SECRETS, in its order, which is newest first.

    Args:
        setting: entries `secret` or `name:secret` between commas; "" means none.

    Raises:
        ValueError: "empty entry", "empty secret" or "a secret is not UTF-8 text"; nothing of the setting is shown.
    """
    return [_entry(entry.strip()) for entry in setting.split(",")] if setting else []


def _entry(entry: str) -> SenderSecret:
    if not entry:
        raise ValueError("empty entry")
    named = _NAMED.fullmatch(entry)
    sender, secret = (named[1], named[2].strip()) if named else ("", entry)
    if secret in {"", "whsec_"}:
        raise ValueError("empty secret")
    if any("\ud800" <= character <= "\udfff" for character in secret):
        raise ValueError("a secret is not UTF-8 text")
    return SenderSecret(sender, secret)
