"""`dev` calls agents on this machine with nothing set, as long as only this machine reaches it; `serve` is told to."""

import httpx
import pytest

from tests.cli.processes import LOOPBACK, Running, ready, running, wait_until
from tests.keys import Keys, make_keys, sent, serving
from tests.postgres import Database


def registered(url: str, base_url: str, keys: Keys | None = None) -> httpx.Response:
    """The answer to an agent that registers."""
    body = {"node_id": "n", "base_url": base_url, "reasoners": []}
    return httpx.post(f"{url}/api/v1/nodes/register", json=body, headers=sent(keys.agent) if keys else {})


def refused(reply: httpx.Response) -> bool:
    return (reply.status_code, reply.json().get("rule")) == (422, "loopback")


@pytest.mark.parametrize(("host", "more"), [("127.0.0.1", ()), ("localhost", ("--workers", "2")), ("[::1]", ())])
def test_serve_calls_what_it_is_told_to(database: Database, host: str, more: tuple[str, ...]):
    base, keys = f"http://{host}:8001", make_keys(database)
    with running("serve", "--port", "0", *more, **serving(database)) as server:
        assert refused(registered(server.wait_until_ready(), base, keys))
    told = serving(database) | {"HOLDSHORT_CALLBACK_ALLOW": f"{host}:8001"}
    with running("serve", "--port", "0", *more, **told) as server:
        url = server.wait_until_ready()
        assert registered(url, base, keys).status_code == 201
        assert refused(registered(url, f"http://{host}:8002", keys))


def test_dev_calls_loopback_with_nothing_set(database: Database, tmp_path: object):
    with running("dev", "--port", "0", **of_dev(database, tmp_path)) as dev:
        url = dev.wait_until_ready()
        assert registered(url, "http://localhost:8001").status_code == 201
        own = registered(url, url)
        assert (own.status_code, own.json()["rule"]) == (422, "own")


def test_dev_that_others_reach_does_not(database: Database, tmp_path: object):
    keys = make_keys(database)
    with running("dev", "--host", "0.0.0.0", "--port", "0", **of_dev(database, tmp_path)) as dev:
        url = url_of(dev)
        assert refused(registered(url, "http://localhost:8001", keys))
        own = registered(url, url, keys)
        assert (own.status_code, own.json()["rule"]) == (422, "own")


def of_dev(database: Database, home: object) -> dict[str, str]:
    return {"HOLDSHORT_DATABASE_URL": database.url, "HOLDSHORT_HOME": str(home)}


def url_of(dev: Running) -> str:
    """Where a `dev` that listens everywhere is reached from here."""
    port = dev.wait_for(r"http://0\.0\.0\.0:(\d+)")[1]
    url = f"http://127.0.0.1:{port}"
    wait_until(lambda: ready(url))
    return url


def test_an_allow_list_that_may_be_wide_is_said_at_the_start(database: Database):
    make_keys(database)
    wide = {**LOOPBACK, **serving(database), "HOLDSHORT_DANGEROUS_CALLBACK_ALLOW": "on"}
    with running("serve", "--port", "0", **wide) as server:
        server.wait_until_ready()
        assert [line for line in server.seen if "callback_allow_may_be_wide" in line]
