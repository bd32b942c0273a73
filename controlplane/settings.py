"""Settings, read once at start from a mapping: one frozen struct, or every fault at once.

Nothing else reads the environment. `SETTINGS` is the one table of names, defaults and meanings; README's settings table
is printed from it (`python -m controlplane.settings`) and compared with it by a test.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec
import platformdirs

from controlplane.domain import keys, redaction
from controlplane.domain.allow_list import Entry
from controlplane.domain.allow_list import parse as parse_allow_list
from controlplane.domain.egress_ranges import Network
from controlplane.domain.errors import FieldFault, HoldshortError
from controlplane.domain.origins import parse as parse_origins
from controlplane.domain.proxies import parse as parse_proxies
from controlplane.domain.urls import check_http_url
from controlplane.domain.vault import MasterKey, parse_master_keys
from controlplane.domain.webhook_secrets import WebhookSecret
from controlplane.domain.webhook_secrets import parse as parse_webhook_secrets

Value = TypeVar("Value")

PREFIX = "HOLDSHORT_"
SYSTEM_HOME = Path("/var/lib/holdshort")


class Setting(NamedTuple):
    """One row of the settings table: the variable, what holds when it is unset, and what it means."""

    name: str
    default: str
    meaning: str


SETTINGS = (
    Setting(
        "HOLDSHORT_DATABASE_URL",
        "",
        "PostgreSQL to use: `postgresql://user:password@host:port/name`, with libpq's parameters behind a `?`"
        " (`sslmode`, ...). Unset: `holdshort dev` runs its own.",
    ),
    Setting(
        "HOLDSHORT_DIRECT_DATABASE_URL",
        "the database URL",
        "A connection past any transaction pooler, for LISTEN only.",
    ),
    Setting(
        "HOLDSHORT_MIGRATION_DATABASE_URL",
        "the database URL",
        "The role that owns the tables; used by `holdshort migrate` and by the migration of `holdshort dev`.",
    ),
    Setting("HOLDSHORT_POOL_SIZE", "10", "Database connections of one server process at most, 1 to 1000."),
    Setting(
        "HOLDSHORT_WEBHOOK_SECRETS",
        "",
        "Secrets of signed webhooks, comma-separated, newest first; an entry is `secret` or `name:secret`.",
    ),
    Setting(
        "HOLDSHORT_CALLBACK_ALLOW",
        "",
        "Private and loopback addresses that agents may be called at: comma-separated hosts, addresses or networks,"
        " each for all ports or one (`agent:8001`, `10.1.0.0/16`, `[fd12::/48]:8001`). `holdshort dev` calls loopback"
        " without it.",
    ),
    Setting(
        "HOLDSHORT_DANGEROUS_CALLBACK_ALLOW",
        "off",
        "`on`: networks wider than /8 (IPv4) or /16 (IPv6) are taken in `HOLDSHORT_CALLBACK_ALLOW`.",
    ),
    Setting("HOLDSHORT_DEFAULT_EXPIRES_HOURS", "72", "Hours until an approval expires when the agent names none."),
    Setting("HOLDSHORT_PARKED_SECONDS", "3600", "Seconds that an answer is kept which came before its question."),
    Setting("HOLDSHORT_MAX_WAITS", "20000", "Waiting calls of one server process; past it they answer at once."),
    Setting(
        "HOLDSHORT_UNNAMED_WEBHOOKS",
        "refuse",
        "An answer that names no execution while several asked under its id: `refuse` it, or take the `newest`.",
    ),
    Setting("HOLDSHORT_NODE_CONCURRENCY", "100", "Runs that one node works on at once, where it registers no number."),
    Setting("HOLDSHORT_NODE_QUEUE", "1000", "Runs that may wait for one node; past it `execute` answers 429."),
    Setting("HOLDSHORT_START_WITHIN_HOURS", "24", "Hours in which an agent must have taken a new run, or it fails."),
    Setting(
        "HOLDSHORT_MASTER_KEYS",
        "",
        "Keys that seal secrets in the database: base64 of 32 random bytes each, comma-separated, newest first."
        " `serve` needs one, as `holdshort secrets` prints it; `holdshort dev` makes one beside its data.",
    ),
    Setting(
        "HOLDSHORT_BOOTSTRAP_ADMIN_KEY",
        "",
        "The first key, of scope admin, as `holdshort secrets` prints one; used only while no key exists.",
    ),
    Setting(
        "HOLDSHORT_AUDIT_HEADS",
        "",
        "Where the newest seal of the history is written each minute, outside of the database: the absolute path of a"
        " file that only grows, or an http(s) URL that takes a line of JSON by POST (under the rule for callbacks).",
    ),
    Setting("HOLDSHORT_LISTEN", "on", "`off`: no LISTEN connection; changes are seen by polling within 1 s."),
    Setting(
        "HOLDSHORT_TRUSTED_PROXIES",
        "",
        "Proxies in front of this server, comma-separated addresses or networks (`10.0.0.5`, `fd12::/64`): the address"
        " of a caller is then the last of `X-Forwarded-For` that is none of them. Nobody else's is believed.",
    ),
    Setting(
        "HOLDSHORT_CORS_ORIGINS",
        "",
        "Origins whose pages may list, watch and answer short-lived questions with a key, comma-separated"
        " (`https://desk.example`); nothing else, and nobody else's.",
    ),
    Setting("HOLDSHORT_PUBLIC_URL", "", "The address under which people and agents reach this server; builds links."),
    Setting(
        "HOLDSHORT_HOME",
        "the user's data directory",
        "Where `holdshort dev` keeps its database and development secrets (as root: `/var/lib/holdshort`).",
    ),
    Setting("HOLDSHORT_LOG_FORMAT", "console", "`console` for people, `json` for programs."),
    Setting("HOLDSHORT_LOG_LEVEL", "info", "`debug`, `info`, `warning` or `error`."),
)


class SettingsFault(HoldshortError):
    """The settings are wrong; correct every one that is named and start again."""

    code = "invalid_settings"

    def __init__(self, faults: list[str]) -> None:
        """Keep each fault; the message is one line for each."""
        self.faults = tuple(faults)
        super().__init__("\n".join(faults))


class Settings(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """What one server process was told at its start; see `SETTINGS` for each field's meaning.

    Database URLs are `postgresql://...` whichever spelling was given. Passwords and secrets are not in `repr`.
    Two come from no variable: `open_mode`, which the commands for one developer's machine set where they listen on
    loopback, and `processes`, which says how many serve on this process's socket and so divide a limit.
    """

    database_url: str | None = None
    direct_database_url: str | None = None
    migration_database_url: str | None = None
    pool_size: int = 10
    webhook_secrets: tuple[WebhookSecret, ...] = ()
    callback_allow: tuple[Entry, ...] = ()
    dangerous_callback_allow: bool = False
    default_expires_hours: float = 72.0
    parked_seconds: int = 3600
    max_waits: int = 20_000
    unnamed_webhooks: Literal["refuse", "newest"] = "refuse"
    node_concurrency: int = 100
    node_queue: int = 1000
    start_within_hours: float = 24.0
    master_keys: tuple[MasterKey, ...] = ()
    bootstrap_admin_key: str | None = None
    audit_heads: str | None = None
    listen: bool = True
    trusted_proxies: tuple[Network, ...] = ()
    cors_origins: tuple[str, ...] = ()
    public_url: str | None = None
    home: Path = SYSTEM_HOME
    log_format: Literal["console", "json"] = "console"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    open_mode: bool = False
    processes: int = 1

    def __repr__(self) -> str:
        """Every field, with the passwords of URLs and all secrets masked."""
        return f"Settings({', '.join(f'{name}={shown}' for name, shown in self._shown())})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        """The same for rich, which would otherwise print the fields as they are."""
        return self._shown()

    def _shown(self) -> list[tuple[str, str]]:
        return [(name, _masked(name, getattr(self, name))) for name in self.__struct_fields__]


def load(environ: Mapping[str, str], *, root: bool = False) -> Settings:
    """Settings from a mapping of environment variables; an empty value counts as unset.

    Args:
        environ: the environment, or what a test wants it to be.
        root: whether the process runs as root, whose data is kept outside its home directory.

    Raises:
        SettingsFault: one or more settings are wrong; names all of them, never a secret's value.
    """
    reader = _Reader({name: value for name, value in environ.items() if name.startswith(PREFIX) and value})
    dangerous = reader.read("DANGEROUS_CALLBACK_ALLOW", _on_or_off, False)
    default_home = SYSTEM_HOME if root else platformdirs.user_data_path("holdshort")
    settings = Settings(
        database_url=reader.read("DATABASE_URL", _database_url, None),
        direct_database_url=reader.read("DIRECT_DATABASE_URL", _database_url, None),
        migration_database_url=reader.read("MIGRATION_DATABASE_URL", _database_url, None),
        pool_size=reader.read("POOL_SIZE", _whole(1, 1000), 10),
        webhook_secrets=reader.read("WEBHOOK_SECRETS", parse_webhook_secrets, ()),
        callback_allow=reader.read("CALLBACK_ALLOW", partial(parse_allow_list, dangerous=dangerous), ()),
        dangerous_callback_allow=dangerous,
        default_expires_hours=reader.read("DEFAULT_EXPIRES_HOURS", _hours, 72.0),
        parked_seconds=reader.read("PARKED_SECONDS", _whole(1, 604_800), 3600),
        max_waits=reader.read("MAX_WAITS", _whole(0, 1_000_000), 20_000),
        unnamed_webhooks=reader.read("UNNAMED_WEBHOOKS", _one_of({"refuse": "refuse", "newest": "newest"}), "refuse"),
        node_concurrency=reader.read("NODE_CONCURRENCY", _whole(1, 100_000), 100),
        node_queue=reader.read("NODE_QUEUE", _whole(1, 1_000_000), 1000),
        start_within_hours=reader.read("START_WITHIN_HOURS", _hours, 24.0),
        audit_heads=reader.read("AUDIT_HEADS", _path_or_url, None),
        listen=reader.read("LISTEN", _on_or_off, True),
        master_keys=reader.read("MASTER_KEYS", parse_master_keys, ()),
        bootstrap_admin_key=reader.read("BOOTSTRAP_ADMIN_KEY", _api_key, None),
        trusted_proxies=reader.read("TRUSTED_PROXIES", parse_proxies, ()),
        cors_origins=reader.read("CORS_ORIGINS", parse_origins, ()),
        public_url=reader.read("PUBLIC_URL", _public_url, None),
        home=reader.read("HOME", _absolute, default_home),
        log_format=reader.read("LOG_FORMAT", _one_of({"console": "console", "json": "json"}), "console"),
        log_level=reader.read("LOG_LEVEL", _one_of({name: name for name in _LEVELS}), "info"),
    )
    if reader.faults:
        raise SettingsFault(reader.faults)
    return settings


def markdown_table() -> str:
    """README's settings table."""
    rows = (f"| `{row.name}` | {row.default or '-'} | {row.meaning} |" for row in SETTINGS)
    return "\n".join(("| variable | default | meaning |", "|---|---|---|", *rows))


