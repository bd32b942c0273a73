"""Whatever is logged, by whom and nested in what: a secret that can be known by its look or its name is masked."""

import asyncio
import json
import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest
import sqlalchemy as sa
import structlog
from sqlalchemy.exc import DBAPIError

from controlplane import telemetry
from controlplane.domain import redaction
from controlplane.domain.errors import DatabaseUnavailable
from controlplane.storage.engine import make_engine, transaction
from tests.postgres import Database

HEX = "0badc0ffee" * 6 + "abcd"
SECRETS = {
    "key": "hs_0123456789ab_abcdefghjkmnpqrstvwxyzabcdef012345",
    "webhook_secret": "whsec_Y2FuYXJ5LWluLXRoZS1taW5l",
    "bearer": "Bearer canary-in-the-mine",
    "basic": "Authorization: Basic Y2FuYXJ5LWluLXRoZS1taW5l",
    "cookie": "Cookie: __Host-holdshort=canary-in-the-mine; a=b",
    "set_cookie": "__Host-holdshort=canary-in-the-mine",
    "body_signature": f"sha256={HEX}",
    "timed_signature": f"t=1700000000,v1={HEX}",
    "bare_signature": HEX,
    "standard_signature": "v1,Y2FuYXJ5LWluLXRoZS1taW5lLWluLXRoZS1taW5lAA=",
    "master_key": "Y2FuYXJ5LWluLXRoZS1taW5lLWluLXRoZS1taW5lAAA=",
    "sealed": "hsv1.0123abcd.Y2FuYXJ5LWluLXRoZS1taW5l",
    "database": "postgresql://u:canary-in-the-mine@h/d",
    "odd_password": "postgresql://u:canary/in@the?mine@h/d",
    "password_in_query": "postgresql://h/d?user=u&password=canary-in-the-mine",
    "assigned": "HOLDSHORT_WEBHOOK_SECRETS=desk:canary-in-the-mine",
}
VALUE = "canary-in-the-mine"
# What of each must not be seen.
HIDDEN = ("canary", "Y2FuYXJ5", HEX, "abcdefghjkmnpqrst", "mine")
Log = Callable[[str], object]


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    hooks = sys.excepthook, threading.excepthook, sys.unraisablehook
    yield
    logging.captureWarnings(False)
    sys.excepthook, threading.excepthook, sys.unraisablehook = hooks
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()
    logging.getLogger("uvicorn.access").disabled = False


class Written:
    """Sets logging up in each format, and reads what was written; in the test itself, as its streams are others'."""

    def __init__(self, log_format: Literal["console", "json"], capsys: pytest.CaptureFixture[str]) -> None:
        self._format = log_format
        self._capsys = capsys

    def __enter__(self) -> "Written":
        telemetry.configure(self._format, "debug")
        return self

    def __exit__(self, *_: object) -> None:
        self.text = self._capsys.readouterr().err


