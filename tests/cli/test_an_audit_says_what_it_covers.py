"""`holdshort audit`: what it prints, with which end, what it says of its limits, and a copy that proves itself."""

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from controlplane.cli.audit import verifying
from controlplane.cli.audit.verifying import verify_history
from controlplane.domain.audit import head_line
from controlplane.storage import seals
from tests.cli.processes import run
from tests.owner import UNGUARD, unguarded
from tests.postgres import Database
from tests.services.sealing import record, seal
from tests.services.store import Store

# As `controlplane.domain.seals` writes them, in this order; spelled again, as somebody else would.
COLUMNS = [
    *("seq", "xid", "at", "type", "execution_id", "approval_id", "approval_request_id", "node_id"),
    *("actor_kind", "actor_name", "actor_via", "actor_address", "settles", "data", "actor_id"),
]


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    """Three seals, and one row after them."""
    made = Store(database)
    await made.start()
    await seal(made)
    asked = await made.ask()
    await seal(made)
    await made.decide(asked.approval_id, feedback="f\u00edne: 1,2\u2028")
    await seal(made)
    await record(made, "unsealed")
    yield made
    await made.engine.dispose()


async def write_heads(store: Store, file: Path) -> Path:
    async with store.tx() as conn:
        lines = [head_line(each) for each in await seals.after(conn, 0, 100)]
    await asyncio.to_thread(file.write_bytes, b"".join(lines))
    return file


def audit(store: Store, *arguments: str, **environ: str) -> Any:
    return run("audit", *arguments, HOLDSHORT_DATABASE_URL=store.database.url, **environ)


async def change(store: Store, statement: str) -> None:
    connection = await store.database.connect()
    async with unguarded(connection):
        await connection.execute(statement)
    await connection.close()


async def test_a_whole_history_ends_with_0_and_says_what_is_not_covered(store: Store, tmp_path: Path):
    heads = await write_heads(store, tmp_path / "heads")
    without, with_heads = audit(store, "verify"), audit(store, "verify", "--heads", str(heads))
    assert [without.returncode, with_heads.returncode] == [0, 0], without.stdout + without.stderr
    for printed in (without.stdout, with_heads.stdout):
        assert " rows in 3 seals, the last of 20" in printed
        assert "unsealed    1 rows\n" in printed
        assert "found       nothing\n" in printed
        assert "a trigger only: the role of HOLDSHORT_DATABASE_URL owns history" in printed
        assert "which no seal covers yet" in printed
        assert "who also rewrites the heads" in printed
    assert "heads       3 compared\n" in with_heads.stdout
    assert "cut off together with its seals" in without.stdout
    assert "cut off together with its seals" not in with_heads.stdout


async def test_what_is_found_is_printed_and_ends_with_1(store: Store, tmp_path: Path):
    heads = await write_heads(store, tmp_path / "heads")
    await change(store, "UPDATE history SET actor_name = 'somebody else' WHERE type = 'approval.requested'")
    await change(store, "DELETE FROM seals WHERE number = 3")
    done = audit(store, "verify", HOLDSHORT_AUDIT_HEADS=str(heads))
    assert done.returncode == 1
    assert "found       2\n" in done.stdout
    assert "  seal 2, rows 2 to 3: 2 rows, or the seal itself, changed or put into another order\n" in done.stdout
    assert "  seal 3, rows 4 to " in done.stdout
    assert "the end was cut off: seal 3 was written down elsewhere, here 2 is the last" in done.stdout
    assert done.stderr == "Error: history is not what was sealed\n"


async def test_programs_get_the_same_as_json(store: Store, tmp_path: Path):
    heads = await write_heads(store, tmp_path / "heads")
    heads.write_bytes(heads.read_bytes() + b'{"number": 9, "sha')
    whole = audit(store, "verify", "--json", "--heads", str(heads))
    assert whole.returncode == 0
    document = json.loads(whole.stdout)
    assert (document["ok"], document["seals"], document["unsealed"], document["findings"]) == (True, 3, 1, [])
    assert (document["heads"], document["heads_unreadable"], document["guarded_by_role"]) == (3, 1, False)
    assert len(document["not_covered"]) == 3
    await change(store, "DELETE FROM history WHERE seq = 2")
    done = audit(store, "verify", "--json")
    assert done.returncode == 1
    document = json.loads(done.stdout)
    (finding,) = document["findings"]
    assert (document["ok"], document["heads"], document["more"]) == (False, None, 0)
    assert (finding["fault"], finding["seal"], finding["first_seq"], finding["last_seq"]) == ("removed", 2, 2, 3)


