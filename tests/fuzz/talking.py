"""Raw bytes on real connections: the server lives on, refuses with 4xx or hangs up, and reads a request as h11 does.

What is served is a small application that says what it was given, so that a second parser can be held against ours:
where both take a request, method, target and body are the same, or one of them could be made to see another's.
"""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import h11
import uvicorn

from controlplane.cli.serving import protocol
from controlplane.cli.serving.listening import listen
from controlplane.cli.serving.server import config_of
from tests.fuzz.draw import Draw
from tests.fuzz.outcomes import Disagreement, FalseAccept, Tally, Target

AT_ONCE = 50
# Everything that a client may take its time for is over at once, so that no connection has to be waited for.
SHORT = {"HEADER_SECONDS": 0.1, "BODY_SECONDS": 0.1, "DISCARD_SECONDS": 0.1}
KEEP_ALIVE_SECONDS = 0.1
PATIENCE_SECONDS = 30.0

_HEAD = b"%b %b %b\r\nHost: 127.0.0.1\r\n"
_REQUESTS = (
    _HEAD % (b"GET", b"/a", b"HTTP/1.1") + b"\r\n",
    _HEAD % (b"GET", b"/a?b=c", b"HTTP/1.0") + b"Connection: close\r\n\r\n",
    _HEAD % (b"POST", b"/a", b"HTTP/1.1") + b"Content-Length: 5\r\n\r\nhello",
    _HEAD % (b"POST", b"/a", b"HTTP/1.1") + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    _HEAD % (b"POST", b"/a", b"HTTP/1.1") + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    _HEAD % (b"POST", b"/a", b"HTTP/1.1") + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    _HEAD % (b"POST", b"/a", b"HTTP/1.1") + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
    _HEAD % (b"GET", b"/a", b"HTTP/1.1") + b"Upgrade: websocket\r\nConnection: upgrade\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    _HEAD % (b"GET", b"http://127.0.0.1/a", b"HTTP/1.1") + b"\r\n",
    _HEAD % (b"OPTIONS", b"*", b"HTTP/1.1") + b"\r\n",
    _HEAD % (b"CONNECT", b"a:80", b"HTTP/1.1") + b"\r\n",
    _HEAD % (b"GET", b"/%00%ff/\xff", b"HTTP/1.1") + b"X: \x80\xff\r\n Y: folded\r\n\r\n",
)
_LINES = (
    *(b"Content-Length: -1\r\n", b"Content-Length: 0x5\r\n", b"Content-Length : 5\r\n"),
    *(b"Content-Length: 99999999999999999999\r\n", b"Content-Length: 5, 5\r\n", b"Content-Length: +5\r\n"),
    *(b"Transfer-Encoding: chunked, gzip\r\n", b"Transfer-Encoding:\x0bchunked\r\n", b"transfer-encoding: CHUNKED\r\n"),
    *(b"X\x00: y\r\n", b"X: y\x00\r\n", b": y\r\n", b"X\r\n", b"X: y\n", b"\n", b"X: " + b"y" * 33_000 + b"\r\n"),
)
_ANSWER = re.compile(rb"HTTP/1\.1 (\d{3}) ")
_ORIGIN = re.compile(rb"[a-z]+://[^/?#]*", re.IGNORECASE)


class Sent(NamedTuple):
    """What one connection carries, in pieces."""

    pieces: tuple[bytes, ...]

    @property
    def whole(self) -> bytes:
        return b"".join(self.pieces)


def sent_of(data: bytes) -> Sent:
    """Requests with changes, one behind another, cut anywhere; or bytes as they come."""
    draw = Draw(data)
    if draw.once_in(12):
        return Sent((draw.rest(),))
    raw = b""
    for _ in range(1 + draw.below(3)):
        request = draw.choice(_REQUESTS)
        if draw.below(2):
            head, _, rest = request.partition(b"\r\n")
            request = head + b"\r\n" + draw.choice(_LINES) + rest
        raw += draw.mutated(request, 2 * draw.below(2))
    cut = draw.below(len(raw) + 1)
    return Sent((raw[:cut], raw[cut:]) if draw.below(2) else (raw,))


