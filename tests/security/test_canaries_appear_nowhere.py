"""Secrets, and texts of callers, agents and receivers, sent by every route, are nowhere but where they belong.

Real servers, at log level debug, with good, bad and failing requests at every route of the table; then their output,
the whole database, every answer, the audit trail and its heads, notifications and command lines are searched.
"""

import asyncio
import base64
import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import pytest

from controlplane.domain import keys
from controlplane.storage.tables import metadata
from tests.app import until
from tests.cli.processes import Running, run, running
from tests.figures import Figures
from tests.postgres import Database
from tests.receiver import Answer, Got, Receiver, receiver
from tests.roles import runtime_role
from tests.security import browsing
from tests.security.browsing import Browser
from tests.security.canaries import Aviary, Found
from tests.security.places import IN_ANSWERS, IN_HISTORY, search_command_lines, search_database
from tests.security.planting import NAMED_TWICE, Caller, Route, post, routes, staged
from tests.security.recipes import RECIPES, Ids

SCOPES = {
    "agent": ("--scope", "agent", "--node", "node-1"),
    "stranger": ("--scope", "agent", "--node", "node-2"),
    "review": ("--scope", "review"),
    "admin": ("--scope", "admin"),
}
# Who calls must still be known while everything else is broken.
KEPT_WHOLE = {"api_keys", "key_secrets", "node_owners", "senders", "sender_secrets", "alembic_version"}
TAKE_NO_BODY = {"expire", "withdraw", "redrive_delivery", "end_feedback"}
BROKEN = [table for table in metadata.tables if table not in KEPT_WHOLE]


class World:
    """The secrets of one run, and the environment of its processes."""

    def __init__(self, aviary: Aviary, database: Database, home: Path, log_format: str) -> None:
        self.aviary = aviary
        self.secret = aviary.plant("webhook_secret", "whsec_" + base64.b64encode(os.urandom(24)).hex())
        odd = aviary.plant("webhook_secret", f'a "b" é:/{os.urandom(12).hex()}')
        self.heads = home / "heads"
        self.environ = {
            "HOLDSHORT_DATABASE_URL": database.url,
            "HOLDSHORT_WEBHOOK_SECRETS": f"desk:{self.secret},{odd}",
            "HOLDSHORT_MASTER_KEYS": self._master_key(),
            "HOLDSHORT_BOOTSTRAP_ADMIN_KEY": aviary.plant("api_key", keys.mint(os.urandom(keys.ENTROPY_BYTES))[1]),
            "HOLDSHORT_CALLBACK_ALLOW": "127.0.0.1",
            "HOLDSHORT_TRUSTED_PROXIES": "127.0.0.1",
            "HOLDSHORT_AUDIT_HEADS": str(self.heads),
            "HOLDSHORT_HOME": str(home),
            "HOLDSHORT_LOG_FORMAT": log_format,
            "HOLDSHORT_LOG_LEVEL": "debug",
        }
        self.held: dict[str, str] = {}
        self.leaked: list[Found] = []

    def _master_key(self) -> str:
        """A key whose base64 has letters and digits only, so that no form of it is missed."""
        while not (text := base64.b64encode(os.urandom(32)).decode())[:-1].isalnum():
            pass
        self.aviary.plant("master_key", base64.b64decode(text).hex())
        return self.aviary.plant("master_key", text)

    def command(self, *arguments: str, shows: str = "", **environ: str) -> str:
        """Run a command; what it prints is searched, and may show what it was asked to make."""
        done = run(*arguments, **(self.environ | environ))
        printed = done.stdout + done.stderr
        if shows:
            assert done.returncode == 0, printed
            secret = json.loads(done.stdout)[shows]
            self.aviary.plant("api_key" if shows == "key" else "webhook_secret", secret)
            self.leaked += self.aviary.search(f"what {arguments} says", done.stderr)
            return str(secret)
        self.search(f"what {arguments} prints", printed)
        return printed

    def search(self, place: str, content: bytes | str, allowed: frozenset[str] = frozenset()) -> None:
        self.leaked += self.aviary.search(place, content, allowed=allowed)


