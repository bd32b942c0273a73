"""The serving process's protocol over real sockets; deadlines are shortened, nothing else."""

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from controlplane.cli.serving import protocol
from tests.cli.protocol_server import CLOSE, HEAD, Served, problem, serving, statuses


@pytest.fixture
async def served(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    for name in ("HEADER_SECONDS", "BODY_SECONDS", "DISCARD_SECONDS"):
        monkeypatch.setattr(protocol, name, 0.2)
    async with serving() as made:
        yield made


async def test_an_ordinary_request_is_answered(served: Served):
    reply = await served.talk(HEAD + CLOSE + b"Content-Length: 2\r\n\r\nhi")
    assert reply.startswith(b"HTTP/1.1 200")
    assert reply.endswith(b"2")


async def test_a_header_block_of_32_kib_passes_and_a_byte_more_does_not(served: Served):
    fixed = len(b"/x") + len(b"HostaConnectionclosex") + 3 * 4
    fits = b"X: " + b"a" * (protocol.HEADER_BYTES - fixed) + b"\r\n\r\n"
    assert (await served.talk(HEAD + CLOSE + fits)).startswith(b"HTTP/1.1 200")
    assert problem(await served.talk(HEAD + CLOSE + b"X: a" + fits[3:])) == (431, "header_too_large")
    assert served.app.started == 1


async def test_a_header_that_never_ends_is_cut_off_while_it_comes(served: Served):
    pieces = [HEAD, *[b"X: " + b"a" * 8192 for _ in range(5)]]
    assert problem(await served.talk(*pieces)) == (431, "header_too_large")


async def test_many_small_headers_count_as_one_block(served: Served):
    assert problem(await served.talk(HEAD, b"A: b\r\n" * 6000)) == (431, "header_too_large")


@pytest.mark.parametrize("sent", [b"", b"GET / HT", HEAD, HEAD + b"X: "])
async def test_headers_that_do_not_come_end_in_408(served: Served, sent: bytes):
    assert problem(await served.talk(sent)) == (408, "request_timeout")


async def test_the_next_request_of_a_connection_has_a_deadline_too(served: Served):
    reply = await served.talk(HEAD + b"Content-Length: 0\r\n\r\n", b"GET /ne")
    first, _, second = reply.partition(b"HTTP/1.1 408")
    assert first.startswith(b"HTTP/1.1 200")
    assert b"request_timeout" in second


async def test_a_body_that_does_not_come_ends_in_408_and_the_application_hears_of_it(served: Served):
    assert problem(await served.talk(HEAD + b"Content-Length: 5\r\n\r\nhi")) == (408, "request_timeout")
    async with asyncio.timeout(5):
        await served.app.disconnected.wait()


async def test_a_body_that_keeps_coming_gets_more_time(served: Served, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(protocol, "BODY_BYTES_PER_SECOND", 10)
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(HEAD + CLOSE + b"Content-Length: 60\r\n\r\n")
    loop = asyncio.get_running_loop()
    begun = loop.time()
    for _ in range(60):
        writer.write(b"a")
        await asyncio.sleep(0.01)  # the pace of a slow client, which is what this is about
    async with asyncio.timeout(5):
        reply = await reader.read()
    writer.close()
    assert loop.time() - begun > protocol.BODY_SECONDS
    assert reply.startswith(b"HTTP/1.1 200")


async def test_the_rest_of_a_refused_body_is_thrown_away_so_that_the_answer_arrives(served: Served):
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(b"POST /refuse HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 3000000\r\n\r\n")
    for _ in range(30):
        writer.write(b"a" * 100_000)
        await writer.drain()
    async with asyncio.timeout(5):
        assert (await reader.read()).startswith(b"HTTP/1.1 413")
    writer.close()


async def test_a_refused_body_without_end_is_cut_off(served: Served):
    with pytest.raises(ConnectionError):
        await served.talk(
            b"POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 900000000\r\n\r\n", *[b"a" * 100_000] * 900
        )


async def test_what_is_no_http_is_a_400(served: Served):
    assert problem(await served.talk(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")) == (400, "malformed_request")


async def test_nonsense_behind_a_request_does_not_cost_that_request_its_answer(served: Served):
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
    async with asyncio.timeout(5):
        await served.app.waiting.wait()
    writer.write(b"\x00\x00\r\n\r\n")
    await writer.drain()
    served.app.release.set()
    async with asyncio.timeout(5):
        reply = await reader.read()
    writer.close()
    assert reply.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("whole", [1, 2, 3])
@pytest.mark.parametrize(
    "broken",
    [
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5o\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello!!\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nno trailer\r\n\r\n",
        HEAD + b"No header\r\n\r\n",
        b"nonsense\r\n\r\n",
    ],
)
async def test_a_request_that_breaks_off_behind_others_does_not_hold_its_connection(
    served: Served, whole: int, broken: bytes
):
    others = (HEAD + b"Content-Length: 5\r\n\r\nhello") * whole
    assert statuses(await served.talk(others + broken)) == [200] * whole
    assert statuses(await served.talk(others + broken[:40], broken[40:])) == [200] * whole


async def test_nobody_is_told_to_go_on_behind_a_refusal(served: Served, caplog: pytest.LogCaptureFixture):
    reply = await served.talk(HEAD + b"Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n5o\r\n")
    assert problem(reply) == (400, "malformed_request")
    async with asyncio.timeout(5):
        await served.app.disconnected.wait()
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


async def test_pipelined_requests_are_answered_in_order(served: Served):
    one = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"
    two = b"POST /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\nxy"
    reply = await served.talk(one + two)
    assert reply.count(b"HTTP/1.1 200") == 2
    assert reply.endswith(b"2")
