"""`holdshort audit prune` removes the oldest rows by whole seals, says why it stops, and leaves what can be proven."""

import json
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from controlplane.cli.audit import pruning as pruning_command
from controlplane.cli.audit.verifying import verify_history
from controlplane.cli.faults import Fault
from controlplane.domain.approvals import ApprovalStatus
from controlplane.domain.executions import ExecutionStatus
from controlplane.services import pruning
from controlplane.services.pruning import HistoryUntrue, NotYet, PrunedByAnother
from tests.cli.processes import run
from tests.owner import unguarded
from tests.postgres import Database
from tests.roles import runtime_role
from tests.services.pruning import ended_runs, exported, heads_of, now, opened, prune
from tests.services.sealing import record, seal, verified
from tests.services.store import Rows, Store

RUNS = 4
ROWS = 6  # of each


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    """Four seals, each of a run that has ended."""
    async with opened(database) as made:
        await ended_runs(made, RUNS)
        yield made


@pytest.fixture
async def rows(database: Database) -> AsyncIterator[Rows]:
    connection = await database.connect()
    yield Rows(connection)
    await connection.close()


def audit(store: Store, *arguments: str, **environ: str) -> Any:
    return run("audit", *arguments, HOLDSHORT_DATABASE_URL=store.database.url, **environ)


async def test_rows_leave_their_seals_stay_and_the_rest_is_proven(store: Store, rows: Rows, tmp_path: Path):
    heads = await heads_of(store, tmp_path / "heads")
    copy = await exported(store, tmp_path / "copy")
    before, size = await now(store), await rows.value("SELECT count(*) FROM history")
    await ended_runs(store, 1, first=9)
    pruned = audit(store, "prune", "--before", before.isoformat(), "--exported", str(copy))
    assert (pruned.returncode, pruned.stderr) == (0, "")
    assert f"pruned      {size} rows in {RUNS} seals\n" in pruned.stdout
    assert "stopped at  seal 5: it is of 20" in pruned.stdout
    assert await rows.value("SELECT count(*) FROM history WHERE execution_id <> 'ended-9'") == 0
    assert await rows.value("SELECT count(*) FROM seals") == RUNS + 1
    checked = audit(store, "verify", "--heads", str(heads))
    assert checked.returncode == 0, checked.stdout
    assert f"pruned      up to seal {RUNS} ({size} rows), at last by " in checked.stdout
    assert "4 compared" in checked.stdout
    assert "Rows that were pruned: the seals that stay prove a copy of them" in checked.stdout


async def test_it_is_recorded_in_history_with_the_role_that_did_it(store: Store, rows: Rows):
    await prune(store)
    (found,) = await rows.sql.fetch("SELECT actor_kind, actor_name, actor_via, data FROM history")
    data = json.loads(found["data"])
    assert tuple(found.values())[:3] == ("person", "operator", "cli")
    assert data["by"] == await rows.value("SELECT session_user")
    assert (data["seal"], data["rows"], data["rows_now"], data["exported"]) == (RUNS, ROWS * RUNS, ROWS * RUNS, False)
    assert bytes.fromhex(data["sha256"]) == await rows.value("SELECT sha256 FROM seals WHERE number = $1", RUNS)


async def test_it_goes_on_where_it_ended_and_its_records_may_leave_too(store: Store, rows: Rows):
    for number in range(3):
        await ended_runs(store, 1, first=10 + number)
        done = await prune(store)
        assert done.pruned_to == await rows.value("SELECT max(number) FROM seals")
        found = await verified(store)
        assert found.pruned is not None
        assert found.pruned.seal == done.pruned_to
        assert found.pruned.record is not None
        assert found.pruned.record.rows == await rows.value("SELECT sum(rows) FROM seals")
        await seal(store)
    assert await rows.column("SELECT type FROM history") == ["history.pruned"]
    again = await prune(store)
    assert (again.seals, (await prune(store)).seals) == (1, 0)


