"""Agents of the older SDK as processes that can be killed and started again, at the same port or at another."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.durability.plane import free_port

PROGRAMS = Path(__file__).parent / "programs"
START_SECONDS = 60.0
STOP_SECONDS = 30.0


class Peer:
    """One agent program; `journal` holds what its code wrote down, over all of its processes.

    `addressed` gives it the address to be called at; without, it takes `localhost`, as such an agent does by itself.
    """

    def __init__(self, python: Path, url: str, folder: Path, node_id: str = "peer", *, addressed: bool = True) -> None:
        self.node_id = node_id
        self.port = free_port()
        self._python = python
        self._url = url
        self._journal = folder / f"{node_id}.jsonl"
        self._output = folder / f"{node_id}.log"
        self._environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "AGENTFIELD_DISABLE_IP_DETECTION": "1",
            "AGENTFIELD_SHUTDOWN_TIMEOUT": "2",
            "AGENTFIELD_API_KEY": "a-key-that-nobody-asks-for",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }
        self._addressed = addressed
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, *paused: str, port: int | None = None) -> None:
        """Start a process and wait until it is registered and listens."""
        self.port = port or self.port
        arguments = [PROGRAMS / "peer_agent.py", self._url, str(self.port), self.node_id, self._journal, *paused]
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                [self._python, *arguments],
                env=self._environ | ({"AGENT_CALLBACK_URL": self.base} if self._addressed else {}),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._listens():
            assert self._process.poll() is None, self.output()
            assert time.monotonic() < deadline, self.output()
            time.sleep(0.05)

    def kill(self) -> None:
        """SIGKILL: nothing is said to anybody."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def terminate(self) -> None:
        """SIGTERM; returns at once."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)

    def wait_until_gone(self) -> None:
        assert self._process is not None
        self._process.wait(STOP_SECONDS)

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def journal(self, key: str) -> list[Any]:
        """What was written down under a key, in order."""
        if not self._journal.exists():
            return []
        lines = [json.loads(line) for line in self._journal.read_text(encoding="utf-8").splitlines()]
        return [line[key] for line in lines if key in line]

    def output(self) -> str:
        """What its processes printed."""
        return self._output.read_text(encoding="utf-8", errors="replace")

    def _listens(self) -> bool:
        try:
            return httpx.get(f"{self.base}/health", timeout=5, trust_env=False).status_code == 200
        except httpx.TransportError:
            return False


@contextmanager
def peer(python: Path, url: str, folder: Path) -> Iterator[Peer]:
    """An agent that is started, for the length of a block."""
    made = Peer(python, url, folder)
    try:
        made.start()
        yield made
    finally:
        made.close()
