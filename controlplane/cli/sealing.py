"""What seals and opens secrets, for commands that work on the database itself."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from controlplane.cli.database import url_of
from controlplane.cli.environment import MASTER_KEY_FILE
from controlplane.cli.faults import WrongUsage
from controlplane.cli.kept import read_secret
from controlplane.domain.vault import Vault, parse_master_keys
from controlplane.settings import Settings

_HERE = frozenset({"localhost", "127.0.0.1", "::1"})


def vault_of(settings: Settings) -> Vault:
    """The vault of the servers on this database: HOLDSHORT_MASTER_KEYS, or what `holdshort dev` keeps in its home.

    The kept key serves a database of this machine only: what it sealed elsewhere no server could read.

    Raises:
        WrongUsage: nobody said where the database is, or which master keys its servers have.
    """
    keys = settings.master_keys
    if not keys and _on_this_machine(url_of(settings)):
        kept = read_secret(settings.home / MASTER_KEY_FILE)
        keys = parse_master_keys(kept) if kept is not None else ()
    if not keys:
        raise WrongUsage("set HOLDSHORT_MASTER_KEYS as the servers have it: these secrets are only kept sealed")
    return Vault(keys)


def _on_this_machine(url: str) -> bool:
    parts = urlsplit(url)
    hosts = {*parse_qs(parts.query).get("host", []), *([parts.hostname] if parts.hostname else [])}
    return all(host in _HERE or Path(host).is_absolute() for host in hosts)
