"""The newest seal is written down outside of the database: at the start, once a minute, and again after a failure."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from controlplane.domain.audit import Head, read_head
from controlplane.workers import heads
from controlplane.workers.heads import HeadWriter
from tests.app import Api, in_process, until
from tests.postgres import Database
from tests.receiver import receiver, reply
from tests.services.sealing import record, seal
from tests.services.store import Store


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    """A history with one seal."""
    made = Store(database)
    await record(made, "1")
    await seal(made)
    yield made
    await made.engine.dispose()


@pytest.fixture
async def api(database: Database, store: Store) -> AsyncIterator[Api]:
    """An application whose workers a test runs step by step."""
    async with in_process(store.database) as made:
        yield made


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step is due."""
    monkeypatch.setattr(heads, "EVERY_SECONDS", 0.0)
    monkeypatch.setattr(heads, "AGAIN_SECONDS", 0.0)


async def more(store: Store, number: int) -> None:
    await record(store, str(number))
    assert await seal(store) == 1


def read(file: Path) -> list[Head | None]:
    return [read_head(line) for line in file.read_bytes().splitlines()]


def numbers(file: Path) -> list[int | None]:
    return [head and head.number for head in read(file)]


@pytest.mark.usefixtures("at_once")
async def test_each_new_seal_is_appended_once(api: Api, store: Store, tmp_path: Path):
    file = tmp_path / "heads"
    writer = HeadWriter(api.runtime, str(file))
    for number in (2, 3):
        await writer.step()
        await writer.step()
        await more(store, number)
    await writer.step()
    assert numbers(file) == [1, 2, 3]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (first, *_) = read(file)
    sql = await store.database.connect()
    digest = await sql.fetchval("SELECT encode(sha256, 'hex') FROM seals WHERE number = 1")
    await sql.close()
    assert first is not None
    assert (first.sha256, first.last_seq) == (digest, 1)


async def test_the_first_is_written_at_the_start_and_the_next_after_a_minute(api: Api, store: Store, tmp_path: Path):
    file = tmp_path / "heads"
    writer = HeadWriter(api.runtime, str(file))
    assert await writer.step() == 60.0
    await more(store, 2)
    assert 50.0 < await writer.step() <= 60.0
    assert numbers(file) == [1]


@pytest.mark.usefixtures("at_once")
async def test_a_line_that_a_crash_cut_off_swallows_none(api: Api, tmp_path: Path):
    file = tmp_path / "heads"
    file.write_bytes(b'{"number": 1, "sha')
    await HeadWriter(api.runtime, str(file)).step()
    assert numbers(file) == [None, 1]


@pytest.mark.usefixtures("at_once")
async def test_without_a_seal_nothing_is_written(database: Database, tmp_path: Path):
    async with in_process(database) as api:
        await HeadWriter(api.runtime, str(tmp_path / "heads")).step()
    assert not (tmp_path / "heads").exists()


async def test_a_file_that_cannot_be_written_is_said_and_tried_again(api: Api, tmp_path: Path):
    directory = tmp_path / "later"
    writer = HeadWriter(api.runtime, str(directory / "heads"))
    with capture_logs() as logs:
        assert await writer.step() == heads.AGAIN_SECONDS
    assert [(log["event"], log["log_level"]) for log in logs] == [("audit_head_not_written", "error")]
    assert "No such file or directory" in logs[0]["cause"]
    directory.mkdir()
    writer._due = api.runtime.monotonic()
    assert await writer.step() == heads.EVERY_SECONDS
    assert numbers(directory / "heads") == [1]


@pytest.mark.usefixtures("at_once")
async def test_a_url_is_sent_the_line_until_it_takes_it(api: Api, store: Store):
    async with receiver() as other:
        other.answers = [reply(500), reply(302, b"", "Location: /elsewhere"), reply(204, b"")]
        writer = HeadWriter(api.runtime, f"http://127.0.0.1:{other.port}/heads?token=hunter22")
        with capture_logs() as logs:
            for _ in range(4):
                await writer.step()
        got = await other.wait_for(3)
    assert [log["cause"] for log in logs] == ["the receiver answered 500", "the receiver answered 302"]
    assert "hunter22" not in str(logs)
    assert [(each.path, read_head(each.raw)) for each in got] == [("/heads?token=hunter22", read_head(got[0].raw))] * 3
    assert got[0].headers["content-type"] == "application/json"


async def test_nobody_at_the_url_is_said(api: Api):
    with capture_logs() as logs:
        assert await HeadWriter(api.runtime, "http://127.0.0.1:1/heads").step() == heads.AGAIN_SECONDS
    assert logs[0]["event"] == "audit_head_not_written"


async def test_a_server_writes_them_where_it_is_told(database: Database, tmp_path: Path):
    file = tmp_path / "heads"
    async with in_process(database, workers=True, audit_heads=str(file)) as api:
        await api.start()
        await until(file.exists)
        await until(lambda: numbers(file) == [1])
    assert os.access(file, os.R_OK)


async def test_two_processes_may_write_one_file(api: Api, store: Store, tmp_path: Path):
    file = tmp_path / "heads"
    async with in_process(store.database) as other:
        writers = [HeadWriter(each.runtime, str(file)) for each in (api, other)]
        await asyncio.gather(*(writer.step() for writer in writers))
    assert numbers(file) == [1, 1]
