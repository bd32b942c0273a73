"""Several serving processes on one socket: started, started again when they die, ended together.

uvicorn's own supervisor leaves its workers serving when it is killed itself, waits for ever for one that does not end,
and runs its own server class; so this is ours. A worker ends by itself when its lifeline closes, a pipe that only the
parent holds.
"""

import os
import signal
import socket
import subprocess
import sys
import time

from controlplane import telemetry
from controlplane.cli.serving.server import FailedToStart

STOP_SECONDS = 8.0
LEAST_LIFE_SECONDS = 1.0
POLL_SECONDS = 0.05
EXIT_FAILED_TO_START = 3
WORKER = "controlplane.cli.serving.worker"

_log = telemetry.logger("supervisor")


def supervise(server: socket.socket, workers: int) -> None:
    """Keep `workers` serving processes on a listening socket until SIGTERM or SIGINT; all are gone 8 s later.

    A worker that dies is started again, at most once a second. They read their settings from the environment.

    Raises:
        FailedToStart: one of the first workers could not start.
    """
    supervisor = _Supervisor(server, workers)
    previous = {each: signal.signal(each, supervisor.note_signal) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        supervisor.run()
    finally:
        supervisor.stop()
        for each, handler in previous.items():
            signal.signal(each, handler)


class _Supervisor:
    def __init__(self, server: socket.socket, workers: int) -> None:
        self._server = server
        self._count = workers
        self._ending = False
        self._lifeline, self._held = os.pipe()
        self._workers: list[_Worker] = []

    def note_signal(self, *_: object) -> None:
        self._ending = True

    def run(self) -> None:
        self._workers = [self._worker(first=True) for _ in range(self._count)]
        while not self._ending:
            time.sleep(POLL_SECONDS)
            self._workers = [self._replaced(worker) for worker in self._workers]

    def _replaced(self, worker: "_Worker") -> "_Worker":
        code = worker.process.poll()
        if code is None:
            return worker
        if worker.first and code == EXIT_FAILED_TO_START:
            raise FailedToStart("a worker did not start; the log lines above say why")
        if time.monotonic() - worker.started < LEAST_LIFE_SECONDS:
            return worker
        _log.warning("worker_died", pid=worker.process.pid, exit_code=code)
        return self._worker(first=False)

    def _worker(self, *, first: bool) -> "_Worker":
        return _Worker(self._server, self._lifeline, self._count, first=first)

    def stop(self) -> None:
        self._server.close()
        os.close(self._held)
        os.close(self._lifeline)
        for worker in self._workers:
            worker.process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for worker in self._workers:
            worker.end(deadline)


class _Worker:
    def __init__(self, server: socket.socket, lifeline: int, workers: int, *, first: bool) -> None:
        descriptors = (server.fileno(), lifeline)
        self.first = first
        self.started = time.monotonic()
        arguments = map(str, (*descriptors, workers))
        self.process = subprocess.Popen([sys.executable, "-m", WORKER, *arguments], pass_fds=descriptors)

    def end(self, deadline: float) -> None:
        try:
            self.process.wait(max(deadline - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            _log.error("worker_killed", pid=self.process.pid)
            self.process.kill()
            self.process.wait()
