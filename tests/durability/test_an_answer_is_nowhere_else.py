"""What a person answers reaches the call that waits, through killed servers, and a search finds it nowhere else.

Real servers at log level debug on a PostgreSQL of their own that logs every statement; then every column, every file of
the database with its write-ahead log, all output, every stream, every other answer and the metrics are searched for the
answers, their digests, and the answers that were refused.
"""

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import httpx
import pytest

from controlplane.cli.postgres import Embedded, run_ephemeral
from controlplane.storage.migrations import migrate
from tests.durability.conftest import Figures
from tests.durability.plane import Plane, planes
from tests.feedback import EVENTS, PENDING, SUBMIT, Asker
from tests.postgres import run
from tests.security.canaries import Aviary, Found
from tests.security.places import search_command_lines, search_database

PATIENCE_SECONDS = 60.0
ASK = "/api/v1/human-feedback"
STREAMS = (EVENTS, "/api/v1/events")
MIB = 1024 * 1024


class Told(NamedTuple):
    """What a server sent: in answer to what, and its bytes."""

    about: str
    content: bytes


class Scene:
    """Two servers, what was answered, and all that was seen of them."""

    def __init__(self, both: list[Plane], client: httpx.AsyncClient) -> None:
        self.first, self.second = both
        self.aviary = Aviary()
        self.client = client
        self.told: list[Told] = []
        self.output: list[str] = []
        self.refused = 0
        self.kills = 0
        self._mark = os.urandom(4).hex()

    def named(self, word: str, number: int) -> str:
        """The id of a question; an id stays used for an hour, on the database of all tests of this file."""
        return f"{word}-{self._mark}-{number}"

    def answer(self) -> str:
        """A new answer, which is looked for from now on, as are digests of it."""
        text = f"code{os.urandom(12).hex()}"
        number = self.aviary.count
        self.aviary.plant(f"digest of answer {number}", hashlib.sha256(text.encode()).hexdigest())
        return self.aviary.plant(f"answer {number}", text)

    async def send(self, plane: Plane, method: str, path: str, **what: Any) -> httpx.Response:
        """One request; what comes back is searched later."""
        reply = await self.client.request(method, plane.url + path, timeout=PATIENCE_SECONDS, **what)
        self.told.append(Told(f"{method} {path}", repr(reply.headers).encode() + reply.content))
        return reply

    async def submit(self, plane: Plane, unique_id: str, response: str) -> httpx.Response:
        return await self.send(plane, "POST", SUBMIT, json={"unique_id": unique_id, "response": response})

    async def refuse(self, unique_id: str) -> None:
        """Answers that are refused, each in another way."""
        text = self.answer()
        json_type = {"Content-Type": "application/json"}
        whole = {"unique_id": unique_id, "response": text}
        for body in (
            {"json": {"unique_id": f"{unique_id}-0", "response": text}},
            {"json": whole | {"submission_id": [text]}},
            {"json": whole | {"response": [text]}},
            {"json": whole | {"response": {text: text}}},
            {"json": whole | {"response": text + "\0"}},
            {"json": whole | {"submission_id": text * 20}},
            {"content": text.encode(), "headers": json_type},
            {"content": f'{{"unique_id": "{unique_id}", "response": "{text}'.encode(), "headers": json_type},
            {"content": text.encode() + b" " * MIB, "headers": json_type},
            {"content": text.encode(), "headers": {"Content-Type": "text/plain"}},
        ):
            assert 400 <= (await self.send(self.first, "POST", SUBMIT, **body)).status_code < 500
            self.refused += 1

    def kill(self, plane: Plane) -> None:
        """SIGKILL; what it printed is kept."""
        self.kills += 1
        assert plane._running is not None
        plane.kill()
        self.output += plane._running.printed()

    def close(self) -> None:
        for plane in (self.first, self.second):
            plane.stop()
            assert plane._running is not None
            self.output += plane._running.printed()

    async def search(self, sql: Any) -> list[Found]:
        """Every column, answer, stream, line of output and command line."""
        found = await search_database(self.aviary, sql)
        for each in self.told:
            found += self.aviary.search(each.about, each.content)
        for plane in (self.first, self.second):
            found += search_command_lines(self.aviary, plane.pid)
        return found + self.aviary.search("output", "".join(self.output))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Embedded]:
    """A PostgreSQL of this file's own, which logs every statement with its values."""
    with run_ephemeral(entropy=os.urandom) as embedded:
        run(migrate(embedded.url))
        run(talk_more(embedded.url))
        yield embedded


