"""A server that others reach starts only with keys, a webhook secret and a master key; what is missing is named."""

import asyncio
import json
import re

import httpx
import pytest

from controlplane.cli.needs import Unready, check
from controlplane.domain import keys as rules
from controlplane.settings import load
from controlplane.storage import migrations
from tests.cli.processes import children_of, ready, run, running, wait_until
from tests.keys import SECRETS, make_keys, sent, serving
from tests.postgres import Database
from tests.postgres import run as run_async

KEY, MASTER, WEBHOOKS, URL = (
    "HOLDSHORT_BOOTSTRAP_ADMIN_KEY",
    "HOLDSHORT_MASTER_KEYS",
    "HOLDSHORT_WEBHOOK_SECRETS",
    "HOLDSHORT_DATABASE_URL",
)
NOWHERE = "postgresql://nobody@127.0.0.1:1/x"


def named(said: str) -> set[str]:
    """The settings that a message says are missing."""
    return set(re.findall(r"^  (HOLDSHORT_\w+)", said, re.MULTILINE))


def made() -> dict[str, str]:
    """What the command makes that the refusal names."""
    lines = run("secrets").stdout.splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_all_that_is_missing_is_named_at_once_with_what_to_do():
    done = run("serve", "--port", "0")
    assert (done.returncode, done.stdout) == (2, "")
    assert named(done.stderr) == {URL, MASTER, WEBHOOKS, KEY}
    for remedy in ("postgresql://", "`holdshort senders create NAME`", "`holdshort keys create NAME --scope admin`"):
        assert remedy in done.stderr
    assert "`holdshort secrets` prints new values" in done.stderr


@pytest.mark.parametrize("missing", [{KEY}, {MASTER}, {WEBHOOKS}, {KEY, MASTER}, {KEY, WEBHOOKS, MASTER}, {URL, KEY}])
def test_each_thing_that_is_missing_is_named_and_nothing_else(database: Database, missing: set[str]):
    environ = {URL: database.url, **made()}
    done = run("serve", "--port", "0", **{name: value for name, value in environ.items() if name not in missing})
    assert done.returncode == 2
    assert named(done.stderr) == missing
    for secret in environ.values():
        assert secret not in done.stderr


def test_two_workers_are_started_no_sooner(database: Database):
    done = run("serve", "--port", "0", "--workers", "2", HOLDSHORT_DATABASE_URL=database.url)
    assert (done.returncode, named(done.stderr)) == (2, {KEY, MASTER, WEBHOOKS})
    assert "listening" not in done.stderr + done.stdout


def test_an_absent_database_is_told_of_beside_what_is_missing():
    done = run("serve", "--port", "0", HOLDSHORT_DATABASE_URL=NOWHERE)
    assert (done.returncode, named(done.stderr)) == (2, {KEY, MASTER, WEBHOOKS})
    assert "the database cannot be reached" in done.stderr


def test_an_unknown_schema_is_told_of_beside_what_is_missing(database: Database):
    run_async(_execute(database, "UPDATE alembic_version SET version_num = 'later'"))
    done = run("serve", "--port", "0", HOLDSHORT_DATABASE_URL=database.url)
    assert (done.returncode, named(done.stderr)) == (2, {KEY, MASTER, WEBHOOKS})
    assert "at revision later" in done.stderr
    done = run("serve", "--port", "0", HOLDSHORT_DATABASE_URL=database.url, **made())
    assert (done.returncode, named(done.stderr)) == (1, set())


def test_what_the_secrets_command_prints_is_enough_and_the_first_key_is_an_admins(database: Database):
    environ = made()
    assert set(environ) == {KEY, MASTER, WEBHOOKS}
    with running("serve", "--port", "0", "--workers", "2", **{URL: database.url, **environ}) as server:
        url = server.wait_until_ready()
        workers = children_of(server.process.pid)
        for _ in range(8):
            assert httpx.get(f"{url}/api/v1/deliveries").status_code == 401
            assert httpx.get(f"{url}/api/v1/deliveries", headers=sent(environ[KEY])).status_code == 200
            assert httpx.get(f"{url}/api/v1/parked", headers=sent(environ[KEY])).status_code == 403
        # Both kept the same first key at the same moment.
        assert children_of(server.process.pid) == workers
        assert not [line for line in server.printed() if "worker_died" in line]
    (row,) = json.loads(run("keys", "list", "--json", HOLDSHORT_DATABASE_URL=database.url).stdout)["keys"]
    assert (row["name"], row["scopes"]) == ("bootstrap", ["admin"])


def test_a_key_in_the_database_is_enough_and_the_bootstrap_key_is_then_none(database: Database):
    keys = make_keys(database)
    other = made()[KEY]
    with running("serve", "--port", "0", **serving(database), **{KEY: other}) as server:
        url = server.wait_until_ready()
        assert httpx.get(f"{url}/api/v1/deliveries", headers=sent(keys.admin)).status_code == 200
        assert httpx.get(f"{url}/api/v1/deliveries", headers=sent(other)).status_code == 401


def test_a_sender_in_the_database_stands_for_the_setting(database: Database):
    make_keys(database)
    environ = {name: value for name, value in serving(database).items() if name != WEBHOOKS}
    assert named(run("serve", "--port", "0", **environ).stderr) == {WEBHOOKS}
    run("senders", "create", "crm", **environ).check_returncode()
    with running("serve", "--port", "0", **environ) as server:
        server.wait_until_ready()
    run("senders", "revoke", "crm", **environ).check_returncode()
    assert named(run("serve", "--port", "0", **environ).stderr) == {WEBHOOKS}


def test_the_secrets_are_new_each_time_and_the_same_as_json():
    first, second = made(), json.loads(run("secrets", "--json").stdout)
    assert set(first) == set(second)
    for name in first:
        assert first[name] != second[name]
    assert rules.read(second[KEY]) is not None
    settings = load(second)
    assert (len(settings.master_keys), len(settings.webhook_secrets)) == (1, 1)


def test_dev_that_others_reach_starts_with_a_key_only(database: Database, tmp_path: object):
    environ = {URL: database.url, "HOLDSHORT_HOME": str(tmp_path)}
    done = run("dev", "--host", "0.0.0.0", "--port", "0", **environ)
    assert (done.returncode, named(done.stderr)) == (2, {KEY})
    assert "`holdshort dev` on 0.0.0.0, which others reach," in done.stderr
    keys = make_keys(database)
    with running("dev", "--host", "0.0.0.0", "--port", "0", **environ) as dev:
        url = "http://127.0.0.1:" + dev.wait_for(r"http://0\.0\.0\.0:(\d+)")[1]
        dev.wait_for("access      with an API key only")
        wait_until(lambda: ready(url))
        assert httpx.get(f"{url}/api/v1/executions").status_code == 401
        assert httpx.get(f"{url}/api/v1/executions", headers=sent(keys.review)).status_code == 200


async def test_the_check_asks_the_database_once_and_changes_nothing(database: Database):
    settings = load({URL: database.url, **SECRETS})
    with pytest.raises(Unready):
        await check(settings, "it")
    await asyncio.to_thread(make_keys, database)
    assert (await check(settings, "it")).triggers
    assert await migrations.migrate(database.url) == migrations.Migrated(migrations.newest(), migrations.newest())


async def _execute(database: Database, statement: str) -> None:
    connection = await database.connect()
    await connection.execute(statement)
    await connection.close()
