"""Secrets that are kept in a file of the home: made once, whole or not at all, readable by their owner only."""

import os
import tempfile
from pathlib import Path


def read_secret(file: Path) -> str | None:
    """The secret in a file; None when there is none, or nothing in it: an empty secret would let anybody in."""
    try:
        return file.read_text().strip() or None
    except FileNotFoundError:
        return None


def keep_secret(file: Path, secret: str) -> str:
    """Write a secret so that a crash leaves all of it or nothing; the secret.

    Raises:
        OSError: it cannot be written there.
    """
    descriptor, name = tempfile.mkstemp(prefix=f"{file.name}.", dir=file.parent)
    try:
        with os.fdopen(descriptor, "w") as written:
            written.write(secret)
            written.flush()
            os.fsync(descriptor)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return secret