@asynccontextmanager
async def with_odd_password(aviary: Aviary, database: Database) -> AsyncIterator[tuple[Database, str]]:
    """The database as a role of the servers' own, with a password that has to be quoted; and the role, quoted."""
    async with runtime_role(database) as given:
        parts = urlsplit(given.url)
        name = (parts.username or "").replace("%20", " ").replace("%22", '"')
        role = '"' + name.replace('"', '""') + '"'
        password = aviary.plant("database_password", f'p@ss/w?rd"é{os.urandom(12).hex()}')
        owner = await database.connect()
        await owner.execute(f"ALTER ROLE {role} PASSWORD '{password}'")
        await owner.close()
        server = parts.netloc.rpartition("@")[2]
        netloc = f"{parts.username}:{quote(password, safe='')}@{server}"
        yield given._replace(url=urlunsplit(parts._replace(netloc=netloc))), role


def echo(aviary: Aviary) -> Answer:
    """Refuse a callback with all that it brought, and more."""

    async def answer(got: Got, writer: asyncio.StreamWriter) -> None:
        signature = got.headers.get("webhook-signature")
        if signature is not None:
            aviary.plant("callback_signature", signature)
        body = json.dumps(got.headers).encode() + got.raw + aviary.plant("receiver_reply").encode()
        head = f"HTTP/1.1 500 {aviary.plant('receiver_reply')}\r\nX-Said: {signature}\r\nContent-Length: {len(body)}"
        writer.write(head.encode() + b"\r\n\r\n" + body)

    return answer


def refusing(aviary: Aviary) -> Iterator[Answer]:
    """An agent that answers dispatches with everything but what it should."""
    text = aviary.plant("reply")
    heads = ("422 No", "200 OK", "503 Later", f"404 {text}")
    bodies = [f"HTTP/1.1 {head}\r\nX-Said: {text}\r\nContent-Length: {len(text)}\r\n\r\n{text}" for head in heads]
    for whole in [*bodies, f"HTTP/1.1 {aviary.plant('no_http')}\r\n\r\n", f"{aviary.plant('no_http')}\r\n\r\n"]:

        async def answer(_: Got, writer: asyncio.StreamWriter, whole: str = whole) -> None:
            writer.write(whole.encode())
            writer.close()

        yield answer


async def walk(caller: Caller, ids: Ids, about: str, *, before: Any = None) -> Counter[int]:
    """Ask each route rightly; the statuses."""
    seen: Counter[int] = Counter()
    for route in routes():
        if before is not None:
            await before()
        seen[(await caller.good(route, ids, f"{route.name} {about}")).status] += 1
    return seen


async def visit(caller: Caller, told: Receiver, agent: Receiver) -> Ids:
    """Ask each route rightly in a fresh scene, then in every wrong way; the last scene."""
    base = f"http://127.0.0.1:{agent.port}"
    for number, route in enumerate(routes()):
        ids = await staged(caller, number, told.url, base)
        await caller.good(Route("register_node", "POST", "/nodes/register"), ids, "registering")
        delivery = json.loads((await delivered(caller)).split(b"\n", 1)[1])["deliveries"]
        ids = ids._replace(delivery_id=delivery[0]["delivery_id"] if delivery else "dlv_0")
        if route.name == "redrive_delivery":
            assert delivery
        answer = await caller.good(route, ids, f"{route.name} rightly")
        assert answer.status < 300, answer
        await caller.bad(route, ids)
        await post(caller, f"/approvals/{ids.approval_id}/withdraw", {})
    return ids


async def delivered(caller: Caller) -> bytes:
    headers = {"X-API-Key": caller.held["admin"]}
    answer = await caller.send("looking", "GET", "/api/v1/deliveries?status=pending&limit=1", headers, None)
    return answer.content


async def browse(caller: Caller, ids: Ids, told: Receiver, agent: Receiver) -> Browser:
    """Ask for each page rightly in a fresh scene, then in every wrong way."""
    browser = Browser(caller)
    await browser.begin(walks=5)
    ids = (await staged(caller, len(routes()), told.url, f"http://127.0.0.1:{agent.port}"))._replace(
        delivery_id=ids.delivery_id
    )
    seen = await browser.walk(ids, "rightly")
    assert max(seen) < 500, [answer.about for answer in browser.caller.answers if answer.status >= 500]
    await browser.bad(ids)
    return browser


