"""Commands as processes of their own, forked from one that has loaded them: loading takes most of a short one's time.

What a forked command does is what a started one does, except that its modules are there already and that its line in
the table of processes is that of `python -m tests.preloaded`. Tests of that pass `anew=True` where they start one.
"""

import atexit
import contextlib
import importlib
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from functools import cache
from typing import IO, Any

_LONGEST = 1024 * 1024
_STREAMS = 3
_SERVING = ("controlplane.cli.serving.application", "uvloop", "uvicorn.lifespan.on", "uvicorn.loops.uvloop")


class Process:
    """What tests use of `subprocess.Popen`, for a process that somebody else is the parent of.

    Args:
        status: where its parent says its id, and then how it ended.
        stdout: the pipe that its output comes by.
    """

    def __init__(self, status: socket.socket, stdout: IO[str]) -> None:
        self._status = status
        self._told = threading.Lock()
        self.stdout = stdout
        self.returncode: int | None = None
        self.pid = self._said()

    def _said(self) -> int:
        said = self._status.recv(32)
        if not said:
            raise ChildProcessError("the process that starts commands is gone")
        return int(said)

    def poll(self) -> int | None:
        """How it ended; None while it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """How it ended, once it has; raises TimeoutExpired after so many seconds."""
        if self.returncode is None and not _readable(self._status, timeout):
            raise subprocess.TimeoutExpired("holdshort", timeout or 0)
        with self._told:
            if self.returncode is None:
                self.returncode = self._said()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Let go of what is held of it, once it has ended."""
        self._status.close()
        self.stdout.close()


def _readable(status: socket.socket, seconds: float | None) -> bool:
    poll = select.poll()
    poll.register(status, select.POLLIN)
    return bool(poll.poll(None if seconds is None else seconds * 1000))


def start(arguments: list[str], environ: dict[str, str]) -> Process:
    """Start `holdshort` with these arguments, in a session of its own; its errors go where its output does."""
    reads, writes = os.pipe()
    try:
        status = _fork(arguments, environ, [_nothing(), writes, writes], session=True)
    finally:
        os.close(writes)
    return Process(status, os.fdopen(reads, encoding="utf-8", errors="replace"))


def run(
    arguments: list[str], environ: dict[str, str], *, given: str | None, timeout: float
) -> "subprocess.CompletedProcess[str]":
    """Run `holdshort` to its end, as `subprocess.run` does; `given` is what it reads."""
    pipes = [os.pipe() for _ in range(_STREAMS)]
    (reads_in, writes_in), *outs = pipes
    theirs = [reads_in, *(writes for _, writes in outs)]
    try:
        status = _fork(arguments, environ, theirs, session=False)
    finally:
        for descriptor in theirs:
            os.close(descriptor)
    said: list[str] = ["", ""]
    threads = [threading.Thread(target=_read, args=(reads, said, n)) for n, (reads, _) in enumerate(outs)]
    for thread in threads:
        thread.start()
    with os.fdopen(writes_in, "w", encoding="utf-8") as stdin:
        try:
            stdin.write(given or "")
            stdin.flush()
        except BrokenPipeError:
            pass
    with open(os.devnull) as nothing:  # noqa: PTH123  # its output is read elsewhere
        process = Process(status, nothing)
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        finally:
            for thread in threads:
                thread.join()
            process.close()
    return subprocess.CompletedProcess(arguments, process.returncode or 0, *said)


def _read(descriptor: int, into: list[str], place: int) -> None:
    with os.fdopen(descriptor, encoding="utf-8", errors="replace") as stream:
        into[place] = stream.read()


@cache
def _nothing() -> int:
    return os.open(os.devnull, os.O_RDONLY)


def _fork(arguments: list[str], environ: dict[str, str], streams: list[int], *, session: bool) -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        wanted = json.dumps({"arguments": arguments, "environ": environ, "session": session}).encode()
        socket.send_fds(_loaded(os.getpid()), [wanted], [*streams, theirs.fileno()])
    return ours


_starting = threading.Lock()


def _loaded(pid: int) -> socket.socket:
    with _starting:
        return _load(pid)


@cache
def _load(_: int) -> socket.socket:
    """The connection to this process's own loaded one, which ends when it is closed."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.preloaded", str(theirs.fileno())],
            env={"PATH": os.environ["PATH"]},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )

    @atexit.register
    def end() -> None:
        ours.close()
        process.wait()

    return ours


class _Parent:
    """Forks a command for each request that comes, and tells how it ended."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._children: dict[int, socket.socket] = {}
        self._woken, self._wakes = socket.socketpair()
        self._wakes.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wakes.fileno(), warn_on_full_buffer=False)

    def until_asked(self) -> dict[str, Any] | None:
        """Serve until nobody can ask any more; in a forked process, what it is to do."""
        while True:
            ready, _, _ = select.select([self._requests, self._woken], [], [])
            if self._woken in ready:
                self._woken.recv(4096)
                self._bury()
            if self._requests in ready:
                message, descriptors, _, _ = socket.recv_fds(self._requests, _LONGEST, _STREAMS + 1)
                if not message:
                    return None
                wanted = json.loads(message)
                if self._fork(wanted, descriptors):
                    return dict(wanted)

    def _fork(self, wanted: dict[str, Any], descriptors: list[int]) -> bool:
        *streams, told = descriptors
        status = socket.socket(fileno=told)
        pid = os.fork()
        if pid:
            self._children[pid] = status
            status.send(str(pid).encode())
            for descriptor in streams:
                os.close(descriptor)
            return False
        if wanted["session"]:
            os.setsid()
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for each in (*self._children.values(), status, self._requests, self._woken, self._wakes):
            each.close()
        for descriptor in streams:
            os.close(descriptor)
        return True

    def _bury(self) -> None:
        while self._children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            told = self._children.pop(pid)
            with contextlib.suppress(OSError):
                told.send(str(os.waitstatus_to_exitcode(status)).encode())
            told.close()


def _serve(descriptor: int) -> None:
    from controlplane.cli.main import COMMANDS, holdshort

    for module in (*(f"controlplane.cli.{name}" for name in COMMANDS), *_SERVING):
        importlib.import_module(module)
    wanted = _Parent(socket.socket(fileno=descriptor)).until_asked()
    if wanted is None:
        return
    os.environ.clear()
    os.environ.update(wanted["environ"])
    random.seed()
    sys.argv = ["holdshort", *wanted["arguments"]]
    try:
        holdshort(prog_name="holdshort")
    except Exception:
        traceback.print_exc()
        sys.exit(1)


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
