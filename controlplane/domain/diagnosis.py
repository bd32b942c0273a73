"""Diagnosis: what an operator should know of a set-up, judged from what was told and what was found."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from controlplane.domain.keys import Scope
from controlplane.domain.signatures import TOLERANCE_SECONDS
from controlplane.domain.webhook_secrets import STRONG_CHARACTERS

CLOCK_SECONDS = 30.0
UNSEALED_SECONDS = 60.0
SOON = timedelta(days=14)


class Level(StrEnum):
    """How a check ended: well, with something to think about, or with something that must be put right."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Check(Struct, frozen=True):
    """One thing that was looked at: what was found, and what to do about it where it is not well."""

    name: str
    level: Level
    found: str
    remedy: str | None = None


class Told(Struct, frozen=True, kw_only=True):
    """What the settings say, without any secret; `at` is this process's clock when it looked."""

    at: datetime
    webhook_secrets: int
    weak_senders: tuple[str, ...]
    master_keys: tuple[str, ...]
    bootstrap_key: bool
    audit_heads: bool
    public_url: str | None
    dangerous_callback_allow: bool


class Found(Struct, frozen=True, kw_only=True):
    """What the database says. `sealed_under` counts its secrets by master key's name, None for those as they are."""

    at: datetime
    server: str
    standby: bool
    unsafe: tuple[str, ...]
    triggers: bool
    grants: bool
    keys: Mapping[str, int]
    any_key: bool
    ending: Mapping[str, datetime]
    senders: int
    sealed_under: Mapping[str | None, int]
    unsealed_seconds: float
    dead_deliveries: int


def examine(told: Told, found: Found) -> list[Check]:
    """Every check, in the order in which a set-up is made."""
    return [
        _server(found),
        _durability(found),
        _clock(told, found),
        _history(found),
        _seals(found),
        _heads(told),
        _keys(told, found),
        *_ending(found),
        _webhooks(told, found),
        _secrets(told, found),
        _links(told),
        *_wide(told),
        _deliveries(found),
    ]


def _server(found: Found) -> Check:
    if found.standby:
        remedy = "set HOLDSHORT_DATABASE_URL to the primary"
        return Check("database", Level.FAIL, f"PostgreSQL {found.server}, a standby: nothing can be decided", remedy)
    return Check("database", Level.OK, f"PostgreSQL {found.server}")


def _durability(found: Found) -> Check:
    if found.unsafe:
        what = f"off: {', '.join(found.unsafe)}; a crash may lose decisions that were acknowledged"
        return Check("durability", Level.FAIL, what, f"turn {' and '.join(found.unsafe)} on in PostgreSQL")
    return Check("durability", Level.OK, "a commit is on disk before it is acknowledged")


def _clock(told: Told, found: Found) -> Check:
    apart = abs((told.at - found.at).total_seconds())
    if apart < CLOCK_SECONDS:
        return Check("clock", Level.OK, f"{apart:.1f} s from the database's")
    level = Level.FAIL if apart >= TOLERANCE_SECONDS else Level.WARN
    what = f"{apart:.0f} s from the database's; webhooks are fresh within {TOLERANCE_SECONDS} s of this one"
    return Check("clock", level, what, "let both machines keep their time by NTP")


def _history(found: Found) -> Check:
    if not found.triggers:
        return Check("history", Level.FAIL, "its triggers are off, or gone", "ask who turned them off; verify it")
    if not found.grants:
        remedy = "run the servers under a role of their own: holdshort migrate --grants ROLE"
        return Check("history", Level.WARN, "guarded by a trigger only: this role owns it, or may change it", remedy)
    return Check("history", Level.OK, "guarded by a trigger and by a role that may only add to it")


def _seals(found: Found) -> Check:
    if found.unsealed_seconds > UNSEALED_SECONDS:
        what = f"rows wait for a seal for {found.unsealed_seconds:.0f} s"
        return Check("seals", Level.WARN, what, "start a server, or end the transaction that is open for so long")
    return Check("seals", Level.OK, "every row that is old enough is sealed")