class _Reader:
    """Collects faults instead of stopping at the first."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given
        self.faults: list[str] = []

    def read(self, name: str, parse: Callable[[str], Value], default: Value) -> Value:
        """The parsed value of HOLDSHORT_<name>, or the default when it is unset or wrong (which is noted)."""
        raw = self._given.get(PREFIX + name)
        if raw is None:
            return default
        try:
            return parse(raw)
        except FieldFault as fault:
            self.faults.append(f"{PREFIX}{name}: {fault.rule}")
        except ValueError as fault:
            self.faults.append(f"{PREFIX}{name}: {fault}")
        return default


Level = Literal["debug", "info", "warning", "error"]
_LEVELS: tuple[Level, ...] = ("debug", "info", "warning", "error")
_SCHEMES = ("postgres", "postgresql", "postgresql+asyncpg")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SERVER = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(:[0-9]{1,5})?")


def _database_url(raw: str) -> str:
    scheme, separator, rest = raw.strip().partition("://")
    if _CONTROL.search(rest):
        raise ValueError("must not contain control characters; write them with % and two digits")
    if not separator or scheme not in _SCHEMES or not rest or not _SERVER.fullmatch(_server(rest)):
        raise ValueError("must be postgresql://user:password@host:port/name")
    return f"postgresql://{rest}"


def _server(rest: str) -> str:
    """What stands between the password, which may hold a slash, and the database's name."""
    return rest.partition("?")[0].rpartition("@")[2].partition("/")[0]