async def test_a_guard_that_was_left_off_is_found(store: Store):
    connection = await store.database.connect()
    await connection.execute(UNGUARD)
    await connection.close()
    done = audit(store, "verify")
    assert done.returncode == 1
    assert "history is open to changes: its triggers are off, or gone" in done.stdout


async def test_a_database_that_counts_its_transactions_anew_is_found(store: Store):
    await change(store, "UPDATE seals SET last_xid = '8589934599' WHERE number = 3")
    done = audit(store, "verify")
    assert done.returncode == 1
    assert "nothing new is sealed; stop it and raise its counter with pg_resetwal (--epoch=2 --next-t" in done.stdout


async def test_rows_that_nobody_seals_are_told_of(store: Store):
    await change(store, "UPDATE history SET at = at - interval '2 hours' WHERE type = 'unsealed'")
    done = audit(store, "verify")
    assert done.returncode == 0
    assert "unsealed    1 rows, the oldest for 720" in done.stdout


async def test_long_work_says_how_far_it_is(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(verifying, "SAID_EVERY_SECONDS", 0.0)
    await verify_history(store.database.url, None)
    assert "rows, 3 of 3 seals compared" in capsys.readouterr().err


async def test_as_many_findings_are_kept_as_fit(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(verifying, "KEPT_FINDINGS", 2)
    await change(store, "UPDATE history SET actor_name = 'somebody else'")
    found = await verify_history(store.database.url, None)
    assert (len(found.findings), found.more) == (2, 1)


def test_without_a_database_or_with_heads_that_are_not_there_nothing_is_tried(tmp_path: Path):
    assert run("audit", "verify").returncode == 2
    assert run("audit", "export").returncode == 2
    missing = run("audit", "verify", "--heads", str(tmp_path / "none"), HOLDSHORT_DATABASE_URL="postgresql://h/d")
    assert (missing.returncode, len(missing.stderr.splitlines())) == (2, 1)
    assert "is no file" in missing.stderr


def recomputed(lines: list[dict[str, Any]], raw: list[bytes]) -> list[tuple[str, str]]:
    """Each seal's digest as it was exported, and as it follows from the lines before it."""

    def line(texts: list[str | None]) -> bytes:
        return b",".join(b"-" if t is None else b"%d:%b" % (len(t.encode()), t.encode()) for t in texts) + b"\n"

    found, previous, rows = [], "0" * 64, b""
    for document, text in zip(lines, raw, strict=True):
        if "seal" in document:
            own = line([str(document["seal"]), document["at"], str(document["rows"])])
            made = hashlib.sha256(b"holdshort seal 1\n" + previous.encode() + b"\n" + rows + own).hexdigest()
            previous, rows = document["sha256"], b""
            found.append((previous, made))
        else:
            data = text.partition(b',"data":')[2].rpartition(b',"actor_id":')[0].decode()
            told = document | {"seq": str(document["seq"]), "settles": str(document["settles"]).lower(), "data": data}
            rows += line([told[name] for name in COLUMNS])
    return found


async def test_a_copy_is_verified_without_this_program(store: Store):
    done = audit(store, "export")
    assert (done.returncode, done.stderr) == (0, "")
    raw = done.stdout.encode().splitlines()
    lines = [json.loads(each) for each in raw]
    assert [next(iter(each)) for each in lines].count("seal") == 3
    digests = recomputed(lines, raw)
    assert len(digests) == 3
    assert [given for given, _ in digests] == [made for _, made in digests]
    assert lines[-1]["type"] == "unsealed"
    assert [list(each) for each in lines if "seal" not in each] == [COLUMNS] * (len(lines) - 3)
    assert [each["seq"] for each in lines if "seal" not in each] == list(range(1, len(lines) - 2))


async def test_a_reader_that_has_read_enough_ends_it_quietly(store: Store):
    ends, begins = os.pipe()
    os.close(ends)
    command = [sys.executable, "-m", "controlplane.cli", "audit", "export"]
    environ = {"PATH": os.environ["PATH"], "HOLDSHORT_DATABASE_URL": store.database.url}
    run_it = partial(subprocess.run, command, env=environ, stdout=begins, stderr=subprocess.PIPE, check=False)
    done = await asyncio.to_thread(run_it)
    os.close(begins)
    assert (done.returncode, done.stderr) == (1, b"")


async def test_a_part_is_taken_out_with_its_seals(store: Store):
    def exported(*arguments: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in audit(store, "export", *arguments).stdout.encode().splitlines()]

    part = exported("--from", "2", "--to", "3")
    assert part == exported()[2:5]
    assert [each.get("seal", each.get("seq")) for each in part] == [2, 3, 2]
    assert exported("--from", "1000") == []
    assert audit(store, "export", "--from", "0").returncode == 2