def _heads(told: Told) -> Check:
    if told.audit_heads:
        return Check("audit heads", Level.OK, "written outside of the database")
    remedy = "set HOLDSHORT_AUDIT_HEADS to a place where the tables' owner cannot write"
    return Check("audit heads", Level.WARN, "written nowhere: a cut-off end of history would not be found", remedy)


def _keys(told: Told, found: Found) -> Check:
    if found.any_key:
        counts = ", ".join(f"{found.keys[scope]} {scope}" for scope in Scope if found.keys.get(scope))
        if not counts:
            return Check("keys", Level.FAIL, "all are revoked or have ended", "holdshort keys create NAME --scope ...")
        missing = [scope.value for scope in Scope if scope is not Scope.ADMIN and not found.keys.get(scope)]
        if missing:
            remedy = f"holdshort keys create NAME --scope {missing[0]}"
            return Check("keys", Level.WARN, f"{counts}; none of scope {' or '.join(missing)}", remedy)
        return Check("keys", Level.OK, counts)
    if told.bootstrap_key:
        return Check("keys", Level.OK, "none yet; the first server keeps the bootstrap key")
    return Check("keys", Level.FAIL, "none: `holdshort serve` does not start", "holdshort keys create NAME --scope ...")


def _ending(found: Found) -> Iterator[Check]:
    for name, at in found.ending.items():
        what = f"{name} ends at {at:%Y-%m-%d %H:%M} UTC"
        yield Check("key ends soon", Level.WARN, what, "make another and give it to whoever uses this one")


def _webhooks(told: Told, found: Found) -> Check:
    if not told.webhook_secrets and not found.senders:
        remedy = "holdshort senders create NAME, or set HOLDSHORT_WEBHOOK_SECRETS"
        return Check("webhooks", Level.FAIL, "no secret: every signed webhook is refused", remedy)
    what = f"{told.webhook_secrets} secrets by setting, {found.senders} senders in the database"
    if told.weak_senders:
        remedy = f"use secrets of at least {STRONG_CHARACTERS} characters"
        return Check("webhooks", Level.WARN, f"{what}; short: {', '.join(told.weak_senders)}", remedy)
    return Check("webhooks", Level.OK, what)


def _secrets(told: Told, found: Found) -> Check:
    if not told.master_keys:
        remedy = "set HOLDSHORT_MASTER_KEYS: holdshort secrets prints one"
        return Check("secrets", Level.FAIL, "no master key: `holdshort serve` does not start", remedy)
    newest = told.master_keys[0]
    lost = {name: count for name, count in found.sealed_under.items() if name and name not in told.master_keys}
    if lost:
        what = f"{sum(lost.values())} are sealed under keys that are not set: {', '.join(sorted(lost))}"
        return Check("secrets", Level.FAIL, what, "add those keys to HOLDSHORT_MASTER_KEYS")
    older = sum(count for name, count in found.sealed_under.items() if name != newest)
    if older:
        what = f"{older} are not sealed under the newest master key"
        return Check("secrets", Level.WARN, what, "holdshort reseal")
    return Check("secrets", Level.OK, f"{sum(found.sealed_under.values())} sealed under the newest master key")


def _links(told: Told) -> Check:
    if told.public_url is None:
        return Check("links", Level.WARN, "not built: nobody said under which address", "set HOLDSHORT_PUBLIC_URL")
    if not told.public_url.startswith("https://"):
        remedy = "put TLS in front of the servers and set HOLDSHORT_PUBLIC_URL to its https address"
        return Check("links", Level.WARN, f"{told.public_url} sends keys and decisions in the clear", remedy)
    return Check("links", Level.OK, told.public_url)


def _wide(told: Told) -> Iterator[Check]:
    if told.dangerous_callback_allow:
        what = "HOLDSHORT_DANGEROUS_CALLBACK_ALLOW is on: whole networks may be called"
        yield Check("egress", Level.WARN, what, "name the agents' own networks and turn it off")


def _deliveries(found: Found) -> Check:
    if found.dead_deliveries:
        what = f"{found.dead_deliveries} callbacks were given up"
        return Check("callbacks", Level.WARN, what, "holdshort deliveries list --status dead")
    return Check("callbacks", Level.OK, "none was given up")
