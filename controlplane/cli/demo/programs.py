"""The demo's programs: started, listened to, killed and started again; each is reached by its own handle only."""

import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import httpx

from controlplane.cli.demo.faults import DemoFault, NotSeen

START_SECONDS = 20.0
SEE_SECONDS = 15.0
STOP_SECONDS = 8.0
READ_SECONDS = 1.0
POLL_SECONDS = 0.02
TAIL_LINES = 12
# Health is asked over plain HTTP alone; reading the certificates of the world takes longer than asking.
_PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Line(NamedTuple):
    """One line that a program wrote, and when (`time.monotonic`)."""

    at: float
    text: str


class Program:
    """One program of the demo; what it writes is kept, so that it can be waited for and shown when something fails.

    Args:
        name: for people.
        arguments: what follows `python`.
        environ: its own variables; no HOLDSHORT_ variable and no proxy is inherited.
        health: the address that answers 200 once it is ready.
    """

    def __init__(self, name: str, arguments: Sequence[str], environ: Mapping[str, str], *, health: str) -> None:
        self.name = name
        self._health = health
        self._command = [sys.executable, *arguments]
        self._environ = {**_inherited(), "PYTHONUNBUFFERED": "1", **environ}
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._lines: list[Line] = []
        self._written = threading.Condition()

    @property
    def pid(self) -> int:
        """Its process id, of the last start."""
        return self._process.pid if self._process else 0

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, in a session of its own: Ctrl-C reaches the demo only, which then stops the programs in order."""
        self._process = subprocess.Popen(
            self._command,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def wait_until_ready(self) -> None:
        """Return once it answers.

        Raises:
            DemoFault: it ended.
            NotSeen: it did not answer within 20 s.
        """
        deadline = time.monotonic() + START_SECONDS
        with httpx.Client(timeout=5, trust_env=False, verify=_PLAIN) as client:
            while not _answers(client, self._health):
                self._check_going_on(deadline, f"{self.name} does not answer at {self._health}")
                time.sleep(POLL_SECONDS)

    def kill(self) -> None:
        """End it as a power cut does: kill -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def wrote(self, pattern: str, since: float) -> Line:
        """Wait for a line that matches, written after a moment (`time.monotonic`).

        Raises:
            DemoFault: the program ended before.
            NotSeen: no such line within 15 s.
        """
        deadline = time.monotonic() + SEE_SECONDS
        while True:
            with self._written:
                found = self.written(pattern, since)
                if found:
                    return found[0]
                self._written.wait(0.2)
            self._check_going_on(deadline, f"{self.name} did not write {pattern!r}")

    def written(self, pattern: str, since: float) -> list[Line]:
        """The lines so far that match, written after a moment (`time.monotonic`) by whichever start of it."""
        with self._written:
            return [line for line in self._lines if line.at >= since and re.search(pattern, line.text)]

    def end(self) -> None:
        """Ask it to end; `wait_until_gone` waits for that."""
        if self._process is not None and self.running:
            self._process.terminate()

    def wait_until_gone(self, seconds: float) -> None:
        """Wait for its end, and kill it when the time is up."""
        if self._process is None or self._reader is None:
            return
        try:
            self._process.wait(max(seconds, 0))
        except subprocess.TimeoutExpired:
            self.kill()
        self._reader.join(READ_SECONDS)

    def tail(self) -> list[str]:
        """The last lines it wrote; all of them are there once it has ended."""
        if self._reader is not None and not self.running:
            self._reader.join(READ_SECONDS)
        with self._written:
            return [line.text for line in self._lines[-TAIL_LINES:]]

    def _check_going_on(self, deadline: float, otherwise: str) -> None:
        if not self.running:
            raise DemoFault(f"{self.name} ended: {' | '.join(self.tail()[-3:]) or 'it wrote nothing'}")
        if time.monotonic() > deadline:
            raise NotSeen(otherwise)

    def _read(self, process: "subprocess.Popen[str]") -> None:
        with process:
            for text in process.stdout or ():
                with self._written:
                    self._lines.append(Line(time.monotonic(), text.rstrip("\n")))
                    self._written.notify_all()


def stop(programs: Sequence[Program]) -> None:
    """End programs at the same time, and kill what is not gone after 8 s."""
    deadline = time.monotonic() + STOP_SECONDS
    for program in programs:
        program.end()
    for program in programs:
        program.wait_until_gone(deadline - time.monotonic())


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _inherited() -> dict[str, str]:
    """The environment without what would send the programs elsewhere than to each other."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HOLDSHORT_") and not name.lower().endswith("_proxy")
    }


def _answers(client: httpx.Client, url: str) -> bool:
    try:
        return client.get(url).status_code == 200
    except httpx.TransportError:
        return False
