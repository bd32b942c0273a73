"""uvicorn's HTTP protocol with what it leaves open: caps on what one client may send and hold, deadlines on all of it.

A request that is refused here gets a problem document like every other; then the rest of what the client sends is read
and thrown away for a moment, because closing at once would show it a reset instead of the answer.
"""

import asyncio
from asyncio.events import TimerHandle
from typing import Any, Literal

import httptools
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from controlplane.cli.serving.connections import Connections
from controlplane.domain.door_errors import HeaderTooLarge, MalformedRequest, RequestTimeout, TooManyConnections
from controlplane.domain.errors import HoldshortError
from controlplane.edge.errors import MEDIA_TYPE, problem
from controlplane.edge.headers import SAFE

HEADER_BYTES = 32 * 1024
HEADER_SECONDS = 10.0
BODY_SECONDS = 10.0
BODY_BYTES_PER_SECOND = 64 * 1024
# What chunks may cost beside the body in them: as much again, and this.
FRAMING_BYTES = 64 * 1024
MOST_PIPELINED = 64
DISCARD_BYTES = 4 * 1024 * 1024
DISCARD_SECONDS = 1.0
MOST_DISCARDED = 64 * 1024 * 1024
STALLED_SECONDS = 60.0

_FRAMING = frozenset({b"host", b"transfer-encoding", b"content-length"})
# The versions that are spoken, and how many Host headers each may carry.
_VERSIONS = {"1.0": (0, 1), "1.1": (1,)}
HEADERS = b"content-type: %s\r\nconnection: close\r\ncontent-length: %d\r\n"
_SAFE = b"".join(b"%s: %s\r\n" % header for header in SAFE)