async def test_a_dry_run_changes_nothing_and_names_the_same(store: Store, rows: Rows):
    size = await rows.value("SELECT count(*) FROM history")
    done = audit(store, "prune", "--dry-run", "--json", "--before", (await now(store)).isoformat())
    assert done.returncode == 0
    assert json.loads(done.stdout) == {
        "dry_run": True,
        "seals": RUNS,
        "rows": size,
        "pruned_to": RUNS,
        "stopped": None,
    }
    assert await rows.value("SELECT count(*) FROM history") == size
    assert await rows.value("SELECT count(*) FROM prunings") == 0


async def waits(store: Store, rows: Rows) -> None:
    await store.start("goes-on")
    await store.ask("a", "goes-on")


async def runs_on(store: Store, rows: Rows) -> None:
    await store.start("goes-on")


async def is_not_told(store: Store, rows: Rows) -> None:
    await waits(store, rows)
    approval_id = await rows.value("SELECT approval_id FROM approvals WHERE execution_id = 'goes-on'")
    await store.set_callback(approval_id, "http://127.0.0.1:9/")
    await store.decide(approval_id, ApprovalStatus.REJECTED)


async def has_not_seen_its_end(store: Store, rows: Rows) -> None:
    await store.start("goes-on")
    await store.report(ExecutionStatus.CANCELLED, "goes-on")
    await rows.sql.execute(
        "UPDATE executions SET dispatched = true, outcome_pending = true WHERE execution_id = 'goes-on'"
    )


async def is_to_be_sent(store: Store, rows: Rows) -> None:
    await store.start("goes-on")
    await store.report(ExecutionStatus.CANCELLED, "goes-on")
    await rows.sql.execute(
        "INSERT INTO dispatches (execution_id, node_id, kind, due_at, created_at, start_by)"
        " VALUES ('goes-on', 'node-1', 'cancel', now(), now(), now())"
    )


async def is_parked(store: Store, rows: Rows) -> None:
    await rows.sql.execute(
        "INSERT INTO history (type, approval_request_id, actor_kind, actor_name, actor_via, data)"
        " VALUES ('webhook.parked', 'early', 'sender', 'desk', 'webhook', '{}')"
    )
    await rows.sql.execute(
        "INSERT INTO parked (parked_id, sender, approval_request_id, decision, feedback, keys, received_at, expires_at)"
        " VALUES ('p', 'desk', 'early', 'approved', '', '{}', now(), now() + interval '1 h')"
    )


GOES_ON: dict[str, Callable[[Store, Rows], Coroutine[Any, Any, None]]] = {
    "execution goes-on has not ended: it is waiting": waits,
    "execution goes-on has not ended: it is running": runs_on,
    "a delivery of execution goes-on is pending": is_not_told,
    "the code of execution goes-on has not seen its end": has_not_seen_its_end,
    "something is to be sent to the agent of execution goes-on": is_to_be_sent,
    "an early answer to early waits for its question": is_parked,
}


@pytest.mark.parametrize("why", GOES_ON)
async def test_it_stops_before_what_goes_on(store: Store, rows: Rows, why: str):
    await GOES_ON[why](store, rows)
    first = await rows.value("SELECT max(seq) FROM history WHERE execution_id IS NULL OR execution_id = 'goes-on'")
    await seal(store)
    await ended_runs(store, 1, first=20)
    done = await prune(store)
    assert done.pruned_to == RUNS
    assert done.stopped is not None
    assert (done.stopped.seal, done.stopped.why) == (RUNS + 1, why)
    assert done.stopped.seq is not None
    assert done.stopped.seq <= first
    kept = set(await rows.column("SELECT DISTINCT execution_id FROM history WHERE type <> 'history.pruned'"))
    assert kept == {None if why.startswith("an early") else "goes-on", "ended-20"}
    await verified(store)


async def test_a_run_that_began_in_the_first_seal_keeps_all(store: Store, rows: Rows):
    async with unguarded(rows.sql):
        await rows.sql.execute(
            "UPDATE executions SET status = 'running', ended_at = NULL WHERE execution_id = 'ended-1'"
        )
    done = await prune(store)
    assert (done.seals, done.stopped and done.stopped.seal) == (0, 1)
    assert await rows.value("SELECT count(*) FROM prunings") == 0


