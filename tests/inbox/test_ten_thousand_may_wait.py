"""With ten thousand waiting the first page is as small as with fifty, and the database does no more for it."""

import time
from typing import Any

from controlplane.inbox.static_files import FILES
from tests.app import Api
from tests.figures import Figures
from tests.inbox.person import Person
from tests.inbox.reading import Page

MOST_BYTES = 100 * 1024
WAITING = 10_000
_PLANT = """
WITH run AS (
    INSERT INTO executions (execution_id, node_id, status, status_reason, pending_approvals)
    SELECT 'run-' || n, 'node-' || n % 40, 'waiting', 'waiting_for_approval', 1 FROM generate_series(1, $1::int) AS n
    RETURNING execution_id
)
INSERT INTO approvals (approval_id, execution_id, node_id, approval_request_id, round, status, on_expiry, requested_at,
                       expires_at, title, payload)
SELECT 'apr_' || lpad(n::text, 26, '0'), 'run-' || n, 'node-' || n % 40, 'request-' || n, 1, 'pending', 'cancel',
       clock_timestamp() - interval '1 hour', clock_timestamp() + n * interval '1 minute' + interval '1 hour',
       'Renew the contract of customer number ' || n || ' for another year',
       json_build_object('text', repeat('x', 2000))
FROM generate_series(1, $1::int) AS n
"""

# The runs of what has ended are those of what waits: nothing here looks at them.
_PLANT_ENDS = """
INSERT INTO approvals (approval_id, execution_id, node_id, approval_request_id, round, status, on_expiry, requested_at,
                       expires_at, title, decided_at, new_status)
SELECT 'apr_e' || lpad(n::text, 25, '0'), 'run-' || n, 'node-1', 'request-' || n, 2,
       (ARRAY['approved', 'rejected', 'request_changes', 'expired', 'withdrawn'])[1 + n % 5], 'cancel',
       clock_timestamp() - interval '3 hours', clock_timestamp() - n * interval '1 second', 'Ended',
       clock_timestamp() - n * interval '1 second' - interval '1 minute', 'running'
FROM generate_series(1, $1::int) AS n
"""
TABS = [
    ("'pending'", "expires_at, approval_id", "approvals_due"),
    ("'approved', 'rejected', 'request_changes'", "decided_at DESC, approval_id DESC", "approvals_decided"),
    ("'expired', 'withdrawn'", "decided_at DESC, approval_id DESC", "approvals_lapsed"),
]


async def test_the_first_page_is_small_and_soon_there(api: Api, sql: Any, figures: Figures):
    await sql.execute("SET session_replication_role = replica")
    await sql.execute(_PLANT, WAITING)
    await sql.execute(_PLANT_ENDS, WAITING)
    await sql.execute("ANALYZE")
    person, took = Person(api), []
    for _ in range(7):
        began = time.perf_counter()
        reply = await person.get("/inbox")
        took.append((time.perf_counter() - began) * 1000)
    page = Page(reply.text)
    assert len(page.rows()) == 50
    assert {tag.attributes["data-count"] for tag in page.has("data-count")} == {"waiting"}
    assert page.words.count("10000") == 2
    with_files = len(reply.content) + sum(
        len(file.content) for name, file in FILES.items() if name.endswith(("css", "js"))
    )
    assert with_files < MOST_BYTES
    for condition, moment, index in TABS:
        assert index in await plan(sql, condition, moment)
    for tab in ("decided", "expired", "all"):
        assert len(Page((await person.get(f"/inbox?tab={tab}")).text).rows()) == 50
    figures(
        "first page of the inbox with 10,000 waiting",
        ms_at_best=min(took),
        ms_in_the_middle=sorted(took)[3],
        page_bytes=len(reply.content),
        with_style_and_script_bytes=with_files,
    )


async def plan(sql: Any, condition: str, moment: str) -> str:
    """How the database finds the first page of a tab."""
    rows = await sql.fetch(
        f"EXPLAIN SELECT approval_id FROM approvals WHERE status IN ({condition}) ORDER BY {moment} LIMIT 51"
    )
    return "\n".join(row[0] for row in rows)