def _api_key(raw: str) -> str:
    if keys.read(raw.strip()) is None:
        raise ValueError("must be a key as `holdshort keys create` prints it")
    return raw.strip()


def _public_url(raw: str) -> str:
    url = raw.strip().rstrip("/")
    if _CONTROL.search(url):
        raise ValueError("must not contain control characters")
    try:
        parts = urlsplit(url)
    except ValueError:  # its text quotes what stands before the host
        raise ValueError("must be an http(s) URL") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ValueError("must be an http(s) URL without query, fragment and user name")
    return url


def _absolute(raw: str) -> Path:
    try:
        path = Path(raw).expanduser()
    except RuntimeError:
        raise ValueError("must be an absolute path; nobody here has that home directory") from None
    if not path.is_absolute():
        raise ValueError("must be an absolute path")
    return path


def _path_or_url(raw: str) -> str:
    if raw.startswith("/"):
        return raw
    try:
        return check_http_url("url", raw.strip(), userinfo=False)
    except FieldFault as fault:
        raise ValueError(f"must be an absolute path, or a URL that {fault.rule}") from None


def _whole(least: int, most: int) -> Callable[[str], int]:
    def parse(raw: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", raw.strip()) or not least <= int(raw) <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return int(raw)

    return parse


def _hours(raw: str) -> float:
    if not re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,9})?", raw.strip()) or not 1 / 3600 <= float(raw) <= 8760:
        raise ValueError("must be a number of hours from one second (0.000278) to 8760")
    return float(raw)


def _one_of(choices: Mapping[str, Value]) -> Callable[[str], Value]:
    def parse(raw: str) -> Value:
        word = raw.strip().lower()
        if word not in choices:
            raise ValueError(f"must be {' or '.join(choices)}")
        return choices[word]

    return parse


_on_or_off = _one_of({"on": True, "off": False})


def _masked(name: str, value: object) -> str:
    if name == "bootstrap_admin_key" and value is not None:
        return "***"
    if name == "master_keys" and isinstance(value, tuple):
        return f"<{len(value)}>"
    if name == "webhook_secrets" and isinstance(value, tuple):
        return f"<{len(value)}>"
    if name == "audit_heads" and isinstance(value, str) and "://" in value:
        return repr("/".join(value.split("/", 3)[:3]) + "/***")
    if isinstance(value, str) and "://" in value:
        return repr(re.sub(r"\?.*", "?***", redaction.masked(value)))
    return repr(value)


if __name__ == "__main__":
    print(markdown_table())  # noqa: T201 - this is how README's table is made
