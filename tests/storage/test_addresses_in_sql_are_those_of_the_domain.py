"""What SQL takes to lie under an address is what the domain moves."""

import sqlalchemy as sa

from controlplane.domain.addresses import base_address, moved_url
from controlplane.storage.addresses import lies_under, plain
from tests.addresses import ELSEWHERE, UNDER
from tests.services.store import Store


async def test_both_say_the_same_of_every_pair(store: Store):
    bases = {base_address("base_url", base) for base, *_ in (*UNDER, *ELSEWHERE)}
    urls = {url for _, url, *_ in (*UNDER, *ELSEWHERE)}
    pairs = [(base, url) for base in sorted(bases) for url in sorted(urls)]
    given = sa.func.unnest(
        sa.literal([base for base, _ in pairs], sa.ARRAY(sa.Text)),
        sa.literal([url for _, url in pairs], sa.ARRAY(sa.Text)),
    ).table_valued(sa.column("base", sa.Text), sa.column("url", sa.Text), name="given")
    given = given.render_derived()
    statement = sa.select(given.c.base, given.c.url, lies_under(plain(given.c.url), given.c.base).label("under"))
    async with store.tx() as conn:
        rows = await conn.rows(statement)
    assert {(row.base, row.url): row.under for row in rows} == {
        (base, url): moved_url(url, base, "http://new") is not None for base, url in pairs
    }
