"""What the browser tests take from the machine: a Chromium and the checker of accessibility."""

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

WHOLE = ("chromium", "chromium-browser", "google-chrome")
# The same engine without windows and profiles: it takes a third of the time.
LIGHT = ("chromium-headless-shell",)
AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"


def chromium(*, whole: bool = False) -> str:
    """The path of a Chromium; without one the test is skipped, and fails in CI.

    Args:
        whole: one that keeps a profile as people have it.
    """
    for name in WHOLE if whole else LIGHT + WHOLE:
        found = shutil.which(name)
        if found:
            return found
    return _missing("no chromium is on PATH (Debian: apt-get install chromium)")


def axe() -> str:
    """The source of the checker; without it the test is skipped, and fails in CI."""
    if not AXE.exists():
        _missing("axe-core is not installed (npm ci in tests/browser)")
    return AXE.read_text(encoding="utf-8")


def arguments() -> list[str]:
    """How it is started: a sandbox cannot be had as root, and a container's /dev/shm may be small."""
    return ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]


def _missing(what: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)
