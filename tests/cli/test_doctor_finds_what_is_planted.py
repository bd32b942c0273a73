"""`holdshort doctor` names each thing that is not as it should be, and what to do; a sound set-up passes."""

import base64
import json
import subprocess
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import structs

from controlplane.domain.diagnosis import Found, Level, Told, examine
from tests.cli.processes import run
from tests.postgres import Database
from tests.roles import runtime_role

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SOUND_SETTINGS = Told(
    at=NOW,
    webhook_secrets=1,
    weak_senders=(),
    master_keys=("newer", "older"),
    bootstrap_key=False,
    audit_heads=True,
    public_url="https://holdshort.example",
    dangerous_callback_allow=False,
)
SOUND_DATABASE = Found(
    at=NOW,
    server="18.1",
    standby=False,
    unsafe=(),
    triggers=True,
    grants=True,
    keys={"agent": 2, "review": 1, "admin": 1},
    any_key=True,
    ending={},
    senders=0,
    sealed_under={"newer": 3},
    unsealed_seconds=0.5,
    dead_deliveries=0,
)
KEY = base64.b64encode(b"k" * 32).decode()


def test_a_sound_set_up_passes():
    assert {check.level for check in examine(SOUND_SETTINGS, SOUND_DATABASE)} == {Level.OK}


@pytest.mark.parametrize(
    ("name", "level", "told", "found"),
    [
        ("database", "fail", {}, {"standby": True}),
        ("durability", "fail", {}, {"unsafe": ("synchronous_commit",)}),
        ("clock", "warn", {"at": NOW - timedelta(seconds=31)}, {}),
        ("clock", "fail", {"at": NOW + timedelta(seconds=300)}, {}),
        ("history", "fail", {}, {"triggers": False}),
        ("history", "warn", {}, {"grants": False}),
        ("seals", "warn", {}, {"unsealed_seconds": 61.0}),
        ("audit heads", "warn", {"audit_heads": False}, {}),
        ("keys", "fail", {}, {"any_key": False, "keys": {}}),
        ("keys", "fail", {"bootstrap_key": True}, {"any_key": True, "keys": {}}),
        ("keys", "warn", {}, {"keys": {"agent": 1, "admin": 1}}),
        ("key ends soon", "warn", {}, {"ending": {"desk": NOW + timedelta(days=1)}}),
        ("webhooks", "fail", {"webhook_secrets": 0}, {}),
        ("webhooks", "warn", {"weak_senders": ("desk",)}, {}),
        ("secrets", "fail", {"master_keys": ()}, {}),
        ("secrets", "fail", {}, {"sealed_under": {"gone": 1, "newer": 2}}),
        ("secrets", "warn", {}, {"sealed_under": {"older": 1, "newer": 2}}),
        ("secrets", "warn", {}, {"sealed_under": {None: 1}}),
        ("links", "warn", {"public_url": None}, {}),
        ("links", "warn", {"public_url": "http://holdshort.example"}, {}),
        ("egress", "warn", {"dangerous_callback_allow": True}, {}),
        ("callbacks", "warn", {}, {"dead_deliveries": 1}),
    ],
)
def test_each_fault_is_named_alone_and_with_what_to_do(name: str, level: str, told: Any, found: Any):
    checks = examine(structs.replace(SOUND_SETTINGS, **told), structs.replace(SOUND_DATABASE, **found))
    assert [(check.name, check.level) for check in checks if check.level is not Level.OK] == [(name, level)]
    assert all(check.remedy for check in checks if check.level is not Level.OK)


def test_a_bootstrap_key_is_enough_for_a_first_start():
    checks = examine(
        structs.replace(SOUND_SETTINGS, bootstrap_key=True), structs.replace(SOUND_DATABASE, any_key=False, keys={})
    )
    assert {check.level for check in checks} == {Level.OK}


def doctor(database: Database, **environ: str) -> tuple[int, dict[str, str]]:
    done = run("doctor", "--json", HOLDSHORT_DATABASE_URL=database.url, **environ)
    return done.returncode, {check["name"]: check["level"] for check in json.loads(done.stdout)["checks"]}


async def test_it_looks_at_the_database_as_a_server_would(database: Database):
    code, levels = doctor(database)
    assert (code, levels["history"], levels["keys"]) == (1, "warn", "fail")
    assert (levels["webhooks"], levels["secrets"], levels["durability"]) == ("fail", "fail", "ok")
    for scope in ("agent", "review"):
        assert run("keys", "create", scope, "--scope", scope, HOLDSHORT_DATABASE_URL=database.url).returncode == 0
    assert settled(database).returncode == 0
    made = run("senders", "create", "desk", HOLDSHORT_DATABASE_URL=database.url, HOLDSHORT_MASTER_KEYS=KEY)
    assert made.returncode == 0, made.stderr
    code, levels = doctor(database, HOLDSHORT_MASTER_KEYS=KEY)
    assert (code, levels["webhooks"], levels["secrets"]) == (0, "ok", "ok")
    code, levels = doctor(database, HOLDSHORT_MASTER_KEYS=base64.b64encode(b"x" * 32).decode())
    assert (code, levels["secrets"]) == (1, "fail")
    connection = await database.connect()
    try:
        await connection.execute("ALTER TABLE history DISABLE TRIGGER history_only_grows")
    finally:
        await connection.close()
    assert "its triggers are off" in settled(database).stdout
    assert settled(database).returncode == 1


async def test_the_servers_own_role_may_ask(database: Database):
    async with runtime_role(database) as own:
        assert doctor(own)[1]["history"] == "ok"


def test_a_database_that_is_away_or_empty_is_one_failed_check(database: Database):
    away = run("doctor", "--json", HOLDSHORT_DATABASE_URL="postgresql://nobody@127.0.0.1:1/x")
    assert (away.returncode, [each["name"] for each in json.loads(away.stdout)["checks"]]) == (1, ["database"])


async def test_another_schema_is_one_failed_check(database: Database):
    connection = await database.connect()
    try:
        await connection.execute("UPDATE alembic_version SET version_num = '0001'")
    finally:
        await connection.close()
    code, levels = doctor(database)
    assert (code, levels) == (1, {"schema": "fail"})


def settled(database: Database) -> "subprocess.CompletedProcess[str]":
    return run(
        "doctor",
        HOLDSHORT_DATABASE_URL=database.url,
        HOLDSHORT_MASTER_KEYS=KEY,
        HOLDSHORT_WEBHOOK_SECRETS="desk:a-secret-of-enough-characters",
    )
