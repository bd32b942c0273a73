"""`holdshort senders` and `reseal`: a secret is shown once, or comes by a pipe, and never stands on a command line."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from controlplane.domain import signatures
from controlplane.domain.vault import CALLBACK, NONCE_BYTES, sealed_by
from tests.app import MASTER_KEY
from tests.cli import processes
from tests.postgres import Database
from tests.postgres import run as ran
from tests.senders import NEW_MASTER_KEY, NEW_VAULT, VAULT, told

GIVEN = "a secret of theirs with 40 characters..."
Done = subprocess.CompletedProcess[str]


class Shell:
    """The command on a database, with the master keys that it is given."""

    def __init__(self, database: Database, tmp_path: Path) -> None:
        self.database = database
        self.environ = {
            "HOLDSHORT_DATABASE_URL": database.url,
            "HOLDSHORT_MASTER_KEYS": MASTER_KEY,
            "HOLDSHORT_HOME": str(tmp_path),
        }

    def __call__(self, *command: str, given: str | None = None, **environ: str) -> Done:
        """Run it; `given` is what it reads from its standard input."""
        return processes.run(*command, given=given, **{name: v for name, v in (self.environ | environ).items() if v})

    def json(self, *command: str, **more: Any) -> dict[str, Any]:
        done = self(*command, "--json", **more)
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    def sql(self, query: str, *values: object) -> list[Any]:
        async def fetch() -> list[Any]:
            rows = await self.database.connect()
            try:
                return list(await rows.fetch(query, *values))
            finally:
                await rows.close()

        return ran(fetch())


@pytest.fixture
def shell(database: Database, tmp_path: Path) -> Shell:
    return Shell(database, tmp_path)


def refused(done: Done, sentence: str, code: int = 1) -> bool:
    assert (done.returncode, done.stdout) == (code, ""), done.stdout + done.stderr
    assert sentence in done.stderr
    return "Traceback" not in done.stderr


def signed_as(shell: Shell, tmp_path: Path, secret: str, **environ: str) -> bool:
    """Whether `holdshort sign --sender legal` signs with this secret."""
    body = tmp_path / "body"
    body.write_bytes(b"{}")
    done = shell("sign", str(body), "--sender", "legal", **environ)
    assert done.returncode == 0, done.stderr
    return done.stdout == f"X-Webhook-Signature: {signatures.sign_hex(secret, b'{}')}\n"


def test_a_sender_is_made_rotated_and_revoked(shell: Shell, tmp_path: Path):
    made = shell.json("senders", "create", "legal")
    assert made["secret"].startswith("whsec_")
    assert signed_as(shell, tmp_path, made["secret"])
    rotated = shell.json("senders", "rotate", "legal", "--overlap", "60")
    assert (rotated["others"], rotated["others_for"]) == ([made["secret_id"]], 60)
    assert signed_as(shell, tmp_path, rotated["secret"])
    listed = shell("senders", "list")
    assert [line.split()[:3] for line in listed.stdout.splitlines()[1:]] == [
        ["legal", rotated["secret_id"], "holds"],
        ["legal", made["secret_id"], "ends"],
    ]
    (sender,) = shell.json("senders", "list")["senders"]
    assert [each["holds"] for each in sender["secrets"]] == [True, True]
    ended = shell.json("senders", "revoke", "legal")
    assert set(ended["ended"]) == {made["secret_id"], rotated["secret_id"]}
    assert refused(shell("sign", str(tmp_path / "body"), "--sender", "legal"), "holdshort senders list")
    said = listed.stdout + json.dumps(sender) + str(shell.sql("SELECT h::text FROM history h"))
    assert not any(text in said for text in (made["secret"], rotated["secret"]))


def test_a_secret_that_exists_comes_by_a_pipe_or_a_file_and_is_not_shown(shell: Shell, tmp_path: Path):
    made = shell("senders", "create", "legal", "--secret-from", "-", given=f"{GIVEN}\n")
    assert made.returncode == 0, made.stderr
    assert GIVEN not in made.stdout + made.stderr
    assert signed_as(shell, tmp_path, GIVEN)
    file = tmp_path / "secret"
    file.write_text(f"whsec_{GIVEN[::-1]}")
    rotated = shell("senders", "rotate", "legal", "--secret-from", str(file))
    assert rotated.returncode == 0, rotated.stderr
    assert signed_as(shell, tmp_path, f"whsec_{GIVEN[::-1]}")
    assert "secret_id" in rotated.stdout
    assert GIVEN[::-1] not in rotated.stdout + rotated.stderr


@pytest.mark.parametrize(
    "given",
    ["", "fifteen-chars..", "whsec_fifteen-chars..", "x" * 257, "two lines\nof a secret", "a NUL \0 in a secret"],
)
def test_what_can_be_no_secret_is_refused_and_not_shown(shell: Shell, given: str):
    done = shell("senders", "create", "legal", "--secret-from", "-", given=given)
    assert refused(done, "secret: must ")
    assert not given or given not in done.stderr
    assert shell.json("senders", "list") == {"senders": [], "settings": []}


def test_the_settings_count_beside_the_database(shell: Shell, tmp_path: Path):
    settings = {"HOLDSHORT_WEBHOOK_SECRETS": f"legal:{GIVEN},0123456789abcdef"}
    made = shell("senders", "create", "legal", **settings)
    assert "Secrets of legal in HOLDSHORT_WEBHOOK_SECRETS hold beside it." in made.stderr
    assert shell.json("senders", "list", **settings)["settings"] == ["legal", "(unnamed)"]
    assert GIVEN not in shell("senders", "list", **settings).stdout
    assert signed_as(shell, tmp_path, GIVEN, **settings)


def test_nothing_is_kept_without_the_master_keys_of_the_servers(shell: Shell, tmp_path: Path):
    assert refused(shell("senders", "create", "legal", HOLDSHORT_MASTER_KEYS=""), "set HOLDSHORT_MASTER_KEYS", 2)
    shell.json("senders", "create", "legal")
    for command in (["create", "crm"], ["rotate", "legal"]):
        done = shell("senders", *command, HOLDSHORT_MASTER_KEYS=NEW_MASTER_KEY)
        assert refused(done, "of legal was sealed with a master key that is not known here")
    assert len(shell.sql("SELECT * FROM sender_secrets")) == 1


def test_the_key_that_dev_keeps_serves_this_machine_only(shell: Shell, tmp_path: Path):
    (tmp_path / "master-key").write_text(MASTER_KEY)
    shell.json("senders", "create", "legal", HOLDSHORT_MASTER_KEYS="")
    (kept,) = shell.sql("SELECT sealed FROM sender_secrets")
    assert sealed_by(kept["sealed"]) == sealed_by(VAULT.mark)
    elsewhere = shell("senders", "create", "crm", HOLDSHORT_MASTER_KEYS="", HOLDSHORT_DATABASE_URL="postgresql://db/x")
    assert refused(elsewhere, "set HOLDSHORT_MASTER_KEYS", 2)


def test_faults_are_one_sentence(shell: Shell):
    assert refused(shell("senders", "rotate", "legal"), "No such sender is kept in the database")
    assert refused(shell("senders", "revoke", "legal"), "No such sender is kept in the database")
    assert refused(shell("senders", "create", "Legal"), "name: must be a-z 0-9 -")
    assert refused(shell("senders", "list", HOLDSHORT_DATABASE_URL=""), "set HOLDSHORT_DATABASE_URL", 2)


async def plant(database: Database, secrets: int) -> None:
    """A decided approval each, with its callback, as they were kept before there were master keys and since."""
    rows = await database.connect()
    await rows.execute("INSERT INTO executions (execution_id, node_id, status) VALUES ('run-1', 'n', 'running')")
    await rows.executemany(
        "INSERT INTO approvals (approval_id, execution_id, node_id, approval_request_id, round, status, on_expiry,"
        " requested_at, expires_at, callback_url, callback_secret, decided_at, new_status)"
        " VALUES ($1, 'run-1', 'n', $1, 1, 'approved', 'cancel', now() - interval '1 h', now() + interval '1 h',"
        " 'http://127.0.0.1:9/', $2, now(), 'running')",
        [(f"apr_{number:04}", kept(number)) for number in range(secrets)],
    )
    await rows.execute(
        "INSERT INTO deliveries (delivery_id, approval_id, execution_id, node_id, status, url, target, secret,"
        " created_at, told_at, due_at) SELECT 'dlv_' || approval_id, approval_id, 'run-1', 'n', 'pending',"
        " callback_url, 'x', callback_secret, now(), now(), now() FROM approvals"
    )
    await rows.close()


def kept(number: int) -> str:
    secret = f"callback-secret-{number}"
    return VAULT.seal(secret, CALLBACK, bytes(NONCE_BYTES)) if number % 2 else secret


def test_everything_is_resealed_and_the_older_key_can_go(shell: Shell, database: Database, tmp_path: Path):
    ran(plant(database, 2500))
    legal = shell.json("senders", "create", "legal")["secret"]
    both = {"HOLDSHORT_MASTER_KEYS": f"{NEW_MASTER_KEY},{MASTER_KEY}"}
    old, new = sealed_by(VAULT.mark), sealed_by(NEW_VAULT.mark)
    before = shell.json("reseal", "--dry-run", **both)
    half = {"(not sealed)": 1250, old: 1250}
    assert before == {"newest": new, "secrets": {"senders": {old: 1}, "approvals": half, "deliveries": half}}
    done = shell.json("reseal", **both)
    assert (done["ok"], done["master_key"]) == (True, new)
    assert [(each["place"], each["resealed"], each["busy"]) for each in done["places"]] == [
        ("senders", 1, 0),
        ("approvals", 2500, 0),
        ("deliveries", 2500, 0),
    ]
    after = shell.json("reseal", "--dry-run", HOLDSHORT_MASTER_KEYS=NEW_MASTER_KEY)
    assert after["secrets"] == {"senders": {new: 1}, "approvals": {new: 2500}, "deliveries": {new: 2500}}
    assert signed_as(shell, tmp_path, legal, HOLDSHORT_MASTER_KEYS=NEW_MASTER_KEY)
    opened = [
        NEW_VAULT.open(row["callback_secret"], CALLBACK)
        for row in shell.sql("SELECT callback_secret FROM approvals ORDER BY approval_id")
    ]
    assert opened == [f"callback-secret-{number}" for number in range(2500)]
    noted = [data for type_, _, _, data in ran(of_history(database)) if type_ == "secrets.resealed"]
    assert sum(each["secrets"] for each in noted) == 5001
    assert {each["master_key"] for each in noted} == {new}


async def of_history(database: Database) -> list[tuple[str, str, str, dict[str, Any]]]:
    rows = await database.connect()
    try:
        return await told(rows)
    finally:
        await rows.close()


def test_a_secret_that_no_key_opens_ends_it_with_one_and_is_named(shell: Shell, database: Database):
    made = shell.json("senders", "create", "legal")
    alone = {"HOLDSHORT_MASTER_KEYS": NEW_MASTER_KEY}
    done = shell("reseal", **alone)
    assert done.returncode == 1
    assert f"1 secrets of senders open with no key that is given ({made['secret_id']})" in done.stderr
    assert json.loads(shell("reseal", "--json", **alone).stdout)["ok"] is False
    assert shell("reseal").returncode == 0