async def test_nothing_leaves_without_a_copy_unless_that_is_said(store: Store, rows: Rows, tmp_path: Path):
    before = ("prune", "--before", "2000-01-01")
    for arguments in (before, (*before, "--without-export", "--exported", str(tmp_path))):
        refused = audit(store, *arguments)
        assert refused.returncode == 2
        assert "give the file that `holdshort audit export` wrote as --exported, or else --with" in refused.stderr
    missing = audit(store, *before, "--exported", str(tmp_path / "none"))
    assert (missing.returncode, "is no file" in missing.stderr) == (2, True)
    nothing = audit(store, *before, "--without-export")
    assert nothing.returncode == 0
    assert "pruned      0 rows in 0 seals\nstopped at  seal 1: it is of 20" in nothing.stdout


def without(number: int) -> Callable[[list[bytes]], list[bytes]]:
    return lambda lines: lines[: number - 1] + lines[number:]


COPIES: dict[str, tuple[Callable[[list[bytes]], list[bytes]], int]] = {
    "empty": (lambda lines: [], 1),
    "cut off": (lambda lines: lines[:-3], RUNS),
    "cut off in a line": (lambda lines: [*lines[:-2], lines[-2][:40]], RUNS),
    "without its first row": (without(1), 1),
    "without a row": (without(9), 2),
    "with a changed row": (lambda lines: [line.replace(b"ended-2", b"ended-7") for line in lines], 2),
    "with a row twice": (lambda lines: lines[:9] + lines[8:], 2),
    "in another order": (lambda lines: [*lines[:8], lines[9], lines[8], *lines[10:]], 2),
}


@pytest.mark.parametrize("what", COPIES)
async def test_a_copy_that_does_not_fit_is_refused(store: Store, rows: Rows, tmp_path: Path, what: str):
    copy = await exported(store, tmp_path / "copy")
    changed, due = COPIES[what]
    copy.write_bytes(b"".join(changed(copy.read_bytes().splitlines(keepends=True))))
    with pytest.raises(Fault, match=rf"seal {due}: .*run `holdshort audit export` anew"):
        await prune(store, copy=copy)
    assert await rows.value("SELECT count(*) FROM history") == ROWS * RUNS


async def test_a_copy_need_have_no_more_than_what_leaves(store: Store, tmp_path: Path):
    copy = await exported(store, tmp_path / "copy")
    lines = copy.read_bytes().splitlines(keepends=True)
    before = await now(store)
    await ended_runs(store, 1, first=20)
    assert (await prune(store, before, copy=copy)).pruned_to == RUNS
    await ended_runs(store, 1, first=21)
    later = await exported(store, tmp_path / "later")
    assert json.loads(later.read_bytes().splitlines()[0])["pruned"]["seal"] == RUNS
    # Seals are of no use in it, and rows that left before do no harm.
    only_rows = [line for line in later.read_bytes().splitlines(keepends=True) if not line.startswith(b'{"seal"')]
    later.write_bytes(b"".join(lines + only_rows))
    assert (await prune(store, copy=later)).seals == 2


async def test_what_was_sealed_is_exported_behind_what_was_pruned(store: Store, tmp_path: Path):
    before = await now(store)
    await ended_runs(store, 1, first=20)
    await prune(store, before)
    await seal(store)
    lines = [json.loads(line) for line in (await exported(store, tmp_path / "copy")).read_bytes().splitlines()]
    assert lines[0]["pruned"]["record"]["seal"] == RUNS
    assert [line["seal"] for line in lines if "seal" in line] == [RUNS + 1, RUNS + 2]
    assert [line.get("type") for line in lines[1:]][-2:] == ["history.pruned", None]


async def test_what_does_not_fit_its_seal_stays_as_evidence(store: Store, rows: Rows):
    async with unguarded(rows.sql):
        await rows.sql.execute("UPDATE history SET actor_name = 'somebody else' WHERE seq = 15")
    with pytest.raises(HistoryUntrue, match="Seal 3: 6 rows, or the seal itself, changed"):
        await prune(store)
    assert await rows.value("SELECT count(*) FROM history") == ROWS * RUNS
    assert await rows.value("SELECT count(*) FROM prunings") == 0