async def break_everything(
    caller: Caller, browser: Browser, ids: Ids, owner: Any, role: str
) -> dict[str, Counter[int]]:
    """Walk while rows are refused, tables are gone, connections are killed, and nobody gets into the database."""
    seen = {}
    await each_table(owner, "ADD CONSTRAINT refuses CHECK (false) NOT VALID")
    seen["rows refused"] = await walk(caller, ids, "with rows refused")
    seen["rows refused, pages"] = await browser.walk(ids, "with rows refused")
    await each_table(owner, "DROP CONSTRAINT refuses")
    await each_table(owner, 'RENAME TO "gone_{table}"')
    seen["tables gone"] = await walk(caller, ids, "with tables gone")
    seen["tables gone, pages"] = await browser.walk(ids, "with tables gone")
    for table in BROKEN:
        await owner.execute(f'ALTER TABLE "gone_{table}" RENAME TO "{table}"')

    async def kill() -> None:
        await owner.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND quote_ident(usename) = $1",
            role,
        )

    seen["connections killed"] = await walk(caller, ids, "with connections killed", before=kill)
    seen["connections killed, pages"] = await browser.walk(ids, "with connections killed", before=kill)
    await owner.execute(f"ALTER ROLE {role} NOLOGIN")
    seen["database away"] = await walk(caller, ids, "with the database away", before=kill)
    seen["database away, pages"] = await browser.walk(ids, "with the database away", before=kill)
    await owner.execute(f"ALTER ROLE {role} LOGIN")
    return seen


async def each_table(owner: Any, change: str) -> None:
    """One after the other: in one transaction their locks would meet those of the servers crosswise."""
    for table in BROKEN:
        await owner.execute(f'ALTER TABLE "{table}" {change.format(table=table)}')


def wrong_settings(world: World) -> Iterator[tuple[str, str]]:
    """Settings that are wrong, each with a secret where the fault is."""
    url, secret = world.environ["HOLDSHORT_DATABASE_URL"], world.environ["HOLDSHORT_MASTER_KEYS"]
    userinfo = url.rpartition("@")[0]
    yield "HOLDSHORT_DATABASE_URL", url.replace("postgresql://", "postgresql:/")
    yield "HOLDSHORT_DATABASE_URL", f"{userinfo}%zz@127.0.0.1:1/x"
    yield "HOLDSHORT_DATABASE_URL", f"{userinfo}@[::1/x"
    yield "HOLDSHORT_DATABASE_URL", f"{url}{'&' if '?' in url else '?'}sslmode=wrong"
    yield "HOLDSHORT_DATABASE_URL", f"{userinfo}@127.0.0.1:1/x"
    yield "HOLDSHORT_DATABASE_URL", url.replace("postgresql://", "postgresql://x", 1)
    yield "HOLDSHORT_MASTER_KEYS", f"{secret},x{secret}"
    yield "HOLDSHORT_WEBHOOK_SECRETS", f"{world.secret},,"
    yield "HOLDSHORT_BOOTSTRAP_ADMIN_KEY", f"{world.environ['HOLDSHORT_BOOTSTRAP_ADMIN_KEY'][:-1]}!"
    yield "HOLDSHORT_CALLBACK_ALLOW", f"http://u:{secret}@h,{secret}"
    yield "HOLDSHORT_PUBLIC_URL", f"http://u:{secret}\u2100@h"
    yield "HOLDSHORT_AUDIT_HEADS", f"http://u:{secret}\u2100@h"


def test_every_route_of_the_table_is_walked():
    missing = {route.name for route in routes()} - RECIPES.keys()
    assert missing == set(), f"say in tests/security/recipes.py how these routes are asked: {sorted(missing)}"
    assert RECIPES.keys() == {route.name for route in routes()}
    assert browsing.SENT.keys() == {page.name for page in browsing.pages()}, "say in browsing.py how a page is asked"


