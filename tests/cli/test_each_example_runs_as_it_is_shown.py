import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from controlplane.cli.demo.programs import Program, free_port, stop
from tests.cli.processes import run, running, wait_until
from tests.postgres import Server, clone

EXAMPLES = Path(__file__).parents[2] / "examples"
CODE = "493201"


@pytest.fixture(scope="module")
def url(postgres_server: Server, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with clone(postgres_server, template_database) as database:
        environ = {"HOLDSHORT_DATABASE_URL": database.url, "HOLDSHORT_HOME": str(tmp_path_factory.mktemp("home"))}
        with running("dev", "--port", "0", **environ) as server:
            yield server.wait_until_ready()


@contextmanager
def agent_of(example: str, node_id: str, url: str) -> Iterator[Program]:
    """The agent of an example, registered."""
    port = free_port()
    environ = {"HOLDSHORT_URL": url, "PORT": str(port)}
    agent = Program(example, [str(EXAMPLES / example / "agent.py")], environ, health=f"http://127.0.0.1:{port}/health")
    try:
        agent.start()
        wait_until(lambda: httpx.get(f"{url}/api/v1/nodes/{node_id}").status_code == 200)
        yield agent
    finally:
        stop([agent])


def started(url: str, target: str, **given: Any) -> str:
    """A run that an example's README starts."""
    done = run("execute", target, "--input", json.dumps(given), "--async", HOLDSHORT_URL=url)
    return done.stdout.strip()


def ended(url: str, execution_id: str) -> dict[str, Any]:
    """A run, once it has ended."""
    run_url = f"{url}/api/v1/executions/{execution_id}"
    wait_until(lambda: httpx.get(run_url).json()["ended_at"])
    found: dict[str, Any] = httpx.get(run_url).json()
    return found


def test_a_one_time_code_is_typed_and_kept_nowhere(url: str):
    with agent_of("one_time_code", "bank-clerk", url) as agent:
        execution_id = started(url, "bank-clerk.fetch_statement", account="DE02")
        wait_until(lambda: httpx.get(f"{url}/api/human-feedback/pending").json()["requests"])
        (question,) = json.loads(run("feedback", "list", "--json", HOLDSHORT_URL=url).stdout)["requests"]
        assert question["kind"] == "secret"
        run("feedback", "answer", question["unique_id"], given=CODE, HOLDSHORT_URL=url).check_returncode()
        found = ended(url, execution_id)
    assert found["result"] == {"status": "signed_in", "account": "DE02"}
    assert CODE not in json.dumps(found)
    assert not agent.written(CODE, 0)


def test_questions_that_keep_are_answered_one_after_the_other(url: str):
    with agent_of("questions", "planner", url):
        execution_id = started(url, "planner.plan_trip", city="Lisbon")
        for values in ("by train", {"nights": 3, "hotel": "Tejo"}):
            run(
                "approvals", "decide", pending(url), "approved", "--values", json.dumps(values), HOLDSHORT_URL=url
            ).check_returncode()
        found = ended(url, execution_id)
    assert found["result"] == {"status": "planned", "means": "by train", "nights": 3, "hotel": "Tejo"}


def pending(url: str) -> str:
    """The approval that waits, once there is one."""
    found: list[dict[str, Any]] = []

    def look() -> bool:
        found[:] = httpx.get(f"{url}/api/v1/approvals?status=pending").json()["approvals"]
        return bool(found)

    wait_until(look)
    return str(found[0]["approval_id"])
