"""The `holdshort` command as a process of its own, for the tests that start, kill and stop it."""

import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests import preloaded
from tests.plain import PLAIN

PATIENCE_SECONDS = 30.0
# What `serve` must be told where its agents listen on this machine; `dev` calls them without.
LOOPBACK = {"HOLDSHORT_CALLBACK_ALLOW": "127.0.0.1,localhost"}


class Running:
    """One running command; its output is read in the background, so that it never blocks on a full pipe.

    Args:
        arguments: of `holdshort`.
        anew: load its modules as a start from a shell does, where the test is about that; else see `tests.preloaded`.
        environ: what it is told beside PATH.
    """

    def __init__(self, *arguments: str, anew: bool = False, **environ: str) -> None:
        told = {"PATH": os.environ["PATH"], "HOLDSHORT_LOG_FORMAT": "json", **environ}
        self.process = _started_anew(arguments, told) if anew else preloaded.start([*arguments], told)
        self.seen: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def wait_for(self, pattern: str) -> re.Match[str]:
        """The first match in a line not yet read; the output so far in the error when it ends or is late."""
        while True:
            try:
                line = self._lines.get(timeout=PATIENCE_SECONDS)
            except queue.Empty:
                line = None
            if line is None:
                raise AssertionError(f"no {pattern!r} in:\n{''.join(self.seen)}")
            self.seen.append(line)
            found = re.search(pattern, line)
            if found:
                return found

    def printed(self) -> list[str]:
        """Every line so far."""
        while not self._lines.empty():
            line = self._lines.get()
            if line is None:
                self._lines.put(None)
                break
            self.seen.append(line)
        return self.seen

    def wait_until_ready(self) -> str:
        """The URL it listens on, once decisions can be taken there."""
        url = self.wait_for(r"(http://127\.0\.0\.1:\d+)")[1]
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not ready(url):
            assert self.process.poll() is None, "".join(self.seen)
            assert time.monotonic() < deadline, "".join(self.seen)
            time.sleep(0.02)
        return url

    def terminate(self) -> float:
        """Send SIGTERM; the seconds until it was gone."""
        begun = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE_SECONDS)
        return time.monotonic() - begun

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        if isinstance(self.process, preloaded.Process):
            self.process.close()


def _started_anew(arguments: tuple[str, ...], environ: dict[str, str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "controlplane.cli", *arguments],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@contextmanager
def running(*arguments: str, anew: bool = False, **environ: str) -> Iterator[Running]:
    """A command that is ended at the end of the block, if it has not ended before."""
    command = Running(*arguments, anew=anew, **environ)
    try:
        yield command
    finally:
        command.close()


def run(*arguments: str, given: str | None = None, **environ: str) -> "subprocess.CompletedProcess[str]":
    """A command that ends by itself; `given` is what it reads from its standard input."""
    told = {"PATH": os.environ["PATH"], "COLUMNS": "200", **environ}
    return preloaded.run([*arguments], told, given=given, timeout=PATIENCE_SECONDS)


def ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/ready", timeout=5, verify=PLAIN).status_code == 200
    except httpx.TransportError:
        return False


def children_of(pid: int) -> list[int]:
    """The processes that a process started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def gone(pid: int) -> bool:
    """Whether a process has ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


def wait_until_gone(*pids: int) -> None:
    wait_until(lambda: all(gone(pid) for pid in pids))


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "what was waited for has not come to pass"
        time.sleep(0.02)