class Endpoint:
    """A server in this process, and what went wrong in it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.faults: list[Exception] = []

    async def exchange(self, sent: Sent) -> bytes | None:
        """Everything that is answered until the server hangs up; None if it does not."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            for piece in sent.pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            return await asyncio.wait_for(reader.read(), PATIENCE_SECONDS)
        except (ConnectionResetError, BrokenPipeError):
            return b""
        except TimeoutError:
            return None
        finally:
            writer.close()


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Say what was asked, in as many words."""
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body, more = body + message.get("body", b""), message.get("more_body", False)
    target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
    told = json.dumps([scope["method"], target.hex(), body.hex()]).encode()
    headers = [(b"content-length", b"%d" % len(told))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": told})


@asynccontextmanager
async def serving() -> AsyncIterator[Endpoint]:
    """Serve `echo` as the product is served, in a hurry; what is logged as an error or raised in a callback is kept."""
    kept = {name: getattr(protocol, name) for name in SHORT}
    for name, value in SHORT.items():
        setattr(protocol, name, value)
    sock = listen("127.0.0.1", 0)
    config = config_of(echo)
    config.lifespan, config.timeout_keep_alive = "off", KEEP_ALIVE_SECONDS  # type: ignore[assignment]
    server = uvicorn.Server(config)
    endpoint = Endpoint(sock.getsockname()[1])
    task = asyncio.create_task(server._serve([sock]))
    loop, told = asyncio.get_running_loop(), _Told(endpoint)
    loop.set_exception_handler(lambda _, context: endpoint.faults.append(_fault(context)))
    logging.getLogger("uvicorn.error").addHandler(told)
    try:
        while not server.started:
            await asyncio.sleep(0.005)
        yield endpoint
    finally:
        logging.getLogger("uvicorn.error").removeHandler(told)
        loop.set_exception_handler(None)
        server.should_exit = True
        await task
        for name, value in kept.items():
            setattr(protocol, name, value)


async def talk(endpoint: Endpoint, tally: Tally, inputs: Iterable[bytes]) -> None:
    """Send each of some inputs on a connection of its own, all at once, and judge the answers."""
    some = list(inputs)
    answers = await asyncio.gather(*(endpoint.exchange(sent_of(data)) for data in some))
    for data, answered in zip(some, answers, strict=True):
        tally.judge(lambda each, answered=answered: judge(sent_of(each), answered), data)
    faults, endpoint.faults = endpoint.faults, []
    for fault in faults:
        tally.judge(_raise, fault)
    alive = await endpoint.exchange(Sent((_REQUESTS[0],)))
    if not (alive or b"").startswith(b"HTTP/1.1 200 "):
        tally.judge(_raise, Disagreement(f"an ordinary request was answered {alive!r}"))


def judge(sent: Sent, answered: bytes | None) -> str:
    """Statuses of 200 and 4xx alone, and what was read is what h11 reads, where that reads anything."""
    if answered is None:
        raise Disagreement("the connection was held open")
    if not answered:
        return "hung up"
    statuses = [int(found) for found in re.findall(rb"HTTP/1\.1 (\d{3}) ", answered)]
    if not answered.startswith(b"HTTP/1.1 ") or any(
        each not in {100, 200} and not 400 <= each < 500 for each in statuses
    ):
        raise Disagreement(f"answered {statuses}: {answered[:200]!r}")
    ours, theirs = _ours(answered), _theirs(sent.whole)
    for mine, other in zip(ours, theirs, strict=False):
        if mine != other:
            raise FalseAccept(f"read as {mine}, but h11 reads {other}")
    return "taken" if ours else "refused"


def _ours(answered: bytes) -> list[tuple[str, bytes, bytes]]:
    found = re.findall(rb'\r\n\r\n(\["[^\]]*"\])', answered)
    return [(method, bytes.fromhex(target), bytes.fromhex(body)) for method, target, body in map(json.loads, found)]


def _theirs(raw: bytes) -> list[tuple[str, bytes, bytes]]:
    """The whole requests that h11 finds, up to the first that it refuses or another that ends the connection."""
    connection, found = h11.Connection(h11.SERVER, max_incomplete_event_size=10**6), []
    connection.receive_data(raw)
    try:
        while isinstance(request := connection.next_event(), h11.Request):
            body = b""
            while isinstance(event := connection.next_event(), h11.Data):
                body += bytes(event.data)
            if not isinstance(event, h11.EndOfMessage):
                break
            found.append((request.method.decode(), _ORIGIN.sub(b"", request.target), body))
            connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
            connection.send(h11.EndOfMessage())
            if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                break
            connection.start_next_cycle()
    except (h11.RemoteProtocolError, h11.LocalProtocolError):
        pass
    return found


class _Told(logging.Handler):
    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(logging.ERROR)
        self._endpoint = endpoint

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self._endpoint.faults.append(error if isinstance(error, Exception) else RuntimeError(record.getMessage()))


def _fault(context: dict[str, Any]) -> Exception:
    error = context.get("exception")
    return error if isinstance(error, Exception) else RuntimeError(str(context.get("message")))


def _raise(fault: Exception) -> str:
    raise fault


TARGET = Target("connections", lambda _: "", share=0, meets=frozenset({"taken", "refused"}))
