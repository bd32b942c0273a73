"""The server process of one data directory: started, found again after a killed run, stopped. Durability stays on."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from controlplane.cli.postgres.account import Account
from controlplane.cli.postgres.binaries import Binaries
from controlplane.cli.postgres.faults import ClusterFault
from controlplane.cli.postgres.initdb import ENVIRONMENT, OWNER, initialise

PORT = 5432
START_SECONDS = 30.0
FAST_STOP_SECONDS = 4.0
IMMEDIATE_STOP_SECONDS = 2.0
POLL_SECONDS = 0.01
SERVER_SETTINGS = (
    "listen_addresses=",
    f"port={PORT}",
    "unix_socket_permissions=0700",
    "max_connections=200",
    "fsync=on",
    "synchronous_commit=on",
    "full_page_writes=on",
    "log_min_error_statement=panic",
    # Its details are rows that were refused, bodies among them.
    "log_error_verbosity=terse",
)


class Cluster:
    """One PostgreSQL of ours; used by one process at a time, which holds the lock beside the data.

    Args:
        area: the account's private directory; holds the data, the server's log and, path length allowing, the socket.
        sockets: the directory of the socket.
        programs: PostgreSQL's programs.
        account: who runs them.
    """

    def __init__(self, area: Path, sockets: Path, programs: Binaries, account: Account) -> None:
        self.area = area
        self.data = area / "data"
        self.log = area / "server.log"
        self.sockets = sockets
        self.programs = programs
        self._account = account
        self._child: subprocess.Popen[bytes] | None = None

    def url(self, password: str, database: str) -> str:
        """A connection URL over the socket."""
        return f"postgresql://{OWNER}:{password}@/{database}?host={self.sockets}&port={PORT}"

    def start(self, password: str, database: str) -> int:
        """Have the server run on this data: a leftover one is taken over, else one is started; its process id.

        Args:
            password: of the role, for data that is made now.
            database: the database to create with it.

        Raises:
            ClusterFault: PostgreSQL ended, or was not ready within 30 s.
        """
        if not self.data.exists():
            initialise(self.data, self.programs, self._account, password=password, database=database)
        deadline = time.monotonic() + START_SECONDS
        pid = self.running()
        while not self._ready(pid):
            if time.monotonic() > deadline:
                raise ClusterFault(f"PostgreSQL was not ready within {START_SECONDS:.0f} s; see {self.log}")
            pid = self._launch() if pid is None or not self._is_ours(pid) else pid
            time.sleep(POLL_SECONDS)
        return int(pid or 0)

    def running(self) -> int | None:
        """The process id of the server that runs on this data, ready or not, whoever started it."""
        lines = self._status()
        pid = int(lines[0]) if lines and lines[0].isdigit() else None
        return pid if pid is not None and self._is_ours(pid) else None

    def stop(self) -> None:
        """End the server and wait for it: fast, and after 4 s immediately (recovery follows at the next start)."""
        server = self.running()
        for how, patience in ((signal.SIGINT, FAST_STOP_SECONDS), (signal.SIGQUIT, IMMEDIATE_STOP_SECONDS)):
            pid = self.running()
            if pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(pid, how)
            # Its file goes a moment before it does, and of a run that was killed it is nobody's child to wait for.
            if _until(lambda: self._gone() and not (server and _command_line(server)), patience):
                return
        raise ClusterFault(f"PostgreSQL (process {self.running()}) did not stop; see {self.log}")

    def _gone(self) -> bool:
        child_ended = self._child is None or self._child.poll() is not None
        return child_ended and self.running() is None

    def _ready(self, pid: int | None) -> bool:
        lines = self._status()
        return pid is not None and len(lines) > 7 and lines[0] == str(pid) and lines[7].strip() == "ready"

    def _status(self) -> list[str]:
        try:
            return (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _launch(self) -> int:
        self._check_child()
        self._disown_stale_locks()
        options = [part for setting in SERVER_SETTINGS for part in ("-c", setting)]
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                [self.programs.program("postgres"), "-D", str(self.data), "-k", str(self.sockets), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=ENVIRONMENT,
                start_new_session=True,
                user=self._account.uid if self._account.root else None,
                group=self._account.gid if self._account.root else None,
                extra_groups=[] if self._account.root else None,
            )
        return self._child.pid

    def _disown_stale_locks(self) -> None:
        """Let PostgreSQL start over lock files whose process id is another program's by now, or a dead one's.

        The pid file stays, under our own id, which PostgreSQL knows as its parent's: it also names the shared memory by
        which PostgreSQL sees that processes of the killed server still work on the data.
        """
        lines = self._status()
        if lines and self.running() is None:
            (self.data / "postmaster.pid").write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
            (self.sockets / f".s.PGSQL.{PORT}.lock").unlink(missing_ok=True)

    def _check_child(self) -> None:
        """A server that ended by itself is a fault, unless it only met the remains of a killed one, which end soon."""
        if self._child is not None and self._child.poll() is not None:
            last = self.log.read_text(errors="replace").splitlines()[-3:]
            if not any("still in use" in line for line in last):
                raise ClusterFault(f"PostgreSQL did not start: {' '.join(last)[-400:]} (see {self.log})")

    def _is_ours(self, pid: int) -> bool:
        if self._child is not None and self._child.pid == pid:
            return self._child.poll() is None
        return pid != os.getpid() and str(self.data) in _command_line(pid)


def _command_line(pid: int) -> str:
    """What a process was started as; empty when it is gone, or dead and not yet collected by its parent."""
    if Path("/proc/self").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return ""
    query = ["ps", "-ww", "-o", "args=", "-p", str(pid)]
    return subprocess.run(query, capture_output=True, text=True, check=False).stdout


def _until(done: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True
