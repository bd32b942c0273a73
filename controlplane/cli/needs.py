"""What a server that others reach must have before it starts; all that is missing is named at once."""

from msgspec import Struct

from controlplane.cli.database import opened
from controlplane.cli.faults import WrongUsage, fault_of
from controlplane.domain.errors import DatabaseUnavailable
from controlplane.settings import Settings
from controlplane.storage import append_only, keys, migrations, senders
from controlplane.storage.append_only import Guard
from controlplane.storage.engine import Connection, make_engine, transaction
from controlplane.storage.migrations import SchemaUnknown


class Need(Struct, frozen=True):
    """One thing that a start needs: its setting, what that is, and where else it may come from."""

    setting: str
    what: str
    otherwise: str = ""


_DATABASE = Need("HOLDSHORT_DATABASE_URL", "where PostgreSQL is: postgresql://user:password@host:port/name")
_MASTER_KEY = Need("HOLDSHORT_MASTER_KEYS", "what seals secrets in the database")
_WEBHOOK_SECRET = Need("HOLDSHORT_WEBHOOK_SECRETS", "what webhooks are signed with", "`holdshort senders create NAME`")
_API_KEY = Need("HOLDSHORT_BOOTSTRAP_ADMIN_KEY", "the first API key", "`holdshort keys create NAME --scope admin`")
_COLUMN = max(len(each.setting) for each in (_DATABASE, _MASTER_KEY, _WEBHOOK_SECRET, _API_KEY))


class Kept(Struct, frozen=True):
    """What the database has of that: an API key, ended or not, and a webhook sender's secret that holds."""

    key: bool
    sender: bool


class Unready(WrongUsage):
    """The server was not started; the message has a line for each thing that is missing, and says where to get it.

    Args:
        command: what was started, for people.
        missing: each setting, and what it is.
        fault: why the database could not be asked for what it may have.
    """

    def __init__(self, command: str, missing: list[Need], fault: str | None = None) -> None:
        """Write the message."""
        lines = [f"{command} starts only where nobody gets in without a key and no secret lies open. Set:"]
        lines += [f"  {need.setting:<{_COLUMN}}  {_meaning(need)}" for need in missing]
        if fault is not None:
            lines.append(fault)
        lines.append("`holdshort secrets` prints new values for all but the database, as lines for the environment.")
        super().__init__("\n".join(lines))


async def check(settings: Settings, command: str) -> Guard:
    """Refuse a start that would let anybody in or leave secrets open; what guards history from us.

    Args:
        settings: as they would be served.
        command: what is started, for people.

    Raises:
        Unready: something is missing; names all of it.
        SchemaUnknown: nothing but the schema is wrong.
        DatabaseUnavailable: nothing but the database is missing.
    """
    if settings.database_url is None:
        raise Unready(command, [_DATABASE, *_missing(settings, None)])
    try:
        kept, guard = await _look(settings.database_url)
    except (SchemaUnknown, DatabaseUnavailable) as fault:
        if not settings.master_keys:
            raise Unready(command, _missing(settings, None), fault_of(fault).message) from fault
        raise
    missing = _missing(settings, kept)
    if missing:
        raise Unready(command, missing)
    return guard


async def has_key(url: str) -> bool:
    """Whether a database has an API key, or ever had; it is at our schema.

    Raises:
        DatabaseUnavailable: it cannot be asked.
    """
    async with opened(url) as transactions, transactions() as conn:
        return await keys.any_there(conn)


async def _look(url: str) -> tuple[Kept, Guard]:
    engine = make_engine(url, pool_size=1)
    try:
        await migrations.check(engine)
        async with transaction(engine) as conn:
            return await _kept(conn), await append_only.guard(conn)
    finally:
        await engine.dispose()


async def _kept(conn: Connection) -> Kept:
    return Kept(key=await keys.any_there(conn), sender=await senders.any_usable(conn))


def _missing(settings: Settings, kept: Kept | None) -> list[Need]:
    """What is missing; without `kept` also what the database may have."""
    found = [] if settings.master_keys else [_MASTER_KEY]
    if not settings.webhook_secrets and not (kept is not None and kept.sender):
        found.append(_WEBHOOK_SECRET)
    if settings.bootstrap_admin_key is None and not (kept is not None and kept.key):
        found.append(_API_KEY)
    return found


def _meaning(need: Need) -> str:
    return f"{need.what}; or have one in the database: {need.otherwise}" if need.otherwise else need.what
