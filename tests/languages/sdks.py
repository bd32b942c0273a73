"""The three SDKs: how each is built, driven and measured."""

import fcntl
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, Protocol

from tests.languages import toolchains
from tests.languages.toolchains import ROOT

CACHE = ROOT / ".cache" / "languages"
SDK = ROOT / "sdk"
BUILD_SECONDS = 100.0
_WELL = re.compile(r"\s*(✔|--- PASS|=== |holdshort-vectors)|\s*$")
Usable = Callable[[str], "Sdk"]
Missing = Callable[[str], NoReturn]


class Sdk(Protocol):
    """One SDK.

    `name` is its language's, `folder` where it is, `tool` the program that it needs beside Python, `installed` what has
    to be in its folder.
    """

    name: str
    folder: Path
    tool: str | None
    installed: Path | None

    def build(self) -> None:
        """Make what `driver` and `vectors` run; called while nobody else builds it."""

    def driver(self) -> list[str]:
        """The command of its driver."""
        ...

    def vectors(self, session: str) -> list[str]:
        """The command that runs its own tests, or those of them that are about the vectors, in its folder."""
        ...

    def measured(self, data: Path) -> dict[str, str]:
        """The variables that let it write into this folder which lines were run."""
        ...


class Python:
    """The reference, whose driver runs in this very environment."""

    name = "python"
    folder = SDK / "python"
    tool = None
    installed = None

    def build(self) -> None:
        """Nothing is built."""

    def driver(self) -> list[str]:
        return [*self._counted(), str(self.folder / "conformance" / "driver.py")]

    def vectors(self, session: str) -> list[str]:
        tests = sorted(map(str, (self.folder / "tests").glob("test_conformance*.py")))
        return [*self._counted(), "-m", "pytest", *tests, "-q", "-s", "-p", "no:cacheprovider", f"--rootdir={ROOT}"]

    def _counted(self) -> list[str]:
        return [sys.executable, "-m", "coverage", "run"]

    def measured(self, data: Path) -> dict[str, str]:
        settings = data / "settings"
        settings.write_text(f"[run]\nparallel = true\ndata_file = {data}/lines\nsource = {self.folder / 'src'}\n")
        return {"COVERAGE_RCFILE": str(settings)}


class TypeScript:
    """Its tests and its driver are built together."""

    name = "typescript"
    folder = SDK / "typescript"
    tool = "node"
    installed = folder / "node_modules" / "typescript" / "bin" / "tsc"

    def build(self) -> None:
        run(self, ["node", "node_modules/typescript/bin/tsc", "-p", "tsconfig.test.json"])

    def driver(self) -> list[str]:
        return ["node", str(self.folder / ".build" / "conformance" / "driver.js")]

    def vectors(self, session: str) -> list[str]:
        return ["node", "scripts/test.mjs"]

    def measured(self, data: Path) -> dict[str, str]:
        return {"NODE_V8_COVERAGE": str(data)}


class Go:
    """Its driver is built with counters in every package of the module."""

    name = "go"
    folder = SDK / "go"
    tool = "go"
    installed = None
    _binary = CACHE / "go-driver"

    def build(self) -> None:
        run(self, ["go", "build", "-cover", "-coverpkg=./...", "-o", str(self._binary), "./conformance/driver"])

    def driver(self) -> list[str]:
        return [str(self._binary)]

    def vectors(self, session: str) -> list[str]:
        profile = f"-coverprofile={data_of(self, session) / 'tests.lines'}"
        return ["go", "test", "-count=1", "-v", "-coverpkg=./...", profile, "./..."]

    def measured(self, data: Path) -> dict[str, str]:
        return {"GOCOVERDIR": str(data)}


SDKS: dict[str, Sdk] = {sdk.name: sdk for sdk in (Python(), TypeScript(), Go())}


def missing(sdk: Sdk) -> str | None:
    """Why it cannot be run here; None when it can."""
    if sdk.tool is not None and not toolchains.found(sdk.tool):
        version = ".".join(map(str, toolchains.NEEDED[sdk.tool]))
        return f"no {sdk.tool} >= {version} here; `make languages` gets one"
    if sdk.installed is not None and not sdk.installed.exists():
        return "its compiler is not installed here; `make languages` does that"
    return None


def run(sdk: Sdk, command: Sequence[str], *, seconds: float = BUILD_SECONDS, **environ: str) -> str:
    """What a command says in the SDK's folder; AssertionError with all of it when it fails."""
    done = subprocess.run(
        command,
        cwd=sdk.folder,
        env=toolchains.environ() | environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{_without_what_is_well(done.stdout)}"
    return done.stdout


def _without_what_is_well(said: str) -> str:
    """What was said without a line for each test that passed, of which there are hundreds."""
    return "\n".join(line for line in said.splitlines() if not _WELL.match(line))


@contextmanager
def building(sdk: Sdk) -> Iterator[None]:
    """Alone, among all processes of this run and of others."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{sdk.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def data_of(sdk: Sdk, session: str) -> Path:
    """Where the lines that a session ran of it are written."""
    folder = CACHE / session / sdk.name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def environ_of(sdk: Sdk, session: str) -> dict[str, str]:
    """The environment of its driver and of its tests."""
    return toolchains.environ() | sdk.measured(data_of(sdk, session)) | {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