async def test_a_mark_that_nothing_records_is_not_gone_on_from(store: Store, rows: Rows):
    await rows.sql.execute("INSERT INTO prunings (seal) VALUES (2)")
    with pytest.raises(HistoryUntrue, match="Seal 2: marked as pruned, and no row of history records it"):
        await prune(store)


async def test_the_servers_own_role_is_refused(store: Store, rows: Rows):
    async with runtime_role(store.database) as role:
        refused = run(
            *("audit", "prune", "--without-export", "--before", (await now(store)).isoformat()),
            HOLDSHORT_DATABASE_URL=role.url,
        )
        assert refused.returncode == 1
        assert "does not own history, so it may not prune it; set HOLDSHORT_MIGRATION_DATABASE_URL" in refused.stderr
        done = run(
            *("audit", "prune", "--without-export", "--before", (await now(store)).isoformat()),
            HOLDSHORT_DATABASE_URL=role.url,
            HOLDSHORT_MIGRATION_DATABASE_URL=store.database.url,
        )
        assert done.returncode == 0, done.stderr
        assert run("audit", "verify", HOLDSHORT_DATABASE_URL=role.url).returncode == 0
    assert await rows.column("SELECT type FROM history") == ["history.pruned"]


async def test_a_date_that_has_not_come_is_refused(store: Store):
    with pytest.raises(NotYet):
        await prune(store, await now(store) + timedelta(hours=1))


async def test_only_one_prunes_at_a_time(store: Store, rows: Rows):
    before = await now(store)
    take = "SELECT pg_advisory_xact_lock(hashtextextended('holdshort.prune', 0))"
    async with rows.holding(take):
        with pytest.raises(PrunedByAnother):
            await prune(store, before)
    assert (await prune(store, before)).seals == RUNS


async def test_a_lock_that_somebody_holds_is_not_waited_for_long(
    store: Store, rows: Rows, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pruning, "LOCK_TIMEOUT", "10ms")
    monkeypatch.setattr(pruning, "ROWS_AT_ONCE", ROWS)
    before = await now(store)
    async with rows.holding("SELECT FROM history WHERE seq = 15 FOR UPDATE"):
        with pytest.raises(Fault, match=r"^pruned up to seal 2, then .*lock timeout\); run this again"):
            await prune(store, before)
    await verified(store)
    assert (await prune(store, before)).seals == 2


def prune_after_the_first_look(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prune once, right after somebody has looked for the first time whether something was pruned."""
    newest, asked = pruning.newest, 0

    async def prune_after_the_first(conn: Any) -> Any:
        nonlocal asked
        found = await newest(conn)
        asked += 1
        if asked == 1:
            await prune(store)
        return found

    monkeypatch.setattr(pruning, "newest", prune_after_the_first)


async def test_verifying_begins_anew_when_something_is_pruned_meanwhile(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    prune_after_the_first_look(store, monkeypatch)
    found = await verify_history(store.database.url, None)
    assert found.findings == []
    assert found.pruned is not None
    assert "pruned meanwhile; all is compared anew" in capsys.readouterr().err


async def test_an_export_beside_a_pruning_says_that_it_may_not_be_whole(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    prune_after_the_first_look(store, monkeypatch)
    with pytest.raises(Fault, match="pruned meanwhile"):
        await exported(store, tmp_path / "copy")


async def test_long_work_says_how_far_it_is(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(pruning_command, "SAID_EVERY_SECONDS", 0.0)
    monkeypatch.setattr(pruning, "SEALS_AT_ONCE", 2)
    await prune(store)
    said = capsys.readouterr().err
    assert "12 rows in 2 seals looked through" in said
    assert "24 of 24 rows pruned, up to seal 4 of 4" in said


async def test_unsealed_rows_stay(store: Store, rows: Rows):
    await record(store, "unsealed")
    done = await prune(store)
    assert done.stopped is None
    assert sorted(await rows.column("SELECT type FROM history")) == ["history.pruned", "unsealed"]
