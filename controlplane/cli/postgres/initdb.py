"""A new data directory of PostgreSQL: made whole beside its place and moved in, so a killed run leaves no half."""

import shutil
import subprocess
from pathlib import Path

from controlplane.cli.postgres.account import Account
from controlplane.cli.postgres.binaries import Binaries
from controlplane.cli.postgres.faults import ClusterFault

OWNER = "holdshort"
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
LOCALE = ("--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
FLAGS = ("-U", OWNER, "--auth=scram-sha-256", *LOCALE)


def initialise(data: Path, programs: Binaries, account: Account, *, password: str, database: str) -> None:
    """Make a data directory with one role, which needs the password, and one database.

    Args:
        data: where it shall be; its parent belongs to the account.
        programs: PostgreSQL's programs.
        account: whom the finished directory belongs to.
        password: of the role `holdshort`.
        database: the database's name, a plain identifier.

    Raises:
        ClusterFault: a program failed; nothing is left at `data`.
    """
    work = data.with_name("initdb")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(mode=0o700)
    secret = work / "password"
    secret.touch(mode=0o600)
    secret.write_text(password)
    account.give(data.parent, initdb=True)
    unfinished = work / "data"
    try:
        _run(programs.program("initdb"), *FLAGS, f"--pwfile={secret}", "-D", str(unfinished), account=account)
        alone = (programs.program("postgres"), "--single", "-D", str(unfinished), "postgres")
        _run(*alone, account=account, text=f"CREATE DATABASE {database}\n")
    finally:
        account.give(data.parent)
        secret.unlink()
    unfinished.rename(data)
    work.rmdir()


def _run(*command: str, account: Account, text: str = "") -> None:
    done = subprocess.run(
        command,
        input=text,
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env=ENVIRONMENT,
        user=account.initdb_uid if account.root else None,
        group=account.initdb_gid if account.root else None,
        extra_groups=[] if account.root else None,
    )
    if done.returncode != 0:
        raise ClusterFault(f"{Path(command[0]).name} failed: {' '.join(done.stderr.split())[-500:]}")
