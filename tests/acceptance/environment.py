"""The environment of the older SDKs: their unmodified packages, apart from ours; built once for a set of pins.

`python -m tests.acceptance.environment` builds it ahead of the tests.
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).parent
PINS = HERE / "requirements.txt"
CACHE = HERE.parents[1] / ".cache"
BUILD_SECONDS = 600


class NotBuilt(Exception):
    """The environment cannot be had here."""


def build(environ: Mapping[str, str] | None = None) -> Path:
    """The environment's Python, after building it where it is missing; other pins' environments are removed.

    Raises:
        NotBuilt: with what the installer said last.
    """
    CACHE.mkdir(exist_ok=True)
    folder = CACHE / f"acceptance-{_key()}"
    python = folder / "bin" / "python"
    with (CACHE / "acceptance.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".built").exists():
            for old in CACHE.glob("acceptance-*"):
                shutil.rmtree(old)
            _uv(environ, "venv", "--python", sys.executable, str(folder))
            _uv(environ, "pip", "install", "--python", str(python), "--requirements", str(PINS))
            (folder / ".built").touch()
    return python


def _key() -> str:
    return hashlib.sha256(PINS.read_bytes() + sys.version.encode()).hexdigest()[:16]


def _uv(environ: Mapping[str, str] | None, *arguments: str) -> None:
    uv = Path(sys.executable).parent / "uv"
    env = None if environ is None else dict(environ)
    try:
        ended = subprocess.run(
            [uv, "--quiet", *arguments], env=env, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotBuilt(str(error)) from error
    if ended.returncode:
        raise NotBuilt(f"uv {arguments[0]}: {ended.stderr.strip()[-500:]}")


if __name__ == "__main__":
    print(build())
