"""What a client sends to confuse, to hold or to exhaust the server: refused, ended and bounded, on the loop it runs on.

Deadlines are shortened, nothing else.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress

import pytest

from controlplane.cli.serving import protocol
from tests.cli.protocol_server import CLOSE, HEAD, Served, problem, serving_apart, statuses

GET = b"GET /x HTTP/1.1\r\nHost: a\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
NEXT = b"GET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
WAIT = b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n"
MIB = 1024 * 1024

TWO_READINGS = {
    "a folded header": GET + b"X: a\r\n b\r\n\r\n",
    "a bare line feed": b"GET /x HTTP/1.1\nHost: a\n\n",
    "a bare line feed behind a header": GET + b"X: b\nY: c\r\n\r\n",
    "a bare carriage return": b"GET /x HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
    "two lengths": HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
    "one length twice": HEAD + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi",
    "a list of lengths": HEAD + b"Content-Length: 2, 2\r\n\r\nhi",
    "a signed length": HEAD + b"Content-Length: +2\r\n\r\nhi",
    "a negative length": HEAD + b"Content-Length: -2\r\n\r\nhi",
    "a hexadecimal length": HEAD + b"Content-Length: 0x2\r\n\r\nhi",
    "a length beyond all numbers": HEAD + b"Content-Length: 99999999999999999999999\r\n\r\nhi",
    "an empty length": HEAD + b"Content-Length:\r\n\r\n",
    "a length with space before its colon": HEAD + b"Content-Length : 2\r\n\r\nhi",
    "length and chunks": HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n",
    "a word like chunked": HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked, then another": HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "another, then chunked": HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunked twice": HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "identity": HEAD + b"Transfer-Encoding: identity\r\n\r\nhi",
    "chunked behind a vertical tab": HEAD + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "chunked with space before its colon": HEAD + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "chunks in HTTP/1.0": b"POST /x HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a negative chunk": CHUNKED + b"-1\r\n\r\n",
    "a chunk with a prefix": CHUNKED + b"0x2\r\nhi\r\n0\r\n\r\n",
    "a chunk beyond all numbers": CHUNKED + b"fffffffffffffffff\r\nhi\r\n0\r\n\r\n",
    "a chunk that ends in a bare line feed": CHUNKED + b"2\nhi\n0\n\n",
    "an extension with a bare line feed": CHUNKED + b"2;a\nb\r\nhi\r\n0\r\n\r\n",
    "a chunk that is longer than it says": CHUNKED + b"2\r\nhi0\r\n\r\n",
    "NUL in a value": GET + b"X: a\x00b\r\n\r\n",
    "NUL in a name": GET + b"X\x00: a\r\n\r\n",
    "a control character in a value": GET + b"X: a\x01b\r\n\r\n",
    "space in a name": GET + b"X Y: a\r\n\r\n",
    "space before the first header": b"GET /x HTTP/1.1\r\n X: a\r\nHost: a\r\n\r\n",
    "a header without a colon": GET + b"nonsense\r\n\r\n",
    "a header without a name": GET + b": a\r\n\r\n",
    "NUL in the path": b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
    "a byte beyond ASCII in the path": b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n",
    "a path without a slash": b"GET x HTTP/1.1\r\nHost: a\r\n\r\n",
    "a tunnel": b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
    "no version": b"GET /x\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a version that is none": b"GET /x HTTP/1.2\r\nHost: a\r\n\r\n",
    "no Host": b"GET /x HTTP/1.1\r\n\r\n",
    "two Hosts": GET + b"Host: b\r\n\r\n",
    "an upgrade with a body": HEAD + b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nhi",
    "an upgrade with chunks": HEAD
    + b"Connection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
}


@pytest.fixture
async def served(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    for name in ("HEADER_SECONDS", "BODY_SECONDS", "DISCARD_SECONDS", "STALLED_SECONDS"):
        monkeypatch.setattr(protocol, name, 0.2)
    async with serving_apart(keep_alive=0.2) as made:
        yield made


@pytest.mark.parametrize("sent", TWO_READINGS.values(), ids=TWO_READINGS)
async def test_what_could_be_read_in_two_ways_is_refused_and_ends_the_connection(served: Served, sent: bytes):
    reply = await served.talk(sent + NEXT)
    assert problem(reply) == (400, "malformed_request")
    assert statuses(reply) == [400]


async def test_what_follows_the_last_request_is_not_served(served: Served):
    assert statuses(await served.talk(GET + CLOSE + b"\r\n" + NEXT)) == [200]
    upgrade = GET + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    assert statuses(await served.talk(upgrade + NEXT)) == [200]
    assert served.app.started == 2


async def test_headers_behind_a_body_do_not_count_as_headers(served: Served):
    reply = await served.talk(
        HEAD + CLOSE + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n", b"0\r\nX-Api-Key: k\r\n\r\n"
    )
    assert statuses(reply) == [200]
    assert b"x-api-key" not in [name for name, _ in served.app.headers]
    assert b"host" in [name for name, _ in served.app.headers]


async def test_a_request_line_without_end_is_cut_off(served: Served):
    assert problem(await served.talk(b"GET /" + b"a" * 100 * 1024)) == (431, "header_too_large")
    assert problem(await served.talk(b"GET /" + b"a" * 100 * 1024 + b" HTTP/1.1\r\n\r\n")) == (431, "header_too_large")
    assert served.app.started == 0


@pytest.mark.parametrize(
    "sent",
    [b"1\r\na\r\n" * 300_000, b"1;" + b"x" * 2 * MIB, b"0\r\n" + b"A: b\r\n" * 300_000],
    ids=["chunks", "an extension", "trailers"],
)
async def test_a_body_that_is_mostly_framing_is_refused(served: Served, sent: bytes, monkeypatch: pytest.MonkeyPatch):
    for name in ("BODY_SECONDS", "DISCARD_SECONDS"):
        monkeypatch.setattr(protocol, name, 10)
    async with served.open() as (reader, writer), asyncio.timeout(10):
        writer.write(CHUNKED)
        writer.write(sent)
        assert problem(await reader.read()) == (400, "malformed_request")


async def test_chunks_of_an_ordinary_size_are_taken(served: Served, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(protocol, "BODY_SECONDS", 10)
    body = b"".join(b"10\r\n" + b"x" * 16 + b"\r\n" for _ in range(20_000)) + b"0\r\n\r\n"
    reply = await served.talk(HEAD + CLOSE + b"Transfer-Encoding: chunked\r\n\r\n" + body)
    assert reply.endswith(b"320000")


async def test_ten_thousand_requests_in_one_piece_are_not_all_held(served: Served):
    served.release()
    answers = statuses(await asyncio.to_thread(_send_blindly, served.port, WAIT + (GET + b"\r\n") * 10_000))
    assert set(answers) == {200}
    assert len(answers) == served.app.started <= protocol.MOST_PIPELINED + 1


async def test_a_call_hears_that_its_client_is_gone_though_others_stand_behind_it(served: Served):
    async with served.open() as (_, writer):
        writer.write(b"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n" + GET + b"\r\n")
        await writer.drain()
    await served.until(served.app.cut_off.wait())


async def test_an_empty_line_between_requests_does_not_stop_the_clock(served: Served):
    async with served.open() as (reader, writer), asyncio.timeout(5):
        writer.write(GET + b"\r\n")
        assert statuses(await reader.readuntil(b"\r\n")) == [200]
        writer.write(b"\r\n")
        await reader.read()


async def test_a_connection_on_which_nothing_is_asked_any_more_is_ended(served: Served):
    assert statuses(await served.talk(GET + b"\r\n")) == [200]


async def test_a_connection_whose_refused_body_came_late_is_ended_too(served: Served):
    async with served.open() as (reader, writer), asyncio.timeout(5):
        writer.write(b"POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n")
        assert statuses(await reader.readuntil(b"\r\n")) == [413]
        writer.write(b"hi" + GET + b"\r\n")
        assert statuses(await reader.read()) == [200]


async def test_a_client_that_takes_nothing_of_its_answer_is_cut_off(served: Served):
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect(("127.0.0.1", served.port))
        sock.sendall(b"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
        await served.until(served.app.cut_off.wait())


@pytest.mark.parametrize("mib", [5, 20, 200])
async def test_who_sends_it_all_before_it_reads_still_sees_a_refusal(served: Served, mib: int):
    """What it cannot send any more, of the largest, does not cost it the answer."""
    head = b"POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (mib * MIB)
    assert statuses(await asyncio.to_thread(_send_blindly, served.port, head, *[b"x" * MIB] * mib)) == [413]


async def test_who_waits_to_be_told_to_send_is_told_no_and_left():
    asks = b"POST /refuse HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n"
    async with serving_apart() as served:
        assert statuses(await served.talk(asks)) == [413]


async def test_past_its_limit_the_connection_that_was_idle_longest_goes_first():
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(serving_apart(connections=3))
        (idle, _), *busy = [await stack.enter_async_context(served.open()) for _ in range(3)]
        for _, writer in busy:
            writer.write(WAIT)
        await served.until(served.app.waits(2))
        newcomer, writer = await stack.enter_async_context(served.open())
        writer.write(GET + b"\r\n")
        assert statuses(await newcomer.readuntil(b"\r\n")) == [200]
        assert await idle.read() == b""
        writer.write(WAIT)
        await served.until(served.app.waits(3))
        assert problem(await served.talk()) == (503, "too_many_connections")
        served.release()
        for reader, _ in [*busy, (newcomer, writer)]:
            await reader.readuntil(b"HTTP/1.1 200 OK\r\n")


async def test_every_refusal_says_the_same_to_browsers_as_other_answers(served: Served):
    for reply in (await served.talk(b"nonsense\r\n\r\n"), await served.talk(b"")):
        head = reply.partition(b"\r\n\r\n")[0].lower()
        for name, value in protocol.SAFE:
            assert b"%s: %s" % (name, value.lower()) in head
        assert b"server:" not in head


def _send_blindly(port: int, *pieces: bytes) -> bytes:
    """Send all of it before anything is read; then what the server sent before it ended or reset the connection."""
    replies = b""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as sock:
        with suppress(ConnectionError):
            for piece in pieces:
                sock.sendall(piece)
        with suppress(ConnectionError):
            while piece := sock.recv(65_536):
                replies += piece
    return replies
