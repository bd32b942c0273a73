"""Whoever has all rights in the database and changes history is found: where, and how; by the heads at the latest."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from controlplane.cli.audit.verifying import Verified, verify_history
from controlplane.domain.audit import Fault, head_line
from controlplane.domain.seals import BEGINNING, COLUMNS
from controlplane.domain.seals import seal as sealed
from controlplane.storage import seals
from tests.figures import Figures
from tests.owner import unguarded
from tests.postgres import Database
from tests.services.sealing import record, seal
from tests.services.store import Store

SEALS, ROWS = 6, 5
LAST = SEALS * ROWS
# A row in the middle of the third seal, and one of the same transaction beside it.
ROW, BESIDE = 13, 14
XID = "(SELECT xid FROM history WHERE seq = 20)"
SWAP = "UPDATE history h SET type = o.type, data = o.data, at = o.at FROM history o WHERE (h.seq, o.seq)"
OTHERS: dict[str, str] = {
    "xid": "'9'",
    "at": "at + interval '1 microsecond'",
    "settles": "NOT settles",
    "data": """data || '{"to": "rejected"}'""",
    "actor_address": "'10.0.0.9'",
    "approval_id": "'apr_9'",
    "approval_request_id": "'q-9'",
    "actor_id": "'key9'",
    "actor_kind": "'person'",
}


class Planted(NamedTuple):
    """What is done by someone with all rights; what is found with heads, and what without (None: the same)."""

    statements: Sequence[str]
    found: set[Fault]
    without: set[Fault] | None = None
    anew: Sequence[int] = ()  # these seals are made again, to fit the rows as they are then


def copy(row: int, **changes: str) -> str:
    """A row added that is as another one, but for some columns."""
    columns = ", ".join(changes.get(name, name) for name in COLUMNS)
    return f"INSERT INTO history ({', '.join(COLUMNS)}) SELECT {columns} FROM history WHERE seq = {row}"


def update(change: str, row: int = ROW) -> str:
    return f"UPDATE history SET {change} WHERE seq = {row}"


CHANGED, REMOVED, INSERTED = {Fault.CHANGED}, {Fault.REMOVED}, {Fault.INSERTED}
MISSING, CUT_OFF, REWRITTEN = {Fault.SEALS_MISSING}, {Fault.CUT_OFF}, {Fault.REWRITTEN}
NOTHING: set[Fault] = set()
PLANTED = {
    **{
        f"{name} of a row": Planted([update(f"{name} = {OTHERS.get(name, repr('something else'))}")], CHANGED)
        for name in COLUMNS[2:]
    },
    "the number of a row": Planted([update("seq = 1013")], CHANGED),
    "the transaction of a row, in its order": Planted(
        [update("xid = (SELECT xid FROM history WHERE seq = 14)")], CHANGED
    ),
    "the transaction of a row, to the front": Planted([update("xid = '9'")], REMOVED | INSERTED),
    "a row at no time": Planted([update("at = 'infinity'")], CHANGED),
    "a row before our time": Planted([update("at = '4000-01-01 BC'")], CHANGED),
    "nothing made empty": Planted([update("actor_id = ''")], CHANGED),
    "text moved to the next column": Planted([update("actor_name = 'node-1a', actor_via = 'pi'")], CHANGED),
    "how a number is written": Planted([update("""data = '{"n": 1.0}'""")], CHANGED),
    "every row": Planted(["UPDATE history SET actor_name = 'somebody else'"], CHANGED),
    "the first row": Planted([update("actor_name = 'somebody else'", 1)], CHANGED),
    "the last sealed row": Planted([update("actor_name = 'somebody else'", LAST)], CHANGED),
    "one row deleted": Planted([f"DELETE FROM history WHERE seq = {ROW}"], REMOVED),
    "the first row deleted": Planted(["DELETE FROM history WHERE seq = 1"], REMOVED),
    "the last row deleted": Planted([f"DELETE FROM history WHERE seq = {LAST}"], REMOVED),
    "a whole seal's rows deleted": Planted(["DELETE FROM history WHERE seq BETWEEN 11 AND 15"], REMOVED),
    "a range over seals deleted": Planted(["DELETE FROM history WHERE seq BETWEEN 9 AND 22"], REMOVED),
    "every row deleted": Planted(["DELETE FROM history"], REMOVED),
    "one row inserted": Planted([copy(ROW, seq="99")], INSERTED),
    "one inserted before the first": Planted([copy(1, seq="0", xid="'1'")], INSERTED),
    "one inserted between two seals": Planted([copy(10, seq="99")], INSERTED),
    "a thousand inserted": Planted([copy(ROW, seq="1000 + generate_series(1, 1000)")], INSERTED),
    "one replaced by another": Planted([f"DELETE FROM history WHERE seq = {ROW}", copy(BESIDE, seq="13")], CHANGED),
    "one moved to another seal": Planted(
        [update("seq = 31, xid = (SELECT xid FROM history WHERE seq = 26)")], REMOVED | INSERTED
    ),
    "two swapped by their content": Planted([f"{SWAP} IN ((13, 14), (14, 13))"], CHANGED),
    "two swapped by their numbers": Planted(
        [
            "UPDATE history SET seq = -13 WHERE seq = 13",
            "UPDATE history SET seq = 13 WHERE seq = 14",
            "UPDATE history SET seq = 14 WHERE seq = -13",
        ],
        CHANGED,
    ),
    "two swapped over seals": Planted([f"{SWAP} IN ((3, 23), (23, 3))"], CHANGED),
    "all in the reverse order": Planted(
        ["UPDATE history SET seq = seq - 1000", f"UPDATE history SET seq = {LAST + 1} - (seq + 1000)"],
        REMOVED | INSERTED | CHANGED,
    ),
    "a seal deleted": Planted(["DELETE FROM seals WHERE number = 3"], MISSING),
    "the first seal deleted": Planted(["DELETE FROM seals WHERE number = 1"], MISSING),
    "a seal and its rows deleted": Planted(
        ["DELETE FROM seals WHERE number = 3", "DELETE FROM history WHERE seq BETWEEN 11 AND 15"], MISSING
    ),
    "the beginning deleted with its seals": Planted(
        ["DELETE FROM seals WHERE number < 4", "DELETE FROM history WHERE seq < 16"], MISSING
    ),
    "a seal's digest": Planted(
        ["UPDATE seals SET sha256 = sha256(sha256) WHERE number = 3"], CHANGED | REWRITTEN, CHANGED
    ),
    "the last seal's digest": Planted(
        [f"UPDATE seals SET sha256 = sha256(sha256) WHERE number = {SEALS}"], CHANGED | REWRITTEN, CHANGED
    ),
    "a seal's moment": Planted(["UPDATE seals SET at = at - interval '1 day' WHERE number = 3"], CHANGED),
    "a seal at no time": Planted(["UPDATE seals SET at = 'infinity' WHERE number = 3"], CHANGED),
    "a seal's count": Planted(["UPDATE seals SET rows = rows + 1 WHERE number = 3"], REMOVED),
    "where a seal begins": Planted(["UPDATE seals SET first_seq = first_seq + 1 WHERE number = 3"], CHANGED),
    "where a seal ends": Planted(["UPDATE seals SET last_seq = last_seq - 1 WHERE number = 3"], REMOVED | INSERTED),
    "where a seal ends, beyond everything": Planted(
        ["UPDATE seals SET last_xid = '999999999' WHERE number = 3"], REMOVED | INSERTED
    ),
    "two seals exchanged": Planted(
        [
            "UPDATE seals SET number = number + 100 WHERE number IN (3, 4)",
            "UPDATE seals SET number = 107 - number WHERE number > 100",
        ],
        REMOVED | INSERTED | CHANGED | REWRITTEN,
        REMOVED | INSERTED | CHANGED,
    ),
    "the end cut off within a seal": Planted(
        ["DELETE FROM history WHERE seq > 23", "DELETE FROM seals WHERE number > 5"], REMOVED | CUT_OFF, REMOVED
    ),
    "the end cut off with its seals": Planted(
        ["DELETE FROM history WHERE seq > 20", "DELETE FROM seals WHERE number > 4"], CUT_OFF, NOTHING
    ),
    "the last seal cut off": Planted([f"DELETE FROM seals WHERE number = {SEALS}"], CUT_OFF, NOTHING),
    "everything gone": Planted(["DELETE FROM history", "DELETE FROM seals"], CUT_OFF, NOTHING),
    "all seals gone": Planted(["DELETE FROM seals"], CUT_OFF, NOTHING),
    "one row changed and everything sealed anew": Planted(
        [update("actor_name = 'somebody else'")], REWRITTEN, NOTHING, anew=range(1, SEALS + 1)
    ),
    "one row changed and the rest sealed anew": Planted(
        [update("actor_name = 'somebody else'")], REWRITTEN, NOTHING, anew=range(3, SEALS + 1)
    ),
    "one row deleted and the rest sealed anew": Planted(
        [f"DELETE FROM history WHERE seq = {ROW}"], REWRITTEN, NOTHING, anew=range(3, SEALS + 1)
    ),
    "one row inserted and the rest sealed anew": Planted(
        [copy(ROW, seq="99")], REWRITTEN, NOTHING, anew=range(3, SEALS + 1)
    ),
    "the last row changed and its seal made anew": Planted(
        [update("actor_name = 'somebody else'", LAST)], REWRITTEN, NOTHING, anew=[SEALS]
    ),
    "one row changed and only its seal made anew": Planted(
        [update("actor_name = 'somebody else'")], CHANGED | REWRITTEN, CHANGED, anew=[3]
    ),
    "the end cut off and the rest sealed anew in larger parts": Planted(
        [
            "DELETE FROM history WHERE seq > 20",
            "DELETE FROM seals WHERE number > 3",
            f"UPDATE seals SET rows = 10, last_seq = 20, last_xid = {XID} WHERE number = 3",
        ],
        REWRITTEN | CUT_OFF,
        NOTHING,
        anew=[3],
    ),
}


class Scene:
    """A sealed history that is tampered with and put back, and the heads of its seals."""

    def __init__(self, store: Store, sql: Any, heads: Path) -> None:
        self.store = store
        self.sql = sql
        self.heads = heads

    async def plant(self, planted: Planted) -> None:
        async with unguarded(self.sql):
            for statement in planted.statements:
                assert not (await self.sql.execute(statement)).endswith(" 0"), statement
            for number in planted.anew:
                await self._seal_anew(number)

    async def put_back(self) -> None:
        async with unguarded(self.sql):
            await self.sql.execute("TRUNCATE history, seals")
            await self.sql.execute("INSERT INTO history SELECT * FROM history_before")
            await self.sql.execute("INSERT INTO seals SELECT * FROM seals_before")

    async def verified(self, *, with_heads: bool) -> Verified:
        return await verify_history(self.store.database.url, self.heads if with_heads else None)

    async def faults(self, *, with_heads: bool) -> set[Fault]:
        return {finding.fault for finding in (await self.verified(with_heads=with_heads)).findings}

    async def _seal_anew(self, number: int) -> None:
        async with self.store.tx() as conn:
            stored = await seals.of_numbers(conn, [number - 1, number])
            before = stored.get(number - 1)
            rows = await seals.rows_to(conn, before.last if before else BEGINNING, stored[number].last, 10_000)
        made = sealed(before, rows, stored[number].at)
        await self.sql.execute(
            "UPDATE seals SET sha256 = $2, rows = $3, first_seq = $4, first_xid = $5::text::xid8 WHERE number = $1",
            number,
            made.sha256,
            made.rows,
            made.first.seq,
            str(made.first.xid),
        )


@pytest.fixture
async def scene(database: Database, tmp_path: Path) -> AsyncIterator[Scene]:
    """Six seals of five rows of two transactions each."""
    store, sql, heads = Store(database), await database.connect(), tmp_path / "heads"
    for number in range(SEALS):
        await record(store, *(f"first.{number}.{part}" for part in range(3)))
        await record(store, *(f"second.{number}.{part}" for part in range(2)))
        assert await seal(store) == ROWS
    async with store.tx() as conn:
        heads.write_bytes(b"".join(map(head_line, await seals.after(conn, 0, SEALS))))
    # A superuser may give numbers of their own.
    await sql.execute("ALTER TABLE history ALTER seq DROP IDENTITY")
    await sql.execute("CREATE TABLE history_before AS TABLE history; CREATE TABLE seals_before AS TABLE seals")
    yield Scene(store, sql, heads)
    await sql.close()
    await store.engine.dispose()


async def test_each_planted_tampering_is_found(scene: Scene, figures: Figures):
    seen = {}
    for what, planted in PLANTED.items():
        await scene.plant(planted)
        found = [await scene.faults(with_heads=with_heads) for with_heads in (True, False)]
        await scene.put_back()
        seen[what] = (found, [planted.found, planted.found if planted.without is None else planted.without])
    assert {what: found for what, (found, due) in seen.items() if found != due} == {}
    assert all(found[0] for found, _ in seen.values())
    assert await scene.faults(with_heads=True) == set()
    by_heads = sum(1 for found, _ in seen.values() if not found[1])
    figures("tampering with history", planted=len(seen), found=len(seen), by_heads_alone=by_heads)


@pytest.mark.parametrize("column", COLUMNS[2:])
async def test_a_finding_names_the_seal_and_its_rows(scene: Scene, column: str):
    await scene.plant(PLANTED[f"{column} of a row"])
    (finding,) = (await scene.verified(with_heads=True)).findings
    assert (finding.seal, finding.first_seq, finding.last_seq) == (3, 11, 15)
