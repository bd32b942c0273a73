"""Writing a head of the audit trail where it shall stay: appended to a file, or posted to a URL."""

import asyncio
import os
from pathlib import Path

from controlplane.delivery.transport import Transport


async def write(target: str, line: bytes, transport: Transport) -> str | None:
    """Write one line of JSON; None when it is kept, else why it is not.

    Args:
        target: the absolute path of a file, or an http(s) URL that answers 2xx once it has the line.
        line: with its line feed.
        transport: the way out, with the rule for what may be called.
    """
    if is_file(target):
        return await asyncio.to_thread(_append, Path(target), line)
    tried = await transport.post(target, line, {})
    if tried.status is None:
        return tried.error
    return None if 200 <= tried.status < 300 else f"the receiver answered {tried.status}"


def is_file(target: str) -> bool:
    """Whether heads go to a file."""
    return target.startswith("/")


def _append(path: Path, line: bytes) -> str | None:
    """Append one line and wait until it is on the disk, as its directory entry is."""
    try:
        new = not path.exists()
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # A crash may have left a part of a line: it must not swallow this one.
            size = os.fstat(file).st_size
            torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"
            whole = b"\n" + line if torn else line
            if os.write(file, whole) != len(whole):
                return f"only a part was written: {path}"
            os.fsync(file)
        finally:
            os.close(file)
        if new:
            _sync(path.parent)
    except OSError as fault:
        return f"{fault.strerror}: {path}"
    return None


def _sync(directory: Path) -> None:
    file = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
