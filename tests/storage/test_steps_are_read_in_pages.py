"""A page of steps is bounded by their number and by what their results hold, and always holds one."""

import re

import pytest

from controlplane.storage import steps
from controlplane.storage.engine import Connection
from tests.services.store import Rows, Store

MIB = 1024 * 1024
STEPS = """
INSERT INTO steps (execution_id, name, occurrence, position, previous, result)
SELECT $1, 's', n, n, NULL, CAST(to_jsonb(repeat('x', (CAST($2 AS int[]))[n] - 2)) AS text)::json
FROM generate_series(1, cardinality(CAST($2 AS int[]))) n
"""


async def pages(conn: Connection, limit: int, most_bytes: int, execution_id: str = "run-1") -> list[list[int]]:
    """The positions of each page, each asked for from the end of the one before."""
    found: list[list[int]] = []
    more = True
    while more:
        after = found[-1][-1] if found else 0
        page, more = await steps.page(conn, execution_id, after=after, limit=limit, most_bytes=most_bytes)
        found.append([step.position for step in page])
    return found


async def fill(store: Store, rows: Rows, *sizes: int, execution_id: str = "run-1") -> None:
    """Steps whose results have these sizes in bytes."""
    await store.start(execution_id)
    await rows.sql.execute(STEPS, execution_id, list(sizes))


@pytest.mark.parametrize(
    ("limit", "most_bytes", "expected"),
    [
        (200, 1000, [[1, 2, 3, 4, 5, 6]]),
        (6, 1000, [[1, 2, 3, 4, 5, 6]]),
        (5, 1000, [[1, 2, 3, 4, 5], [6]]),
        (2, 1000, [[1, 2], [3, 4], [5, 6]]),
        (200, 40, [[1, 2], [3, 4], [5, 6]]),
        (200, 39, [[1], [2], [3], [4, 5, 6]]),
        (200, 20, [[1], [2], [3], [4, 5], [6]]),
        (200, 1, [[1], [2], [3], [4], [5], [6]]),
    ],
)
async def test_a_page_ends_with_its_number_or_its_bytes(
    store: Store, rows: Rows, limit: int, most_bytes: int, expected: list[list[int]]
):
    await fill(store, rows, 20, 20, 30, 10, 10, 19)
    await fill(store, rows, 500, 500, execution_id="run-2")
    async with store.tx() as conn:
        assert await pages(conn, limit, most_bytes) == expected


async def test_a_page_holds_four_mebibytes_to_the_byte(store: Store, rows: Rows):
    await fill(store, rows, *[MIB] * 9)
    await fill(store, rows, MIB, MIB, MIB, MIB + 1, execution_id="run-2")
    async with store.tx() as conn:
        assert await pages(conn, 200, steps.PAGE_BYTES) == [[1, 2, 3, 4], [5, 6, 7, 8], [9]]
        assert await pages(conn, 200, steps.PAGE_BYTES, "run-2") == [[1, 2, 3], [4]]


async def test_bytes_are_counted_not_characters(store: Store):
    await store.start()
    for name in "ab":
        await store.step(name, "\u00e9\u00e9".join('""').encode())
    async with store.tx() as conn:
        assert await pages(conn, 200, 12) == [[1, 2]]
        assert await pages(conn, 200, 11) == [[1], [2]]


async def test_a_run_without_steps_and_a_place_behind_the_last_have_an_empty_page(store: Store):
    await store.start()
    await store.step()
    async with store.tx() as conn:
        for run, after in (("run-1", 1), ("run-1", 2**31 - 1), ("none", 0)):
            assert await steps.page(conn, run, after=after, limit=10) == ([], False)


async def test_a_page_reads_one_step_more_than_it_holds(store: Store, rows: Rows):
    for run in ("run-1", "run-2"):
        await fill(store, rows, *[100] * 1000, execution_id=run)
    await rows.sql.execute("ANALYZE steps")
    await rows.sql.execute(f"PREPARE page AS {steps._PAGE.text}")
    values = steps._PAGE.arguments({"execution_id": "run-1", "after": 500, "limit": 200, "most_bytes": 550})
    given = ", ".join(repr(value) for value in values)
    plan = "\n".join(await rows.column(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) EXECUTE page({given})"))
    read = [float(number) for number in re.findall(r"actual rows=([0-9.]+)", plan)]
    assert max(read) == 6, plan
