"""Logs: an event name and fields, never a body or a secret; the request's id is on every line that it causes."""

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

MASK = "***"
SECRET_PARTS = ("secret", "password", "token", "authorization", "cookie", "signature", "api_key", "database_url")
SECRET_MARKS = ("whsec_", "Bearer ")
_ROW = re.compile(r"^DETAIL: .*?(?=\n\[SQL: |\n\nThe above exception|\n\nDuring handling|\Z)", re.MULTILINE | re.DOTALL)


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
        structlog.processors.format_exc_info,
        without_rows,
    ]
    # Not rich's tracebacks, which are the default: they print local variables, bodies and secrets among them.
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
    """Mask fields that are secrets by name, and values that hold one by their look."""
    for name, value in event.items():
        if any(part in name.lower() for part in SECRET_PARTS) or _holds_secret(value):
            event[name] = MASK
    return event


def without_rows(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Cut out of a traceback what PostgreSQL adds to a refused row: the row itself, secrets among its values."""
    text = event.get("exception")
    if isinstance(text, str):
        event["exception"] = _ROW.sub(f"DETAIL:  {MASK}", text)
    return event


def _holds_secret(value: object) -> bool:
    if not isinstance(value, str):
        return False
    user_and_password = "://" in value and "@" in value
    return user_and_password or any(mark in value for mark in SECRET_MARKS)


def _tty() -> bool:
    return sys.stderr.isatty()
