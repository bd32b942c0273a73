import os
from collections import Counter

import httpx

from controlplane.domain.keys import ENTROPY_BYTES, mint
from controlplane.domain.throttle import MOST_IN_A_MINUTE
from tests.cli.processes import running
from tests.keys import make_keys, sent, serving
from tests.plain import PLAIN
from tests.postgres import Database


def test_two_workers_together_let_one_address_fail_no_more_than_one_does(database: Database):
    keys = make_keys(database)
    with running("serve", "--port", "0", "--workers", "2", **serving(database)) as server:
        url = f"{server.wait_until_ready()}/api/v1/executions"
        # Each on a connection of its own, so that both workers get their part of them.
        answers = Counter(
            httpx.get(url, headers=sent(mint(os.urandom(ENTROPY_BYTES))[1]), verify=PLAIN).status_code
            for _ in range(4 * MOST_IN_A_MINUTE)
        )
        assert answers.keys() == {401, 429}
        assert answers[401] <= MOST_IN_A_MINUTE
        for _ in range(10):
            assert httpx.get(url, headers=sent(keys.admin), verify=PLAIN).status_code == 200
