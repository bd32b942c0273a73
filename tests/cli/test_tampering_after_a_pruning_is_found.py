"""After a pruning as before it: what is changed, removed or left there is found, and a pruning that was none is too."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from controlplane.cli.audit.verifying import verify_history
from controlplane.domain.audit import Fault
from tests.figures import Figures
from tests.owner import unguarded
from tests.postgres import Database
from tests.services.pruning import ended_runs, heads_of, now, opened, prune
from tests.services.sealing import seal
from tests.services.store import Store

PRUNED, KEPT = 4, 3
TABLES = ("history", "seals", "prunings")
FIRST = "(SELECT min(seq) FROM history WHERE type = 'execution.created')"
LEFT = "INSERT INTO history SELECT * FROM left_before WHERE seq"
RECORD = "UPDATE history SET data = data || '{changes}' WHERE type = 'history.pruned'"
BEFORE_ALL = (
    "INSERT INTO history (seq, xid, type, actor_kind, actor_name, actor_via, data)"
    " VALUES (0, '1', 'x', 'system', 'x', 'x', '{}')"
)


class Planted(NamedTuple):
    """What is done by someone with all rights; what is found with heads, and what without (None: the same)."""

    statements: Sequence[str]
    found: set[Fault]
    without: set[Fault] | None = None


def record(changes: str) -> str:
    return RECORD.format(changes=changes)


CHANGED, REMOVED, UNTRUE, LEFT_THERE = {Fault.CHANGED}, {Fault.REMOVED}, {Fault.PRUNING_UNTRUE}, {Fault.NOT_PRUNED}
PLANTED = {
    "a row changed": Planted([f"UPDATE history SET actor_name = 'x' WHERE seq = {FIRST}"], CHANGED),
    "a row removed": Planted([f"DELETE FROM history WHERE seq = {FIRST}"], REMOVED),
    "the next seal's rows removed": Planted(
        [f"DELETE FROM history WHERE seq BETWEEN {FIRST} AND {FIRST} + 5"], REMOVED
    ),
    "the record removed": Planted(["DELETE FROM history WHERE type = 'history.pruned'"], REMOVED | UNTRUE),
    "another one in the record": Planted([record('{"by": "nobody"}')], CHANGED),
    "more rows in the record": Planted([record('{"rows": 999}')], CHANGED | UNTRUE),
    "another digest in the record": Planted([record(f'{{"sha256": "{"0" * 64}"}}')], CHANGED | UNTRUE),
    "other seals in the record": Planted([record(f'{{"seals_sha256": "{"0" * 64}"}}')], CHANGED | UNTRUE),
    "a record that is none": Planted([record('{"rows": "many"}')], CHANGED | UNTRUE),
    "the mark removed": Planted(["DELETE FROM prunings"], REMOVED),
    "the mark of another transaction": Planted(["UPDATE prunings SET xid = '9'"], UNTRUE),
    "the mark moved on": Planted([f"UPDATE prunings SET seal = {PRUNED + 1}"], LEFT_THERE | UNTRUE),
    "the mark moved on over rows that were removed": Planted(
        [
            f"UPDATE prunings SET seal = {PRUNED + 1}",
            f"DELETE FROM history WHERE seq BETWEEN {FIRST} AND {FIRST} + 5",
        ],
        UNTRUE,
    ),
    "the mark moved back": Planted([f"UPDATE prunings SET seal = {PRUNED - 1}"], REMOVED | UNTRUE),
    "the mark moved beyond everything": Planted(["UPDATE prunings SET seal = 999"], LEFT_THERE | UNTRUE),
    "a mark without a record": Planted([f"INSERT INTO prunings VALUES ({PRUNED + 1})"], LEFT_THERE | UNTRUE),
    "a mark with a record of other figures": Planted(
        [
            f"""
            WITH marked AS (INSERT INTO prunings VALUES ({PRUNED + 1}))
            INSERT INTO history (type, actor_kind, actor_name, actor_via, data)
            SELECT type, actor_kind, actor_name, actor_via, data || '{{"seal": {PRUNED + 1}}}'
            FROM history WHERE type = 'history.pruned'
            """,
        ],
        LEFT_THERE | UNTRUE,
    ),
    "a row left there": Planted([f"{LEFT} = 3"], LEFT_THERE),
    "all rows of a seal left there": Planted([f"{LEFT} BETWEEN 7 AND 12"], LEFT_THERE),
    "every row left there": Planted([f"{LEFT} > 0"], LEFT_THERE),
    "a row put before the first": Planted([BEFORE_ALL], LEFT_THERE),
    "a pruned seal removed": Planted(["DELETE FROM seals WHERE number = 2"], {Fault.SEALS_MISSING} | UNTRUE),
    "the first seals removed": Planted(["DELETE FROM seals WHERE number < 3"], {Fault.SEALS_MISSING} | UNTRUE),
    "a pruned seal's digest": Planted(
        ["UPDATE seals SET sha256 = sha256(sha256) WHERE number = 2"], {Fault.REWRITTEN} | UNTRUE, UNTRUE
    ),
    "the last pruned seal's digest": Planted(
        [f"UPDATE seals SET sha256 = sha256(sha256) WHERE number = {PRUNED}"],
        {Fault.REWRITTEN} | CHANGED | UNTRUE,
        CHANGED | UNTRUE,
    ),
    "a pruned seal's count": Planted(["UPDATE seals SET rows = rows + 1 WHERE number = 2"], UNTRUE),
    "two pruned seals' counts": Planted(
        ["UPDATE seals SET rows = rows + 1 WHERE number = 2", "UPDATE seals SET rows = rows - 1 WHERE number = 3"],
        UNTRUE,
    ),
    "a pruned seal's moment": Planted(["UPDATE seals SET at = at - interval '1 y' WHERE number = 2"], UNTRUE),
    "everything after the pruning cut off": Planted(
        [
            f"DELETE FROM history WHERE seq >= {FIRST}",
            f"DELETE FROM seals WHERE number > {PRUNED}",
        ],
        {Fault.CUT_OFF} | UNTRUE,
        UNTRUE,
    ),
}


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    """Four pruned seals and three that are not, and the record of it in one more."""
    async with opened(database) as made:
        await ended_runs(made, PRUNED)
        sql: Any = await database.connect()
        await sql.execute("ALTER TABLE history ALTER seq DROP IDENTITY")
        await sql.execute("CREATE SEQUENCE numbers START 1000")
        await sql.execute("CREATE TABLE left_before AS TABLE history")
        await sql.execute("ALTER TABLE history ALTER seq SET DEFAULT nextval('numbers')")
        before = await now(made)
        await ended_runs(made, KEPT, first=10)
        assert (await prune(made, before)).pruned_to == PRUNED
        assert await seal(made) == 1
        for table in TABLES:
            await sql.execute(f"CREATE TABLE {table}_before AS TABLE {table}")
        await sql.close()
        yield made


async def faults(store: Store, heads: Path | None) -> set[Fault]:
    return {finding.fault for finding in (await verify_history(store.database.url, heads)).findings}


async def test_each_planted_tampering_is_found(store: Store, tmp_path: Path, figures: Figures):
    heads, sql = await heads_of(store, tmp_path / "heads"), await store.database.connect()
    assert await faults(store, heads) == set()
    seen = {}
    for what, planted in PLANTED.items():
        async with unguarded(sql):
            for statement in planted.statements:
                assert not (await sql.execute(statement)).endswith(" 0"), statement
        seen[what] = ([await faults(store, heads), await faults(store, None)], planted)
        async with unguarded(sql):
            await sql.execute(f"TRUNCATE {', '.join(TABLES)}")
            for table in TABLES:
                await sql.execute(f"INSERT INTO {table} SELECT * FROM {table}_before")
    await sql.close()
    due = {what: [p.found, p.found if p.without is None else p.without] for what, (_, p) in seen.items()}
    assert {what: found for what, (found, _) in seen.items() if found != due[what]} == {}
    assert await faults(store, heads) == set()
    figures("tampering after a pruning", planted=len(seen), found=sum(1 for found, _ in seen.values() if found[1]))


async def test_a_finding_names_the_seal_and_what_is_there(store: Store):
    sql = await store.database.connect()
    async with unguarded(sql):
        await sql.execute(f"{LEFT} BETWEEN 8 AND 9")
    await sql.close()
    (finding,) = (await verify_history(store.database.url, None)).findings
    assert (finding.seal, finding.first_seq, finding.last_seq) == (2, 7, 12)
    assert finding.what == "2 rows there that are said to be pruned"