class BoundedProtocol(HttpToolsProtocol):
    """One connection whose requests arrive whole, in time and with a header block of 32 KiB at most.

    The first byte and the headers have 10 s, the body 10 s and one more for each 64 KiB that came. An answer of which
    the client takes nothing for 60 s is cut off. Timers are only set for what did not arrive in one piece, so an
    ordinary request pays nothing.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        others: Connections | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._others = others or Connections()
        self._part: Literal["idle", "head", "body"] = "idle"
        self._head_bytes = 0
        self._head_is_new = False
        self._body_bytes = 0
        self._body_received = 0
        self._body_since = 0.0
        self._discarded = 0
        self._refused = False
        self._closes = False
        self._answered: RequestResponseCycle | None = None
        self._deadline: TimerHandle | None = None
        self._stalled: TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there: its first request has 10 s to begin and to bring its headers."""
        super().connection_made(transport)
        if not self._others.admit(len(self.connections)):
            self._refused = True
            self.transport.write(_answer(TooManyConnections()))
            self._close()
            return
        self._others.idle(self)
        self._deadline = self.loop.call_later(HEADER_SECONDS, self._head_is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone, and so is every deadline."""
        self._others.busy(self)
        self._clear_deadline()
        self._clear_stalled()
        self._unset_keepalive_if_required()
        if self._answered is not None and not self._answered.response_complete:
            # uvicorn tells the newest request only, and this one may have others behind it.
            self._answered.disconnected = True
            self._answered.message_event.set()
        super().connection_lost(exc)

    def end_idle(self) -> None:
        """End the connection, on which nothing is asked, to make room."""
        self._close()

    def data_received(self, data: bytes) -> None:
        """Parse what came, counting it; arm a deadline for what is still missing."""
        if self._refused:
            self._discard(len(data))
            return
        self._others.busy(self)
        self._unset_keepalive_if_required()
        was, self._head_is_new = self._part, False
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._stay_with_http()
        except httptools.HttpParserError:
            self._refuse(MalformedRequest())
            return
        self._count_unfinished_head(len(data), was)
        self._count_framing(len(data), was)
        self._arm_deadline()

    def on_message_begin(self) -> None:
        """A request begins."""
        self._part, self._head_bytes, self._head_is_new = "head", 0, True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header; what comes behind the body (trailers) is dropped, as it would stand among those judged before."""
        if self._part == "head":
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The header block is whole: count it exactly, then let the application start, unless it is too large."""
        self._clear_deadline()
        fault = self._fault_of_head()
        if fault is not None:
            self._refuse(fault)
        if not self._refused:
            self._part, self._body_bytes, self._body_received, self._discarded = "body", 0, 0, 0
            self._body_since = self.loop.time()
            super().on_headers_complete()
            # uvicorn would close with the answer; the rest of a body that nobody reads is to be thrown away first.
            self._closes, self.cycle.keep_alive = not self.cycle.keep_alive, True

    def on_body(self, body: bytes) -> None:
        """A piece of the body; after the answer it is thrown away."""
        if self._refused:
            return
        self._body_bytes += len(body)
        if self.cycle.response_complete:
            self._discard(len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._part = "idle"
        if self._refused:
            return
        self._clear_deadline()
        super().on_message_complete()
        self._close_if_done()

    def on_response_complete(self) -> None:
        """The answer is out; if the body is still coming (it was refused), its rest is thrown away for a while."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._watch_what_is_left()
        elif self.pipeline or not self.cycle.response_complete:
            return
        elif self._part == "body":
            self._discard_the_rest()
        elif self._part == "idle":
            self._others.idle(self)
        self._close_if_done()

    def pause_writing(self) -> None:
        """The client takes less than it is sent: it has 60 s to take something."""
        super().pause_writing()
        self._watch_what_is_left()

    def resume_writing(self) -> None:
        """It took most of it."""
        self._clear_stalled()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Nothing was asked for too long."""
        self._close()

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are no HTTP with a problem document."""
        self._refuse(MalformedRequest(msg))

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def _stay_with_http(self) -> None:
        """Answer a request to speak something else, and end there: what follows it may not be HTTP any more.

        Nothing is logged: older agents ask for a WebSocket at every start, and the ordinary answer tells them.
        """
        self._part, self._refused = "idle", True
        self._clear_deadline()
        cycle = self._unanswered()
        if cycle is None:
            self._close()
        else:
            cycle.keep_alive = False

    def _fault_of_head(self) -> HoldshortError | None:
        """What a head is refused for: its size, and what the parser lets through though recipients read it apart."""
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > HEADER_BYTES:
            return HeaderTooLarge()
        if len(self.pipeline) >= MOST_PIPELINED:
            return MalformedRequest(f"More than {MOST_PIPELINED} requests wait on this connection; await the answers.")
        version = self.parser.get_http_version()
        named = [(name, value.strip().lower()) for name, value in self.headers if name in _FRAMING]
        hosts, bodies = sum(name == b"host" for name, _ in named), [each for each in named if each[0] != b"host"]
        if version not in _VERSIONS or hosts not in _VERSIONS[version]:
            return MalformedRequest("The request must be HTTP/1.1 and name one Host.")
        if any(name == b"transfer-encoding" and (version, value) != ("1.1", b"chunked") for name, value in bodies):
            return MalformedRequest("The body's Transfer-Encoding must be chunked and nothing more.")
        if self.parser.should_upgrade() and any(value != b"0" for _, value in bodies):
            # The parser would take the body for something else than HTTP.
            return MalformedRequest("A request with a body must not ask for an upgrade; send it as HTTP/1.1.")
        return None

    def _close_if_done(self) -> None:
        if self._closes and self._part == "idle" and self.cycle.response_complete and not self.pipeline:
            self._close()

    def _count_unfinished_head(self, received: int, was: str) -> None:
        if self._part != "head" or self._refused:
            return
        # A head that began behind another request in the same piece is counted from the next piece on.
        if was != "body" or not self._head_is_new:
            self._head_bytes += received
        if self._head_bytes > HEADER_BYTES:
            self._refuse(HeaderTooLarge())

    def _count_framing(self, received: int, was: str) -> None:
        """Refuse a body that is mostly sizes of chunks, their extensions or trailers: each costs us, and none ends.

        What comes in one piece with the head is not counted: a piece has 256 KiB at most.
        """
        if self._part != "body" or was != "body" or self._refused:
            return
        self._body_received += received
        if self._body_received - self._body_bytes > FRAMING_BYTES + self._body_bytes:
            self._refuse(MalformedRequest("The body's chunks are too small, or carry too much beside it."))

    def _arm_deadline(self) -> None:
        if self._deadline is not None or self._refused:
            return
        if self._part == "head":
            self._deadline = self.loop.call_later(HEADER_SECONDS, self._head_is_late)
        elif self._part == "body":
            self._deadline = self.loop.call_later(BODY_SECONDS, self._body_is_late)
        elif self._unanswered() is None and not self.transport.is_closing():
            # The rest of a body that nobody read, or an empty line: idle again.
            self._others.idle(self)
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _clear_stalled(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _head_is_late(self) -> None:
        self._deadline = None
        self._refuse(RequestTimeout())

    def _body_is_late(self) -> None:
        self._deadline = None
        left = self._body_seconds_left()
        if self.flow.read_paused:  # the application is behind, not the client
            left = max(left, 1.0)
        if left > 0:
            self._deadline = self.loop.call_later(left, self._body_is_late)
        else:
            self._refuse(RequestTimeout())

    def _body_seconds_left(self) -> float:
        return self._body_since + BODY_SECONDS + self._body_bytes / BODY_BYTES_PER_SECOND - self.loop.time()

    def _refuse(self, error: HoldshortError) -> None:
        """Answer in the application's place and end the connection, or end it behind the answer that is under way."""
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        self._others.busy(self)
        self._clear_deadline()
        self._unset_keepalive_if_required()
        cycle = self._unanswered()
        if cycle is not None and (self.pipeline or self._part != "body"):
            self._end_behind_what_is_whole()
            return
        if cycle is None or not cycle.response_started:
            self.transport.write(_answer(error))
        if cycle is not None:
            cycle.disconnected = True
            cycle.waiting_for_100_continue = False  # or it would be told to go on, behind the end
            cycle.message_event.set()
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._deadline = self.loop.call_later(DISCARD_SECONDS, self._close)

    def _end_behind_what_is_whole(self) -> None:
        """Let the earlier requests have their answers; one whose body broke off would be waited for without end."""
        if self._part == "body":
            self.pipeline.popleft()
        last = self.pipeline[0][0] if self.pipeline else self._answered
        if last is not None:
            last.keep_alive = False

    def _unanswered(self) -> RequestResponseCycle | None:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle if cycle is not None and not cycle.response_complete else None

    def _discard(self, received: int) -> None:
        """Throw away what nobody reads; past 64 MiB it is left unread until the deadline ends the connection."""
        self._discarded += received
        if self._discarded > MOST_DISCARDED:
            self.flow.pause_reading()

    def _discard_the_rest(self) -> None:
        """Let the rest of a body come whose answer is out: for a second, and 4 MiB of it for as long as a body has."""
        self._clear_deadline()
        if self.expect_100_continue and not self._body_bytes:
            self._close()  # it was never told to send the body, so nothing is on its way
        else:
            self._deadline = self.loop.call_later(DISCARD_SECONDS, self._discard_is_late)

    def _discard_is_late(self) -> None:
        self._deadline = None
        left = self._body_seconds_left()
        if self._discarded > DISCARD_BYTES or left <= 0:
            self._close()
        else:
            self._deadline = self.loop.call_later(min(left, DISCARD_SECONDS), self._discard_is_late)

    def _close(self) -> None:
        self._clear_deadline()
        self.transport.close()
        self._watch_what_is_left()

    def _watch_what_is_left(self) -> None:
        """Cut the connection once the client took nothing of what is left to send for 60 s."""
        if self._stalled is None:
            self._watch(self.transport.get_write_buffer_size())

    def _watch(self, left: int) -> None:
        if left:
            self._stalled = self.loop.call_later(STALLED_SECONDS, self._look_what_is_left, left)

    def _look_what_is_left(self, before: int) -> None:
        self._stalled = None
        left = self.transport.get_write_buffer_size()
        if left < before:
            self._watch(left)
        else:
            self.transport.abort()


def _answer(error: HoldshortError) -> bytes:
    status, headers, body = problem(error)
    more = b"".join(b"%s: %s\r\n" % (name.lower().encode(), value.encode()) for name, value in headers.items())
    return STATUS_LINE[status] + HEADERS % (MEDIA_TYPE.encode(), len(body)) + _SAFE + more + b"\r\n" + body
