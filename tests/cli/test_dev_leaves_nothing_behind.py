import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.cli.processes import children_of, run, running, wait_until_gone

BODY = b'{"requestId": "r-1", "decision": "approved"}'


@pytest.fixture
def home() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="hs-dev-", dir="/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def ask(url: str, execution: str) -> httpx.Response:
    httpx.post(f"{url}/api/v1/executions", json={"node_id": "n", "execution_id": execution}).raise_for_status()
    return httpx.post(
        f"{url}/api/v1/executions/{execution}/request-approval", json={"approval_request_id": f"q-{execution}"}
    )


def test_sigterm_ends_all_within_ten_seconds_and_a_waiting_call_is_answered():
    with running("dev", "--ephemeral", "--port", "0", anew=True) as dev:
        url = dev.wait_until_ready()
        approval_id = ask(url, "run-1").json()["approval_id"]
        started = children_of(dev.process.pid)
        assert started
        with httpx.stream("GET", f"{url}/api/v1/events") as stream:
            assert stream.status_code == 200
            port = int(url.rpartition(":")[2])
            with socket.create_connection(("127.0.0.1", port)) as waiting:
                head = (
                    f"GET /api/v1/executions/run-1/approval-status?wait=60 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
                )
                waiting.sendall(head.encode())
                assert httpx.get(f"{url}/api/v1/approvals/{approval_id}").status_code == 200
                assert dev.terminate() < 10
                assert waiting.recv(65_536).startswith(b"HTTP/1.1 200")
        assert dev.process.returncode == 0
        wait_until_gone(*started)


def test_data_and_secret_are_kept_and_a_kill_is_survived(home: Path):
    for execution, end in (("run-1", signal.SIGKILL), ("run-2", signal.SIGTERM), ("run-3", signal.SIGTERM)):
        with running("dev", "--port", "0", anew=True, HOLDSHORT_HOME=str(home)) as dev:
            url = dev.wait_until_ready()
            assert ask(url, execution).status_code == 200
            listed = httpx.get(f"{url}/api/v1/approvals").json()["approvals"]
            assert sorted(each["execution_id"] for each in listed) == ["run-1", "run-2", "run-3"][: len(listed)]
            dev.process.send_signal(end)
            dev.process.wait()
    assert len(listed) == 3


def test_a_webhook_signed_by_the_sign_command_is_taken(home: Path, tmp_path: Path):
    body = tmp_path / "answer.json"
    body.write_bytes(BODY.replace(b"r-1", b"q-run-1"))
    with running("dev", "--port", "0", HOLDSHORT_HOME=str(home)) as dev:
        url = dev.wait_until_ready()
        ask(url, "run-1")
        header = run("sign", str(body), HOLDSHORT_HOME=str(home)).stdout.strip()
        name, _, value = header.partition(": ")
        reply = httpx.post(f"{url}/api/v1/webhooks/approval-response", content=body.read_bytes(), headers={name: value})
        assert (reply.status_code, reply.json()["status"]) == (200, "processed")
        assert dev.terminate() < 10


def test_a_taken_port_is_one_line_before_anything_was_started(home: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run("dev", "--port", str(taken.getsockname()[1]), HOLDSHORT_HOME=str(home / "new"))
    assert done.returncode == 1
    assert done.stderr.startswith("Error: cannot listen on 127.0.0.1 port ")
    assert len(done.stderr.splitlines()) == 1
    assert not (home / "new").exists()


@pytest.mark.proof
def test_a_second_dev_on_the_same_home_says_what_to_do(home: Path):
    with running("dev", "--port", "0", anew=True, HOLDSHORT_HOME=str(home)) as dev:
        dev.wait_until_ready()
        done = run("dev", "--port", "0", HOLDSHORT_HOME=str(home))
        assert done.returncode == 1
        assert "--ephemeral" in done.stderr
        dev.terminate()


@pytest.mark.proof
def test_a_closed_terminal_ends_it_as_sigterm_does():
    with running("dev", "--ephemeral", "--port", "0", anew=True) as dev:
        dev.wait_until_ready()
        started = children_of(dev.process.pid)
        dev.process.send_signal(signal.SIGHUP)
        assert dev.process.wait(10) == 0
        wait_until_gone(*started)


def test_a_signal_while_it_starts_stops_what_was_started(home: Path):
    with running("dev", "--port", "0", anew=True, HOLDSHORT_HOME=str(home)) as dev:
        deadline = time.monotonic() + 30
        file = home / "postgres" / "data" / "postmaster.pid"
        while not (file.exists() and file.read_text()):
            assert time.monotonic() < deadline
        server = int(file.read_text().split()[0])
        dev.terminate()
        wait_until_gone(server)
