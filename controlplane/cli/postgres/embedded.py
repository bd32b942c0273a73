"""The embedded PostgreSQL as a whole: its place, its lock, its password; kept in a home, or thrown away at the end."""

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from controlplane.cli.kept import keep_secret, read_secret
from controlplane.cli.postgres.account import Account
from controlplane.cli.postgres.binaries import Binaries
from controlplane.cli.postgres.cluster import PORT, Cluster
from controlplane.cli.postgres.faults import ClusterFault, EmbeddedBusy

DATABASE = "holdshort"
LONGEST_SOCKET_PATH = 100
EPHEMERAL = "holdshort-postgres-"

Entropy = Callable[[int], bytes]


class Embedded(NamedTuple):
    """A running PostgreSQL: its address, its programs (`psql`, `pg_dump`) and where its files are."""

    cluster: Cluster
    password: str
    pid: int

    @property
    def url(self) -> str:
        """The connection URL of the database made for Holdshort."""
        return self.url_of(DATABASE)

    def url_of(self, database: str) -> str:
        """The connection URL of any database of this server."""
        return self.cluster.url(self.password, database)


@contextmanager
def run_embedded(home: Path, *, entropy: Entropy) -> Iterator[Embedded]:
    """PostgreSQL on the data kept in a home directory; made at the first use, stopped at the end of the block.

    A server that a killed run left behind is taken over, never doubled.

    Args:
        home: an absolute directory, made if it is missing; nothing that exists changes its mode.
        entropy: random bytes for the password of new data.

    Raises:
        EmbeddedBusy: another command uses this data now.
        ClusterFault: PostgreSQL is missing, cannot reach its files or does not start.
    """
    programs = Binaries.locate()
    _make_directory(home)
    with _locked(home / "postgres.lock"):
        cluster = _cluster(home, programs)
        password = _password(home / "postgres.password", cluster, entropy)
        try:
            yield Embedded(cluster, password, cluster.start(password, DATABASE))
        finally:
            cluster.stop()
            if cluster.sockets != cluster.area:
                shutil.rmtree(cluster.sockets, ignore_errors=True)


@contextmanager
def run_ephemeral(*, entropy: Entropy) -> Iterator[Embedded]:
    """PostgreSQL on data of its own, which is deleted at the end; what killed runs left behind goes first.

    Raises:
        ClusterFault: as `run_embedded`.
    """
    parent = _temporary_directory()
    _sweep(parent)
    home = Path(tempfile.mkdtemp(prefix=EPHEMERAL, dir=parent))
    home.chmod(0o711)
    try:
        with run_embedded(home, entropy=entropy) as embedded:
            yield embedded
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _cluster(home: Path, programs: Binaries) -> Cluster:
    area = home / "postgres"
    account = Account.of_this_process(area)
    if not account.can_enter(home):
        raise ClusterFault(
            f"PostgreSQL does not run as root, and no other user may enter {home}; set HOLDSHORT_HOME to a directory "
            "that others may pass through, such as /var/lib/holdshort"
        )
    if not area.exists():
        area.mkdir(mode=0o700)
        account.give(area)
    return Cluster(area, _sockets(area, account), programs.reachable(account, home), account)


def _sockets(area: Path, account: Account) -> Path:
    if len(str(area / f".s.PGSQL.{PORT}.lock")) < LONGEST_SOCKET_PATH:
        return area
    short = Path("/tmp") / f"holdshort-{hashlib.sha256(str(area).encode()).hexdigest()[:16]}"  # noqa: S108 - checked below
    if not short.exists():
        short.mkdir(mode=0o700)
        account.give(short)
    found = short.lstat()
    if found.st_uid != account.uid or found.st_mode & 0o077:
        raise ClusterFault(f"{short} belongs to somebody else; set HOLDSHORT_HOME to a directory with a shorter path")
    return short


def _password(file: Path, cluster: Cluster, entropy: Entropy) -> str:
    kept = read_secret(file)
    if kept is not None:
        return kept
    if cluster.data.exists():
        raise ClusterFault(f"{file} is missing, so nobody can log in to {cluster.data}; put it back, or delete both")
    return keep_secret(file, entropy(24).hex())


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise EmbeddedBusy(
            f"another running holdshort command uses {file.parent}; stop it, set HOLDSHORT_HOME to another directory, "
            "or add --ephemeral"
        ) from None
    try:
        yield
    finally:
        os.close(descriptor)


def _make_directory(home: Path) -> None:
    if not home.exists():
        home.mkdir(parents=True)
        home.chmod(0o711 if os.geteuid() == 0 else 0o700)


def _temporary_directory() -> Path:
    chosen = Path(tempfile.gettempdir())
    return chosen if Account.of_this_process(chosen).can_enter(chosen) else Path("/tmp")  # noqa: S108 - mkdtemp makes a private name


def _sweep(parent: Path) -> None:
    """Stop and delete what killed runs left: their lock is free (the password is written once it was taken)."""
    for home in parent.glob(f"{EPHEMERAL}*"):
        # Whoever it belongs to, or sweeps too, may take it away meanwhile.
        with suppress(EmbeddedBusy, FileNotFoundError):
            if home.stat().st_uid == os.geteuid() and (home / "postgres.password").exists():
                _remove_leftover(home)


def _remove_leftover(home: Path) -> None:
    with _locked(home / "postgres.lock"):
        if (home / "postgres").exists():
            _cluster(home, Binaries.locate()).stop()
        shutil.rmtree(home, ignore_errors=True)
