import json
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import NamedTuple

import httpx
import pytest

from tests.cli.processes import LOOPBACK, run, running
from tests.keys import Keys, make_keys, sent, serving
from tests.postgres import Database, Server, clone

HOSTILE = "[bold]Pay\u001b[31m \u202e12 EUR[/bold]"


class Served(NamedTuple):
    url: str
    approval_id: str
    keys: Keys

    def run(self, *arguments: str) -> "CompletedProcess[str]":
        return run(*arguments, HOLDSHORT_URL=self.url, HOLDSHORT_API_KEY=self.keys.operator)

    def holdshort(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def database_of_this_file(postgres_server: Server, template_database: str) -> Iterator[Database]:
    with clone(postgres_server, template_database) as database:
        yield database


@pytest.fixture(scope="module")
def keys(database_of_this_file: Database) -> Keys:
    return make_keys(database_of_this_file)


@pytest.fixture(scope="module")
def url(database_of_this_file: Database, keys: Keys) -> Iterator[str]:
    with running("serve", "--port", "0", **serving(database_of_this_file), **LOOPBACK) as server:
        yield server.wait_until_ready()
        server.terminate()


@pytest.fixture
def served(url: str, keys: Keys, request: pytest.FixtureRequest) -> Served:
    run_id = request.node.name
    api, agent = f"{url}/api/v1", sent(keys.agent)
    started = {"node_id": "n", "execution_id": run_id}
    httpx.post(f"{api}/executions", json=started, headers=agent).raise_for_status()
    asked = {
        "approval_request_id": run_id,
        "title": HOSTILE,
        "callback_url": "http://127.0.0.1:9/nobody",
        "callback_secret": "sixteen-characters",
    }
    reply = httpx.post(f"{api}/executions/{run_id}/request-approval", json=asked, headers=agent).raise_for_status()
    return Served(url, reply.json()["approval_id"], keys)


def test_a_list_shows_each_approval_on_one_line_and_no_control_character(served: Served):
    (line,) = [line for line in served.holdshort("approvals", "list").splitlines() if served.approval_id in line]
    assert "pending" in line
    assert "[bold]Pay" in line
    assert "\u001b" not in line
    assert "\u202e" not in line


def test_json_is_the_documents_own(served: Served):
    listed = json.loads(served.holdshort("approvals", "list", "--json", "--status", "pending"))
    (ours,) = [each for each in listed["approvals"] if each["approval_id"] == served.approval_id]
    assert ours["title"] == HOSTILE


def test_a_decision_is_taken_once_and_shown_with_its_history(served: Served):
    said = served.holdshort(
        "approvals", "decide", served.approval_id, "approved", "--feedback", "Go.", "--response", "[1]"
    )
    assert "processed" in said
    shown = served.holdshort("approvals", "show", served.approval_id)
    assert "Go." in shown
    assert "approved" in shown
    detail = json.loads(served.holdshort("approvals", "show", served.approval_id, "--json"))
    assert detail["response"] == {"decision": "approved", "feedback": "Go.", "data": [1]}
    again = served.run("approvals", "decide", served.approval_id, "rejected")
    assert again.returncode == 1
    assert again.stderr.startswith("Error: already_decided (409): ")


def test_an_undelivered_callback_is_listed_and_sent_again(served: Served):
    served.holdshort("approvals", "decide", served.approval_id, "approved")
    page = json.loads(served.holdshort("deliveries", "list", "--json"))
    (ours,) = [each for each in page["deliveries"] if each["approval_id"] == served.approval_id]
    assert ours["delivery_id"] in served.holdshort("deliveries", "list")
    assert ours["delivery_id"] in served.holdshort("deliveries", "redrive", ours["delivery_id"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("approvals", "show", "apr_unknown"), "approval_not_found (404)"),
        (("approvals", "show", "../deliveries"), "an approval_id looks like"),
        (("approvals", "decide", "apr_unknown", "approved", "--response", "{"), "is not JSON"),
        (("deliveries", "redrive", "dlv_unknown"), "delivery_not_found (404)"),
        (("approvals", "list", "--status", "open"), "'open' is not one of"),
    ],
)
def test_what_cannot_be_done_is_a_sentence_and_an_exit_code(
    url: str, keys: Keys, arguments: tuple[str, ...], said: str
):
    done = run(*arguments, HOLDSHORT_URL=url, HOLDSHORT_API_KEY=keys.operator)
    assert done.returncode in {1, 2}
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "nonsense", "http://["])
def test_a_control_plane_that_is_not_there_is_a_sentence(address: str):
    done = run("approvals", "list", "--url", address)
    assert done.returncode == 1
    assert "cannot be reached" in done.stderr
    assert "Traceback" not in done.stderr


def test_sign_takes_the_newest_secret_and_signs_a_time_when_told(tmp_path: Path):
    body = tmp_path / "body"
    body.write_bytes(b"{}")
    secrets = {"HOLDSHORT_WEBHOOK_SECRETS": "crm:newest-secret-here,older-secret-here"}
    assert run("sign", str(body), **secrets).stdout.startswith("X-Webhook-Signature: ")
    assert "t=17," in run("sign", str(body), "--timestamp", "17", **secrets).stdout.replace(" ", "")
