import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Literal

import pytest
import sqlalchemy as sa
import structlog
import uvicorn
from sqlalchemy.exc import IntegrityError

from controlplane import telemetry
from controlplane.storage.engine import make_engine, transaction
from tests.postgres import Database

CANARY = "whsec_Y2FuYXJ5LWluLXRoZS1taW5l"


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()
    logging.getLogger("uvicorn.access").disabled = False


def written(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_line_is_an_event_with_fields_and_the_request_it_belongs_to(capsys: pytest.CaptureFixture[str]):
    telemetry.configure("json", "info")
    with telemetry.context(request_id="req_1"):
        assert telemetry.request_id() == "req_1"
        telemetry.logger("http").info("decided", approval_id="apr_1")
    assert telemetry.request_id() is None
    (line,) = written(capsys)
    assert {"event": "decided", "approval_id": "apr_1", "request_id": "req_1", "room": "http"}.items() <= line.items()


async def test_tasks_started_in_a_request_carry_its_id(capsys: pytest.CaptureFixture[str]):
    telemetry.configure("json", "info")

    async def work() -> None:
        telemetry.logger("workers").info("worked")

    with telemetry.context(request_id="req_2"):
        task = asyncio.create_task(work())
    await task
    assert written(capsys)[0]["request_id"] == "req_2"


@pytest.mark.parametrize(
    "fields",
    [
        {"callback_secret": CANARY},
        {"Authorization": CANARY},
        {"webhook_signature": CANARY},
        {"note": f"signed with {CANARY}"},
        {"database": f"postgresql://u:{CANARY}@h/d"},
        {"header": f"Bearer {CANARY}"},
    ],
)
def test_what_is_secret_by_name_or_by_look_is_masked(capsys: pytest.CaptureFixture[str], fields: dict[str, str]):
    for form in ("json", "console"):
        telemetry.configure(form, "debug")
        telemetry.logger("http").info("canary", **fields)
    text = capsys.readouterr().err
    assert text.count("canary") == 2
    assert CANARY not in text


def test_the_standard_library_takes_the_same_road(capsys: pytest.CaptureFixture[str]):
    telemetry.configure("json", "info")
    logging.getLogger("uvicorn.error").info("Started")
    logging.getLogger("uvicorn.access").info("GET /?key=%s", CANARY)
    (line,) = written(capsys)
    assert line["event"] == "Started"


def test_a_logger_that_was_set_up_before_takes_the_same_road(capsys: pytest.CaptureFixture[str]):
    uvicorn.Config(app="none:none").configure_logging()
    assert not logging.getLogger("uvicorn").propagate
    telemetry.configure("json", "error")
    logging.getLogger("uvicorn.error").warning("quiet")
    logging.getLogger("uvicorn.error").error("loud")
    assert [line["event"] for line in written(capsys)] == ["loud"]


def test_the_level_is_obeyed(capsys: pytest.CaptureFixture[str]):
    telemetry.configure("json", "error")
    telemetry.logger("http").warning("quiet")
    logging.getLogger("uvicorn.error").warning("quiet")
    telemetry.logger("http").error("loud")
    assert [line["event"] for line in written(capsys)] == ["loud"]


@pytest.mark.parametrize("form", ["json", "console"])
async def test_a_logged_fault_holds_no_values(
    capsys: pytest.CaptureFixture[str], database: Database, form: Literal["json", "console"]
):
    telemetry.configure(form, "info")
    engine = make_engine(database.url, 1)
    insert = sa.text("INSERT INTO executions (execution_id, node_id, status, error) VALUES ('r', 'n', :status, :error)")
    secret = f"a body\nwith {CANARY}"
    try:
        async with transaction(engine) as conn:
            await conn.run(insert, {"status": "nonsense", "error": secret})
    except IntegrityError:
        telemetry.logger("http").exception("request_failed")
    await engine.dispose()
    text = capsys.readouterr().err
    assert "executions_status" in text
    assert "IntegrityError" in text
    assert CANARY not in text