async def talk_more(url: str) -> None:
    connection = await asyncpg.connect(url)
    for setting in ("log_statement = 'all'", "log_parameter_max_length = -1", "log_parameter_max_length_on_error = -1"):
        await connection.execute(f"ALTER SYSTEM SET {setting}")
    await connection.execute("SELECT pg_reload_conf()")
    await connection.close()


def search_written(aviary: Aviary, cluster: Embedded, since: float) -> list[Found]:
    """Every file of a PostgreSQL that was written since a moment: tables, the write-ahead log, its own log."""
    area = Path(cluster.cluster.area)
    found = []
    for file in sorted(path for path in area.rglob("*") if path.is_file() and not path.is_symlink()):
        if file.stat().st_mtime >= since - 1:
            found += aviary.search(str(file.relative_to(area)), file.read_bytes())
    return found


@asynccontextmanager
async def watching(scene: Scene, plane: Plane) -> AsyncIterator[None]:
    """Read both streams of a server for the length of a block, or until it is killed."""

    async def read(path: str) -> None:
        with suppress(httpx.TransportError):
            async with scene.client.stream("GET", plane.url + path, timeout=PATIENCE_SECONDS) as reply:
                async for part in reply.aiter_raw():
                    scene.told.append(Told(path, part))

    tasks = [asyncio.create_task(read(path)) for path in STREAMS]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def fetched(scene: Scene, asker: Asker, unique_id: str) -> str:
    """What an asker does: wait at one server, and at the other when that one goes."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            for plane in (scene.first, scene.second):
                with suppress(httpx.TransportError):
                    reply = await scene.send(plane, "GET", f"{ASK}/{unique_id}/answer", params={"wait": 30})
                    if reply.json()["outcome"] == "answered":
                        return asker.open(reply, unique_id)
            await asyncio.sleep(0.02)


async def shown(scene: Scene, plane: Plane, unique_id: str) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while unique_id not in (await scene.send(plane, "GET", PENDING)).text:
            await asyncio.sleep(0.02)


async def through_kills(scene: Scene, number: int) -> None:
    """Ask at one server, which is killed; answer at the other, which is killed before anybody fetched that."""
    unique_id = scene.named("killed", number)
    asker, said = Asker(), scene.answer()
    asked = asker.body(unique_id, kind=("text", "secret")[number % 2])
    assert (await scene.send(scene.first, "POST", ASK, json=asked)).status_code == 201
    await scene.refuse(unique_id)
    waiting = asyncio.create_task(fetched(scene, asker, unique_id))
    await shown(scene, scene.second, unique_id)
    scene.kill(scene.first)
    async with asyncio.timeout(PATIENCE_SECONDS):
        # It waits at the second one by now, or is about to: both go on from what is stored.
        assert (await scene.submit(scene.second, unique_id, said)).status_code == 200
    scene.kill(scene.second)
    scene.second.launch()
    await asyncio.to_thread(scene.first.start)
    assert await waiting == said
    await asyncio.to_thread(scene.second.wait_until_ready)
    assert (await scene.submit(scene.second, unique_id, scene.answer())).status_code == 409


async def held(scene: Scene, number: int) -> None:
    """A held call gets its answer in the clear, which nobody but it is sent."""
    unique_id, said = scene.named("held", number), scene.answer()
    body = {"unique_id": unique_id, "message_for_user": "Which code?", "wait": True}
    call = asyncio.create_task(scene.client.post(scene.first.url + ASK, json=body, timeout=PATIENCE_SECONDS))
    await shown(scene, scene.second, unique_id)
    assert (await scene.submit(scene.second, unique_id, said)).status_code == 200
    assert (await call).json() == {"unique_id": unique_id, "outcome": "answered", "response": said}


@pytest.mark.parametrize(
    "rounds",
    [
        pytest.param(1, id="quick"),
        pytest.param(12, id="long", marks=[pytest.mark.proof, pytest.mark.timeout(900)]),
    ],
)
async def test_an_answer_arrives_and_is_nowhere_else(cluster: Embedded, figures: Figures, rounds: int):
    sql = await asyncpg.connect(cluster.url)
    begun = time.time()
    with planes(cluster.url, 2, LOG_LEVEL="debug", LOG_FORMAT="json") as both:
        async with httpx.AsyncClient(trust_env=False) as client:
            scene = Scene(both, client)
            for number in range(rounds):
                async with watching(scene, scene.first), watching(scene, scene.second):
                    await through_kills(scene, number)
                async with watching(scene, scene.first), watching(scene, scene.second):
                    await held(scene, number)
                    # The sealed answer is still there: what was stored of it is searched, and then what is left.
                    leaked = await scene.search(sql)
                    await scene.send(scene.first, "DELETE", f"{ASK}/{scene.named('killed', number)}")
            await scene.send(scene.first, "GET", "/metrics")
            await scene.send(scene.first, "GET", "/inbox")
            leaked += await scene.search(sql)
        await asyncio.to_thread(scene.close)
        leaked += scene.aviary.search("output", "".join(scene.output))
    kept = await sql.fetchval("SELECT count(*) FROM feedback WHERE ct IS NOT NULL")
    answered = await sql.fetchval("SELECT count(*) FROM history WHERE type = 'feedback.answered'")
    await sql.execute("CHECKPOINT")
    await sql.close()
    leaked += search_written(scene.aviary, cluster, begun)
    figures(
        "where an answer is",
        answers_that_arrived=answered,
        answers_refused=scene.refused,
        servers_killed=scene.kills,
        texts_looked_for=scene.aviary.count,
        places=scene.aviary.places,
        bytes=scene.aviary.bytes,
        found=len(leaked),
    )
    assert leaked == []
    assert kept == 0
    assert answered >= 2 * rounds
    streamed = b"".join(each.content for each in scene.told if each.about in STREAMS)
    assert b"human_feedback_resolved" in streamed
    assert b"feedback.answered" in streamed
    assert scene.output


async def test_the_search_finds_what_is_planted(cluster: Embedded):
    aviary = Aviary()
    answer = aviary.plant("answer")
    sql = await asyncpg.connect(cluster.url)
    begun = time.time()
    assert await search_database(aviary, sql) == []
    assert search_written(aviary, cluster, 0) == []
    for column in ("message", "submission_id", "ct"):
        value = f"'{answer}'::bytea" if column == "ct" else f"'{answer}'"
        await sql.execute("BEGIN")
        await sql.execute(
            "INSERT INTO feedback (unique_id, status, message, public_key, created_at, expires_at, waiter_until)"
            " VALUES ('planted', 'pending', 'm', decode(repeat('01', 32), 'hex'), now(), now() + interval '1 h', now())"
        )
        ended = "" if column != "ct" else ", enc = '\\x00', status = 'answered', ended_at = now(), message = NULL"
        await sql.execute(f"UPDATE feedback SET {column} = {value}{ended} WHERE unique_id = 'planted'")
        assert {found.place for found in await search_database(aviary, sql)} == {f"feedback.{column}"}
        await sql.execute("ROLLBACK")
    await sql.execute("SELECT pg_logical_emit_message(false, 'planted', $1::text, true)", answer)
    await sql.close()
    places = {found.place for found in search_written(aviary, cluster, begun)}
    assert "server.log" in places
    assert any("pg_wal" in place for place in places)