@pytest.mark.timeout(600)
# Both forms of logs are redacted before they differ, so the second one is for the long forms.
@pytest.mark.parametrize("log_format", ["json", pytest.param("console", marks=pytest.mark.proof)])
async def test_canaries_appear_nowhere(database: Database, tmp_path: Path, figures: Figures, log_format: str):
    aviary = Aviary()
    owner = await database.connect()
    heard: list[str] = []
    await owner.add_listener("holdshort", lambda *given: heard.append(str(given[3])))
    async with with_odd_password(aviary, database) as (ours, role), receiver() as told, receiver() as agent:
        world = World(aviary, ours, tmp_path, log_format)
        told.answers, agent.answers = [echo(aviary)], list(refusing(aviary))
        with running("serve", "--port", "0", anew=True, **world.environ) as server:
            caller = await at_work(world, server)
            ids = await visit(caller, told, agent)
            browser = await browse(caller, ids, told, agent)
            seen = await break_everything(caller, browser, ids, owner, role)
            await until(lambda: told.got and agent.got and world.heads.exists())
            world.leaked += search_command_lines(aviary, server.process.pid)
            await caller.client.aclose()
            await browser.caller.client.aclose()
            await asyncio.to_thread(server.terminate)
            output = printed(server)
        await asyncio.to_thread(look_from_the_shell, world)
        world.leaked += await search_database(aviary, owner)
    await owner.close()
    search_answers(world, caller)
    browsing.search(browser, world.search)
    world.search("output", output)
    world.search("heads", world.heads.read_bytes())
    world.search("notifications", "\n".join(heard))
    statuses = Counter(answer.status for answer in caller.answers)
    figures(
        f"canaries, {log_format} logs",
        planted=aviary.count,
        requests=len(caller.answers) + len(browser.caller.answers),
        routes=len(routes()) + len(browsing.pages()),
        places_searched=aviary.places,
        bytes_searched=aviary.bytes,
        leaked=len(world.leaked),
    )
    assert world.leaked == []
    assert statuses.keys() >= {200, 201, 202, 400, 401, 403, 404, 409, 413, 415, 422, 500, 503}
    too_large = {answer.about.partition(" ")[0] for answer in caller.answers if answer.status in {413, 0}}
    assert too_large >= {name for name, recipe in RECIPES.items() if recipe.body is not None} - TAKE_NO_BODY
    assert seen["rows refused"][500] >= 10
    assert seen["tables gone"][500] >= 30
    assert seen["database away"][503] >= 30
    browsing.check_statuses(browser, seen)
    assert output.count("request_failed") >= 40
    assert "callback_tried" in output
    assert "run_dispatched" in output


@pytest.mark.timeout(300)
@pytest.mark.parametrize("every", [pytest.param(4, id="quick"), pytest.param(1, id="long", marks=pytest.mark.proof)])
async def test_a_start_that_fails_quotes_no_secret(database: Database, tmp_path: Path, figures: Figures, every: int):
    aviary = Aviary()
    async with with_odd_password(aviary, database) as (ours, _):
        world = World(aviary, ours, tmp_path, "console")
        starts = list(wrong_settings(world))[::every]
        for name, value in starts:
            said = await asyncio.to_thread(world.command, "serve", "--port", "0", **{name: value})
            assert "Error: " in said, (name, said)
    figures("starts that fail", tried=len(starts), bytes_searched=aviary.bytes, leaked=len(world.leaked))
    assert world.leaked == []


async def at_work(world: World, server: Running) -> Caller:
    """A caller with a key of each scope, once the server is there."""
    base = await asyncio.to_thread(server.wait_until_ready)
    for name, scope in SCOPES.items():
        made = await asyncio.to_thread(world.command, "keys", "create", name, *scope, "--json", shows="key")
        world.held[name] = made
    await asyncio.to_thread(world.command, "senders", "create", "review", "--json", shows="secret")
    return Caller(world.aviary, base, world.held, world.secret)


def printed(server: Running) -> str:
    server.close()
    return "".join(server.printed())


def look_from_the_shell(world: World) -> None:
    """Every command that shows what is kept."""
    for arguments in (("keys", "list"), ("keys", "list", "--json"), ("senders", "list"), ("audit", "verify")):
        world.command(*arguments)
    exported = run("audit", "export", **world.environ)
    assert exported.returncode == 0, exported.stderr
    world.search("audit export", exported.stdout, IN_HISTORY)
    world.search("what audit export says", exported.stderr)


def search_answers(world: World, caller: Caller) -> None:
    """Refusals hold nothing at all; what was asked for holds what it is there to show, and no secret."""
    for status in {answer.status for answer in caller.answers}:
        these = [answer for answer in caller.answers if answer.status == status]
        allowed = IN_ANSWERS if status < 300 else frozenset({NAMED_TWICE} if status == 400 else ())
        # One by one only where there is something: thousands of small searches take their time.
        if world.aviary.search(f"answers of {status}", b"\n".join(each.content for each in these), allowed=allowed):
            for each in these:
                world.search(each.about, each.content, allowed)
