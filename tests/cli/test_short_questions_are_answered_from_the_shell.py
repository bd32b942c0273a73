import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from subprocess import CompletedProcess
from typing import Any, NamedTuple

import httpx
import pytest

from tests.cli.processes import PATIENCE_SECONDS, run, running, wait_until
from tests.keys import Keys, make_keys, sent, serving
from tests.postgres import Server, clone

CODE = "493-201"


class Desk(NamedTuple):
    """A control plane, an agent that asks, and a person at a shell."""

    url: str
    keys: Keys
    calls: ThreadPoolExecutor

    def ask(self, unique_id: str, **more: Any) -> "Future[httpx.Response]":
        """Hold a question; returns once it waits."""
        body = {"unique_id": unique_id, "message_for_user": "The\u001b[31m code?", "wait": True, **more}
        url, headers = f"{self.url}/api/v1/human-feedback", sent(self.keys.agent)
        held = self.calls.submit(httpx.post, url, json=body, headers=headers, timeout=60)
        wait_until(lambda: unique_id in self.pending())
        return held

    def pending(self) -> str:
        """What waits, as the API says it."""
        return httpx.get(f"{self.url}/api/human-feedback/pending", headers=sent(self.keys.review)).text

    def holdshort(self, *arguments: str, given: str | None = None) -> "CompletedProcess[str]":
        """A command with the reviewer's key."""
        return run(*arguments, given=given, HOLDSHORT_URL=self.url, HOLDSHORT_API_KEY=self.keys.review)


@pytest.fixture(scope="module")
def desk(postgres_server: Server, template_database: str) -> Iterator[Desk]:
    with clone(postgres_server, template_database) as database, ThreadPoolExecutor() as calls:
        keys = make_keys(database)
        with running("serve", "--port", "0", **serving(database)) as server:
            yield Desk(server.wait_until_ready(), keys, calls)
            server.terminate()
            assert CODE not in "".join(server.printed())


def test_it_is_listed_and_answered_from_standard_input(desk: Desk):
    assert desk.holdshort("feedback", "list").stdout == "no questions wait\n"
    held = desk.ask("piped")
    (line,) = [line for line in desk.holdshort("feedback", "list").stdout.splitlines() if "piped" in line]
    assert "code?" in line
    assert "\u001b" not in line
    (listed,) = json.loads(desk.holdshort("feedback", "list", "--json").stdout)["requests"]
    assert (listed["unique_id"], listed["kind"]) == ("piped", "text")
    done = desk.holdshort("feedback", "answer", "piped", "--json", given=f"{CODE}\n")
    assert json.loads(done.stdout)["status"] == "success"
    assert CODE not in done.stdout + done.stderr
    assert held.result().json()["response"] == CODE


def test_an_answer_that_is_typed_is_not_shown(desk: Desk):
    held = desk.ask("typed", kind="secret")
    ours, theirs = pty.openpty()
    environ = {"PATH": os.environ["PATH"], "HOLDSHORT_URL": desk.url, "HOLDSHORT_API_KEY": desk.keys.review}
    command = [sys.executable, "-m", "controlplane.cli", "feedback", "answer", "typed"]
    process = subprocess.Popen(
        command,
        env=environ,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown = read_until(ours, b"Answer (it is not shown): ")
    os.write(ours, f"{CODE}\n".encode())
    shown += read_until(ours, b"Response submitted")
    assert process.wait(30) == 0
    os.close(ours)
    assert CODE.encode() not in shown
    assert held.result().json()["response"] == CODE


def read_until(terminal: int, wanted: bytes) -> bytes:
    read = b""
    while wanted not in read:
        ready, _, _ = select.select([terminal], [], [], PATIENCE_SECONDS)
        assert ready, read
        read += os.read(terminal, 4096)
    return read


@pytest.mark.parametrize(
    ("unique_id", "given", "said"),
    [
        ("unknown", CODE, "request_not_found (404)"),
        ("unknown", "x" * 20_000, "body_too_large (413)"),
        ("unknown", "x" * 70_000, "at most 65536 bytes"),
    ],
)
def test_what_cannot_be_answered_is_a_sentence(desk: Desk, unique_id: str, given: str, said: str):
    done = desk.holdshort("feedback", "answer", unique_id, given=given)
    assert done.returncode in {1, 2}
    assert said in done.stderr
    assert given not in done.stderr


def test_a_wrong_option_leaves_the_question_open(desk: Desk):
    held = desk.ask("where", options=["eu", "us"])
    done = desk.holdshort("feedback", "answer", "where", given="asia")
    assert "invalid_answer (422)" in done.stderr
    assert desk.holdshort("feedback", "answer", "where", given="US").returncode == 0
    assert held.result().json()["response"] == "us"


def test_an_agents_key_answers_nothing(desk: Desk):
    done = run("feedback", "answer", "any", given=CODE, HOLDSHORT_URL=desk.url, HOLDSHORT_API_KEY=desk.keys.agent)
    assert done.returncode == 1
    assert "not_allowed (403)" in done.stderr
