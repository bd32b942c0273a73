"""`dev` on loopback needs no key until one is made, and says so; the shell then sends it, or says why it is refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from tests.cli.processes import Running, run, running, wait_until
from tests.keys import Keys, make_keys, sent, serving
from tests.postgres import Database


class Dev(NamedTuple):
    process: Running
    url: str


@pytest.fixture
def dev(database: Database, tmp_path: Path) -> Iterator[Dev]:
    with running("dev", "--port", "0", HOLDSHORT_HOME=str(tmp_path), HOLDSHORT_DATABASE_URL=database.url) as process:
        yield Dev(process, process.wait_until_ready())


@pytest.fixture
def keys(database: Database) -> Keys:
    return make_keys(database)


def listing(url: str, **headers: str) -> int:
    return httpx.get(f"{url}/api/v1/approvals", headers=headers).status_code


def test_it_says_that_it_stands_open_and_until_when(dev: Dev):
    dev.process.wait_for(r"^inbox       http://127\.0\.0\.1:\d+/inbox$")
    dev.process.wait_for("^access      open mode on loopback: ")
    assert listing(dev.url) == 200


def test_a_page_and_a_proxy_are_refused_with_nothing_set(dev: Dev):
    port = dev.url.rpartition(":")[2]
    assert listing(dev.url, Host=f"rebound.example:{port}") == 421
    assert listing(dev.url, Host=f"localhost:{port}") == 200
    assert listing(dev.url, Origin="http://evil.example") == 403
    assert listing(dev.url, **{"X-Forwarded-For": "192.0.2.1"}) == 403
    assert httpx.get(f"{dev.url}/health/ready", headers={"Host": "rebound.example"}).status_code == 421


def test_two_on_one_database_close_within_seconds_of_the_first_key(dev: Dev, database: Database):
    with running("dev", "--port", "0", **serving(database)) as second:
        urls = [dev.url, second.wait_until_ready()]
        assert [listing(url) for url in urls] == [200, 200]
        create = ("keys", "create", "me", "--scope", "review", "--json")
        made = run(*create, HOLDSHORT_DATABASE_URL=database.url)
        made.check_returncode()
        wait_until(lambda: [listing(url) for url in urls] == [401, 401])


def test_it_starts_closed_where_there_is_a_key(keys: Keys, dev: Dev):
    dev.process.wait_for("^access      with an API key only")
    assert listing(dev.url) == 401
    assert listing(dev.url, **sent(keys.review)) == 200


def test_a_bootstrap_key_is_the_first_key(database: Database):
    key = dict(line.split("=", 1) for line in run("secrets").stdout.splitlines())["HOLDSHORT_BOOTSTRAP_ADMIN_KEY"]
    environ = serving(database) | {"HOLDSHORT_BOOTSTRAP_ADMIN_KEY": key}
    with running("dev", "--port", "0", **environ) as dev:
        url = dev.wait_until_ready()
        dev.wait_for("^access      with an API key only")
        assert (listing(url), listing(url, **sent(key))) == (401, 200)


def test_the_shell_sends_its_key_and_says_why_it_is_refused(keys: Keys, dev: Dev):
    listed = ("approvals", "list")
    without = run(*listed, HOLDSHORT_URL=dev.url)
    assert without.returncode == 1
    assert "Error: not_authenticated (401): " in without.stderr
    assert "set HOLDSHORT_API_KEY; `holdshort keys create` makes a key" in without.stderr
    known = run(*listed, HOLDSHORT_URL=dev.url, HOLDSHORT_API_KEY=f" {keys.review}\n")
    assert (known.returncode, known.stdout) == (0, "no approvals\n")
    unknown = run(*listed, HOLDSHORT_URL=dev.url, HOLDSHORT_API_KEY=_unknown())
    assert "Error: invalid_key (401): " in unknown.stderr
    assert "the key that HOLDSHORT_API_KEY holds was sent" in unknown.stderr
    other = run("deliveries", "list", HOLDSHORT_URL=dev.url, HOLDSHORT_API_KEY=keys.agent)
    assert "Error: not_allowed (403): This takes a key of scope admin" in other.stderr
    assert "the key that HOLDSHORT_API_KEY holds was sent" in other.stderr


def test_what_is_no_key_is_sent_nowhere():
    for text in ("hunter22", "hs_ßß", "hs_0123456789ab_2cwcg80he16yvcc9tj3v39wjr1m5kkjm"):
        done = run("approvals", "list", HOLDSHORT_URL="http://127.0.0.1:1", HOLDSHORT_API_KEY=text)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
        assert done.stderr.startswith("Error: HOLDSHORT_API_KEY holds no key ")
        assert text not in done.stderr


def _unknown() -> str:
    lines = run("secrets").stdout.splitlines()
    return lines[-1].partition("=")[2]