@pytest.fixture(params=["json", "console"])
def written(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Written:
    return Written(request.param, capsys)


def raise_one(text: str) -> None:
    raise OSError(text)


def raise_two(text: str) -> None:
    try:
        raise_one(text)
    except OSError as first:
        raise RuntimeError(f"while {text}") from first


def raise_nested(text: str) -> None:
    try:
        raise_two(text)
    except RuntimeError:
        raise TypeError(text)  # noqa: B904 - the context alone has to be looked at too


def log_exception(text: str) -> None:
    try:
        raise_nested(text)
    except TypeError:
        telemetry.logger("x").exception("failed")


def log_group(text: str) -> None:
    group = ExceptionGroup(text, [OSError(text), ExceptionGroup("inner", [RuntimeError(text)])])
    telemetry.logger("x").error("failed", exc_info=group)


def log_noted(text: str) -> None:
    fault = RuntimeError("failed")
    fault.add_note(text)
    logging.getLogger("uvicorn.error").error("failed", exc_info=fault)


def warn(text: str) -> None:
    telemetry.guard_process()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn(text, UserWarning, stacklevel=1)


def unhandled(text: str) -> None:
    telemetry.guard_process()
    sys.excepthook(RuntimeError, RuntimeError(text), None)
    thread = threading.Thread(target=raise_nested, args=(text,))
    thread.start()
    thread.join()


ROADS: dict[str, Log] = {
    "event": lambda text: telemetry.logger("x").info(text),
    "field": lambda text: telemetry.logger("x").info("e", field=f"it is {text} here"),
    "list": lambda text: telemetry.logger("x").info("e", field=[1, [text], (text,), {text}]),
    "dict": lambda text: telemetry.logger("x").info("e", field={"a": {"b": {text: text}}}),
    "bytes": lambda text: telemetry.logger("x").info("e", field=[text.encode(), bytearray(text.encode())]),
    "object": lambda text: telemetry.logger("x").info("e", field=type("Thing", (), {"__repr__": lambda _: text})()),
    "deep": lambda text: telemetry.logger("x").info("e", field=json.loads("[" * 50 + json.dumps(text) + "]" * 50)),
    "repr": lambda text: telemetry.logger("x").info("e", field=repr({"header": [text.encode()]})),
    "json": lambda text: telemetry.logger("x").info("e", field=json.dumps({"header": [f"\n{text}"]})),
    "exception": log_exception,
    "group": log_group,
    "note": log_noted,
    "stdlib": lambda text: logging.getLogger("asyncpg").warning("is %s", text),
    "stdlib_args": lambda text: logging.getLogger("alembic").warning("%(a)s", {"a": [text]}),
    "sqlalchemy": lambda text: logging.getLogger("sqlalchemy.engine").error("%r", {"x": (text,)}),
    "uvicorn": lambda text: logging.getLogger("uvicorn.error").error("%s", text, exc_info=OSError(text)),
    "access": lambda text: logging.getLogger("uvicorn.access").info("GET /?%s", text),
    "warning": warn,
    "unhandled": unhandled,
}


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("secret", SECRETS)
def test_what_looks_like_a_secret_is_masked(written: Written, road: str, secret: str):
    with written:
        ROADS[road](SECRETS[secret])
    assert written.text or road == "access"
    assert not [hidden for hidden in HIDDEN if hidden in written.text]


@pytest.mark.parametrize(
    "name",
    [
        "secret",
        "callback_secret",
        "Authorization",
        "X-API-Key",
        "api_key",
        "cookie",
        "Set-Cookie",
        "webhook-signature",
        "X-Hub-Signature-256",
        "password",
        "master_keys",
        "HOLDSHORT_DATABASE_URL",
        "token",
        "credentials",
    ],
)
@pytest.mark.parametrize("shape", ["field", "dict", "bytes", "pair", "pairs"])
def test_what_is_secret_by_its_name_is_masked(written: Written, name: str, shape: str):
    shapes: dict[str, Any] = {
        "dict": {name: "canary"},
        "bytes": {name.encode(): 7357_0001},
        "pair": (name, "canary"),
        "pairs": [(name.lower().encode(), "canary"), ("accept", "all")],
    }
    field = {name: "canary"} if shape == "field" else {"given": shapes[shape]}
    with written:
        telemetry.logger("x").info("e", **field)
    assert "canary" not in written.text
    assert "73570001" not in written.text
    assert redaction.MASK in written.text


@pytest.mark.parametrize(
    "text",
    [
        "months_of_waiting_and_more",
        "the listener was lost: [Errno 111] Connect call failed ('127.0.0.1', 5432)",
        "approval apr_01m8q88204j2hafwx8akemcm97 of exe_01m8q88204j2hafwx8akemcm97",
        "http://127.0.0.1:8080/health/ready",
        "status 422: invalid reply, 2,113 bytes",
    ],
)
def test_what_is_no_secret_is_left(written: Written, text: str):
    with written:
        telemetry.logger("x").info("e", field=text)
    assert text in written.text


@pytest.mark.parametrize(
    "fault",
    [
        KeyError("canary"),
        ValueError("invalid literal: 'canary'"),
        UnicodeDecodeError("utf-8", b"canary", 0, 1, "canary"),
    ],
)
def test_a_fault_that_may_quote_values_is_named_only(written: Written, fault: Exception):
    with written:
        telemetry.logger("x").error("failed", exc_info=fault)
    assert type(fault).__name__ in written.text
    assert "canary" not in written.text


def test_a_fault_of_ours_is_told_with_what_caused_it(written: Written):
    with written:
        log_exception("the reason")
    for each in (
        "OSError: the reason",
        "direct cause",
        "RuntimeError: while the reason",
        "During handling",
        "TypeError",
    ):
        assert each in written.text
    assert "raise_nested" in written.text
    assert DatabaseUnavailable().message in telemetry.said(DatabaseUnavailable())


@pytest.mark.parametrize(
    ("statement", "seen"),
    [
        ("SELECT CAST(:value AS integer)", "DataError"),
        ("SELECT CAST(CAST(:value AS text) AS integer)", "22P02"),
        ("SELECT CAST(CAST(:value AS text) AS json)", "22P02"),
        ("INSERT INTO executions (execution_id, node_id, status) VALUES (:value, 'n', 'odd')", "executions_status"),
        ("SELECT canary_column, CAST(:value AS text) FROM executions", "UndefinedColumn"),
    ],
)
async def test_a_fault_of_the_database_quotes_no_value(written: Written, database: Database, statement: str, seen: str):
    engine = make_engine(database.url, 1)
    with written:
        try:
            async with transaction(engine) as conn:
                await conn.run(sa.text(statement), {"value": VALUE})
        except DBAPIError as fault:
            telemetry.logger("x").exception("failed", cause=telemetry.said(fault))
    await engine.dispose()
    assert seen in written.text
    assert VALUE not in written.text


async def test_a_task_that_nobody_awaits_is_told_without_its_arguments(written: Written):
    telemetry.guard_loop()
    loop = asyncio.get_running_loop()

    async def fail(text: str) -> None:
        raise ValueError(text)

    def call(text: str) -> None:
        raise KeyError(text)

    with written:
        loop.call_soon(call, "canary")
        task = loop.create_task(fail("canary"), name="canary")
        await asyncio.wait([task])
        del task
    text = written.text
    assert text.count("unawaited") == 2
    assert "KeyError" in text
    assert "ValueError" in text
    assert "never retrieved" in text
    assert "canary" not in text
