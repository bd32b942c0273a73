"""Logs: an event name and fields, never a body or a secret; the request's id is on every line that it causes."""

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Literal

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

from controlplane.domain import redaction
from controlplane.domain.errors import HoldshortError

# Whose texts are ours, the interpreter's or the system's; of other faults only the kind is told, as their texts may
# quote what they choked on.
_PLAIN = (RuntimeError, AttributeError, NameError, UnboundLocalError, TypeError, ImportError, ModuleNotFoundError)
_DATA_EXCEPTION = "22"  # the class of SQLSTATE whose messages quote values


def configure(log_format: Literal["console", "json"], log_level: str) -> None:
    """Set up logging for the whole process; the standard library's loggers (uvicorn, asyncpg) take the same road.

    Args:
        log_format: `console` for people, `json` for one JSON object a line.
        log_level: the least level that is written: debug, info, warning or error.
    """
    level = logging.getLevelNamesMapping()[log_level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        redact,
    ]
    console = structlog.dev.ConsoleRenderer(colors=_tty(), exception_formatter=structlog.dev.plain_traceback)
    last = structlog.processors.JSONRenderer() if log_format == "json" else console
    structlog.configure(
        processors=[*shared, last],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processor=last, foreign_pre_chain=shared))
    # A library's debug lines hold whatever it works on, so they are never written.
    logging.basicConfig(handlers=[handler], level=max(level, logging.INFO), force=True)
    # A server that was set up with uvicorn's own logging must not keep its lines or a level to itself.
    for name in ("uvicorn", "uvicorn.error"):
        theirs = logging.getLogger(name)
        theirs.handlers.clear()
        theirs.propagate = True
        theirs.setLevel(logging.NOTSET)
    # One line a request would drown the events, and its paths may hold ids of others' runs.
    logging.getLogger("uvicorn.access").disabled = True
    for chatty in ("httpx", "alembic"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def guard_process() -> None:
    """Have everything that Python itself prints of a fault or a warning take the same road, for good.

    For processes of our own; `configure` alone leaves those hooks to whoever has them.
    """
    logging.captureWarnings(True)
    sys.excepthook = _unhandled
    threading.excepthook = lambda given: _log_unhandled(given.exc_value)
    sys.unraisablehook = lambda given: _log_unhandled(given.exc_value)


def guard_loop() -> None:
    """Have faults that nobody awaits logged by their kind: asyncio's own line shows a task with its arguments."""
    asyncio.get_running_loop().set_exception_handler(_unawaited)


def logger(room: str) -> FilteringBoundLogger:
    """A logger whose lines say which room they come from; call it as `log.info("event_name", field=value)`."""
    bound: FilteringBoundLogger = structlog.get_logger(room=room)
    return bound


@contextmanager
def context(**fields: str) -> Iterator[None]:
    """Put fields (request_id, approval_id, execution_id) on every line written inside the block and its tasks."""
    with structlog.contextvars.bound_contextvars(**fields):
        yield


def request_id() -> str | None:
    """The id of the request that is being served here, if any."""
    found = structlog.contextvars.get_contextvars().get("request_id")
    return found if isinstance(found, str) else None


def redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Mask fields that are secrets by name, and in all others what is one by its look; tell a fault as `told` does."""
    given = event.pop("exc_info", None)
    if given is True:
        given = sys.exc_info()
    fault = given[1] if isinstance(given, tuple) else given
    kept: EventDict = {name: redaction.member(name, value) for name, value in event.items()}
    if isinstance(fault, BaseException):
        kept["exception"] = told(fault)
    return kept


def told(fault: BaseException) -> str:
    """A traceback as Python prints it, with what caused the fault, and `said` for the text of each exception."""
    return "".join(_told(fault, set())).rstrip("\n")


def said(fault: BaseException | None) -> str:
    """What may be logged of an exception's text: never the values that a database or a parser quotes in it."""
    if fault is None:
        return "unknown"
    state = getattr(getattr(fault, "orig", fault), "sqlstate", None)
    if isinstance(state, str):
        # Behind the first line PostgreSQL adds the row that it refused.
        text = state if state.startswith(_DATA_EXCEPTION) else str(fault).partition("\n")[0]
    elif isinstance(fault, HoldshortError | OSError) or type(fault) in _PLAIN:
        text = str(fault)
    else:
        text = ""
    named = f"{type(fault).__module__}.{type(fault).__qualname__}".removeprefix("builtins.")
    return redaction.masked(f"{named}: {text}" if text else named)


def _told(fault: BaseException, seen: set[int]) -> Iterator[str]:
    seen.add(id(fault))
    before, how = fault.__cause__, "The above exception was the direct cause of the following exception:"
    if before is None and not fault.__suppress_context__:
        before, how = fault.__context__, "During handling of the above exception, another exception occurred:"
    if before is not None and id(before) not in seen:
        yield from _told(before, seen)
        yield f"\n{how}\n\n"
    if fault.__traceback__ is not None:
        yield "Traceback (most recent call last):\n"
        yield from traceback.format_tb(fault.__traceback__)
    yield f"{said(fault)}\n"
    if isinstance(fault, BaseExceptionGroup):
        for each in fault.exceptions:
            yield "\nOne of these exceptions:\n\n"
            yield from _told(each, seen)


def _unhandled(_kind: type[BaseException], fault: BaseException, _trace: TracebackType | None) -> None:
    if not isinstance(fault, KeyboardInterrupt):
        _log_unhandled(fault)


def _log_unhandled(fault: BaseException | None) -> None:
    structlog.get_logger().error("unhandled", exc_info=fault)


def _unawaited(_loop: asyncio.AbstractEventLoop, found: dict[str, Any]) -> None:
    what = str(found.get("message", "")).partition(" in callback")[0]  # behind it stand the callback's arguments
    structlog.get_logger().error("unawaited", what=what, exc_info=found.get("exception"))


def _tty() -> bool:
    return sys.stderr.isatty()
