"""uvicorn's HTTP protocol with what it leaves open: a cap on the header block, deadlines on a request's arrival.

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

from controlplane.domain.errors import HeaderTooLarge, HoldshortError, MalformedRequest, RequestTimeout
from controlplane.http.errors import MEDIA_TYPE, problem

HEADER_BYTES = 32 * 1024
HEADER_SECONDS = 10.0
BODY_SECONDS = 10.0
BODY_BYTES_PER_SECOND = 64 * 1024
DISCARD_BYTES = 4 * 1024 * 1024
DISCARD_SECONDS = 1.0

HEADERS = b"content-type: %s\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"


class BoundedProtocol(HttpToolsProtocol):
    """One connection whose requests arrive whole, in time and with a header block of 32 KiB at most.

    The first byte and the headers have 10 s, the body 10 s and one more for each 64 KiB that came. Timers are only set
    for what did not arrive in one piece, so an ordinary request pays nothing.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._part: Literal["idle", "head", "body"] = "idle"
        self._head_bytes = 0
        self._head_is_new = False
        self._body_bytes = 0
        self._body_since = 0.0
        self._discarded = 0
        self._refused = False
        self._closes = False
        self._deadline: TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there: its first request has 10 s to begin and to bring its headers."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(HEADER_SECONDS, self._head_is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone, and so is every deadline."""
        self._clear_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came, counting it; arm a deadline for what is still missing."""
        if self._refused:
            self._discard(len(data))
            return
        self._unset_keepalive_if_required()
        was, self._head_is_new = self._part, False
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._unsupported_upgrade_warning()
        except httptools.HttpParserError:
            self._refuse(MalformedRequest())
            return
        self._count_unfinished_head(len(data), was)
        self._arm_deadline()

    def on_message_begin(self) -> None:
        """A request begins."""
        self._part, self._head_bytes, self._head_is_new = "head", 0, True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The header block is whole: count it exactly, then let the application start, unless it is too large."""
        self._clear_deadline()
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > HEADER_BYTES:
            self._refuse(HeaderTooLarge())
        if not self._refused:
            self._part, self._body_bytes, self._body_since, self._discarded = "body", 0, self.loop.time(), 0
            super().on_headers_complete()
            # uvicorn would close with the answer; the rest of a body that nobody reads is to be thrown away first.
            self._closes, self.cycle.keep_alive = not self.cycle.keep_alive, True

    def on_body(self, body: bytes) -> None:
        """A piece of the body; after the answer it is thrown away, up to 4 MiB."""
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
        """The answer is out; if the body is still coming (it was refused), the rest has a second."""
        super().on_response_complete()
        if self._part == "body" and not self.pipeline:
            self._clear_deadline()
            self._deadline = self.loop.call_later(DISCARD_SECONDS, self.transport.close)
        self._close_if_done()

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are no HTTP with a problem document."""
        self._refuse(MalformedRequest(msg))

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: older agents ask for a WebSocket at every start, and the ordinary answer tells them."""

    def _close_if_done(self) -> None:
        if self._closes and self._part == "idle" and self.cycle.response_complete and not self.pipeline:
            self.transport.close()

    def _count_unfinished_head(self, received: int, was: str) -> None:
        if self._part != "head" or self._refused:
            return
        # A head that began behind another request in the same piece is counted from the next piece on.
        if was != "body" or not self._head_is_new:
            self._head_bytes += received
        if self._head_bytes > HEADER_BYTES:
            self._refuse(HeaderTooLarge())

    def _arm_deadline(self) -> None:
        if self._deadline is not None or self._refused or self._part == "idle":
            return
        if self._part == "head":
            self._deadline = self.loop.call_later(HEADER_SECONDS, self._head_is_late)
        else:
            self._deadline = self.loop.call_later(BODY_SECONDS, self._body_is_late)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _head_is_late(self) -> None:
        self._deadline = None
        self._refuse(RequestTimeout())

    def _body_is_late(self) -> None:
        self._deadline = None
        allowed = BODY_SECONDS + self._body_bytes / BODY_BYTES_PER_SECOND
        left = self._body_since + allowed - self.loop.time()
        if self.flow.read_paused:  # the application is behind, not the client
            left = max(left, 1.0)
        if left > 0:
            self._deadline = self.loop.call_later(left, self._body_is_late)
        else:
            self._refuse(RequestTimeout())

    def _refuse(self, error: HoldshortError) -> None:
        """Answer in the application's place and end the connection, or end it behind the answer that is under way."""
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        self._clear_deadline()
        self._unset_keepalive_if_required()
        cycle = self._unanswered()
        if cycle is not None and (self.pipeline or self._part != "body"):
            cycle.keep_alive = False  # an earlier request is being answered: this connection ends behind that answer
            return
        if cycle is None or not cycle.response_started:
            self.transport.write(_answer(error))
        if cycle is not None:
            cycle.disconnected = True
            cycle.message_event.set()
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._deadline = self.loop.call_later(DISCARD_SECONDS, self.transport.close)

    def _unanswered(self) -> RequestResponseCycle | None:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle if cycle is not None and not cycle.response_complete else None

    def _discard(self, received: int) -> None:
        self._discarded += received
        if self._discarded > DISCARD_BYTES:
            self.transport.close()


def _answer(error: HoldshortError) -> bytes:
    status, _, body = problem(error)
    return STATUS_LINE[status] + HEADERS % (MEDIA_TYPE.encode(), len(body)) + body
