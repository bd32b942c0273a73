import os
import signal
import socket
from contextlib import ExitStack

import httpx
import pytest

from controlplane.cli.serving import FailedToStart, listen, supervisor
from tests.cli.processes import children_of, ready, run, running, wait_until_gone
from tests.keys import SECRETS, Keys, make_keys, sent, serving
from tests.postgres import Database, Server
from tests.postgres import run as run_async


@pytest.fixture
def keys(database: Database) -> Keys:
    return make_keys(database)


def test_wrong_settings_are_all_named():
    done = run("serve", HOLDSHORT_POOL_SIZE="x", HOLDSHORT_LISTEN="x", HOLDSHORT_HOME="x")
    assert done.returncode == 2
    for name in ("HOLDSHORT_POOL_SIZE", "HOLDSHORT_LISTEN", "HOLDSHORT_HOME"):
        assert name in done.stderr


def test_an_unreachable_database_is_one_line():
    done = run("serve", "--port", "0", HOLDSHORT_DATABASE_URL="postgresql://nobody@127.0.0.1:1/x", **SECRETS)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "database cannot be reached" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_schema_is_refused_and_migrate_brings_it(postgres_server: Server, database: Database):
    async def drop() -> None:
        connection = await database.connect()
        await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        await connection.close()

    run_async(drop())
    refused = run("serve", "--port", "0", **serving(database))
    assert refused.returncode == 1
    assert "holdshort migrate" in refused.stderr
    first, second = (run("migrate", **serving(database)) for _ in range(2))
    assert (first.returncode, second.returncode) == (0, 0)
    assert first.stdout.startswith("empty -> ")
    assert second.stdout.startswith("already at ")


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.usefixtures("keys")
def test_it_serves_until_sigterm(database: Database, workers: int):
    with running("serve", "--port", "0", "--workers", str(workers), **serving(database)) as server:
        url = server.wait_until_ready()
        children = children_of(server.process.pid) if workers > 1 else []
        assert len(children) == (workers if workers > 1 else 0)
        assert httpx.get(f"{url}/health/live").status_code == 200
        assert server.terminate() < 10
        assert server.process.returncode == 0
        wait_until_gone(*children)
        assert not ready(url)


@pytest.mark.usefixtures("keys")
def test_a_killed_worker_is_replaced_while_the_other_serves(database: Database):
    with running("serve", "--port", "0", "--workers", "2", **serving(database)) as server:
        url = server.wait_until_ready()
        victim = children_of(server.process.pid)[0]
        os.kill(victim, signal.SIGKILL)
        server.wait_for("worker_died")
        assert httpx.get(f"{url}/health/ready", timeout=20).status_code == 200
        children = children_of(server.process.pid)
        assert len(children) == 2
        assert victim not in children
        server.terminate()
        wait_until_gone(*children)


@pytest.mark.usefixtures("keys")
def test_workers_end_when_their_parent_is_killed(database: Database):
    with running("serve", "--port", "0", "--workers", "2", **serving(database)) as server:
        server.wait_until_ready()
        children = children_of(server.process.pid)
        server.kill()
        wait_until_gone(*children)


def test_workers_that_cannot_start_end_the_command(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(supervisor, "WORKER", "tests.cli.worker_that_cannot_start")
    with pytest.raises(FailedToStart):
        supervisor.supervise(listen("127.0.0.1", 0), 2)


def test_many_calls_in_flight_at_sigterm_are_all_answered(database: Database, keys: Keys):
    with running("serve", "--port", "0", **serving(database)) as server, ExitStack() as stack:
        url = server.wait_until_ready()
        with httpx.Client(base_url=f"{url}/api/v1", headers=sent(keys.agent), trust_env=False) as agent:
            agent.post("/executions", json={"node_id": "n", "execution_id": "run"}).raise_for_status()
            asked = agent.post("/executions/run/request-approval", json={"approval_request_id": "q"})
            asked.raise_for_status()
        head = (
            f"GET /api/v1/executions/run/approval-status?wait=60 HTTP/1.1\r\nHost: a\r\nX-API-Key: {keys.agent}\r\n\r\n"
        )
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        waiting = [stack.enter_context(socket.create_connection(address)) for _ in range(50)]
        for each in waiting:
            each.sendall(head.encode())
        # Connections are accepted in order: once this later one is answered, the server has the fifty.
        assert ready(url)
        assert server.terminate() < 10
        assert {each.recv(15) for each in waiting} == {b"HTTP/1.1 200 OK"}
