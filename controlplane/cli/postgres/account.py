"""Which user PostgreSQL runs as: ourselves, or, because it refuses root, a user id that has no account."""

import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FIRST_FREE_UID = 59_417


class Account(NamedTuple):
    """The ids that PostgreSQL's processes run under.

    Nothing is added to the system's users. `initdb` alone insists on a named account, so as root it runs under an
    existing unprivileged one, and the finished files are then given to an id that no account and no service uses.
    """

    uid: int
    gid: int
    initdb_uid: int
    initdb_gid: int
    root: bool

    @classmethod
    def of_this_process(cls, area: Path) -> "Account":
        """Our own ids; as root the owner of the data that is there already, else the first id without an account.

        Args:
            area: the directory that holds, or will hold, the data.
        """
        if os.geteuid() != 0:
            return cls(os.geteuid(), os.getegid(), os.geteuid(), os.getegid(), root=False)
        owner = area.stat().st_uid if area.exists() else 0
        uid = owner or next(uid for uid in range(FIRST_FREE_UID, FIRST_FREE_UID + 500) if not _has_account(uid))
        named = _unprivileged()
        return cls(uid, uid, named.pw_uid, named.pw_gid, root=True)

    def give(self, path: Path, *, initdb: bool = False) -> None:
        """Make a path that we created the account's own; nothing to do when that is us.

        Args:
            path: a file, or a directory with everything below it.
            initdb: give it to the account that `initdb` runs under instead.
        """
        if not self.root:
            return
        uid, gid = (self.initdb_uid, self.initdb_gid) if initdb else (self.uid, self.gid)
        for each in _with_all_below(path):
            os.chown(each, uid, gid, follow_symlinks=False)

    def can_enter(self, directory: Path) -> bool:
        """Whether the account may pass through a directory and each one above it."""
        if not self.root:
            return os.access(directory, os.X_OK)
        return all(each.stat().st_mode & stat.S_IXOTH for each in (directory, *directory.parents))

    def can_read_all(self, directory: Path) -> bool:
        """Whether the account may read everything below a directory, judged by the bits for others when we are root."""
        if not self.root:
            return True
        return self.can_enter(directory) and all(_open_to_others(each) for each in _with_all_below(directory))


def _has_account(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _unprivileged() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam("nobody")
    except KeyError:
        return next(entry for entry in pwd.getpwall() if entry.pw_uid != 0)


def _with_all_below(path: Path) -> Iterator[Path]:
    yield path
    if path.is_dir() and not path.is_symlink():
        yield from path.rglob("*")


def _open_to_others(path: Path) -> bool:
    mode = path.stat().st_mode
    needed = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(mode) else 0)
    return mode & needed == needed
