import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from controlplane.cli.demo.programs import Program, free_port, stop
from tests.cli.processes import Running, run, running, wait_until
from tests.keys import serving
from tests.postgres import Database, Server, clone

AGENT = Path(__file__).with_name("agent_of_the_shell.py")
HOSTILE = "[bold]Pay\u001b[31m \u202e12 EUR[/bold]"


class Served(NamedTuple):
    url: str
    agent_url: str

    def holdshort(self, *arguments: str, code: int = 0) -> str:
        done = run(*arguments, HOLDSHORT_URL=self.url)
        assert done.returncode == code, done.stderr
        return done.stdout

    def asking(self, title: str = "Sign?") -> str:
        """The id of a run that waits for an answer."""
        given = json.dumps({"title": title})
        run_id = self.holdshort("execute", "shell.ask", "--async", "--input", given).strip()
        wait_until(lambda: self.get(f"/executions/{run_id}")["status"] == "waiting")
        return run_id

    def get(self, path: str) -> dict[str, object]:
        return dict(httpx.get(f"{self.url}/api/v1{path}").json())


def agent_at(url: str, port: int, node: str = "shell") -> Program:
    environ = {"NODE": node, "PORT": str(port), "HOLDSHORT_URL": url}
    return Program("the agent", [str(AGENT)], environ, health=f"http://127.0.0.1:{port}/health")


@pytest.fixture(scope="module")
def database_of_this_file(postgres_server: Server, template_database: str) -> Iterator[Database]:
    with clone(postgres_server, template_database) as database:
        yield database


@pytest.fixture(scope="module")
def served(database_of_this_file: Database) -> Iterator[Served]:
    port = free_port()
    with running("dev", "--port", "0", **serving(database_of_this_file)) as server:
        there = Served(server.wait_until_ready(), f"http://127.0.0.1:{port}")
        agent = agent_at(there.url, port)
        agent.start()
        try:
            wait_until(lambda: there.get("/nodes")["nodes"])
            yield there
        finally:
            stop([agent])
        server.terminate()


def executing(served: Served, *arguments: str) -> Running:
    return Running("execute", *arguments, HOLDSHORT_URL=served.url)


def test_standard_output_is_the_result_and_nothing_else(served: Served):
    done = run("execute", "shell.add", "--input", '{"a": 1, "b": 2}', HOLDSHORT_URL=served.url)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")


@pytest.mark.parametrize(
    ("reasoner", "code", "said"),
    [
        ("fail", 3, " failed: execution_finished: ValueError: no ·[31m such contract"),
        ("hang", 5, " timeout: "),
        ("add", 3, " failed: "),
    ],
)
def test_the_exit_code_says_how_a_run_ended(served: Served, reasoner: str, code: int, said: str):
    done = run("execute", f"shell.{reasoner}", HOLDSHORT_URL=served.url)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "\u001b" not in done.stderr


@pytest.mark.parametrize(("decision", "code"), [("approved", 0), ("rejected", 4)])
def test_whoever_waits_is_told_what_to_type_and_gets_the_result(served: Served, decision: str, code: int):
    with running(
        "execute", "shell.ask", "--input", json.dumps({"title": HOSTILE}), HOLDSHORT_URL=served.url
    ) as command:
        approval_id = command.wait_for(r"Pay·.*: holdshort approvals decide (apr_\w+) approved")[1]
        served.holdshort("approvals", "decide", approval_id, decision)
        command.wait_for(rf'"decision": "{decision}"')
        assert command.process.wait(10) == code
        assert "\u202e" not in "".join(command.printed())


def test_a_wait_that_is_over_leaves_the_run_to_go_on_and_its_key_joins_it(served: Served):
    asked = ("execute", "shell.ask", "--key", "k-1", "--wait", "0.3")
    done = run(*asked, HOLDSHORT_URL=served.url)
    assert (done.returncode, done.stdout) == (6, "")
    run_id = done.stderr.split()[0]
    assert f"{run_id} waiting, goes on" in done.stderr
    (approval,) = json.loads(served.holdshort("executions", "show", run_id, "--json"))["approvals"]
    served.holdshort("approvals", "decide", approval["approval_id"], "approved")
    assert json.loads(served.holdshort("execute", "shell.ask", "--key", "k-1")) == {"decision": "approved"}


def test_an_interrupted_wait_says_where_the_run_is(served: Served):
    with running("execute", "shell.ask", HOLDSHORT_URL=served.url) as command:
        command.wait_for("holdshort approvals decide")
        command.process.send_signal(signal.SIGINT)
        run_id = command.wait_for(r"goes on; holdshort executions show (exec_\w+)")[1]
        assert command.process.wait(10) == 130
    assert served.get(f"/executions/{run_id}")["status"] == "waiting"


def test_a_run_is_shown_with_what_it_did_and_asked(served: Served):
    added = json.loads(served.holdshort("execute", "shell.add", "--json", "--input", '{"a": 40, "b": 2}'))
    shown = served.holdshort("executions", "show", added["execution_id"])
    (step,) = [line.split() for line in shown.splitlines() if line.startswith("1 ")]
    assert (step[1], step[-1]) == ("add", "42")
    asked = served.asking(HOSTILE)
    shown = served.holdshort("executions", "show", asked)
    assert "[bold]Pay·[31m ·12 EUR[/bold]" in shown
    assert "waiting_for_approval" in shown


def test_a_list_shows_the_runs_that_were_wanted(served: Served):
    waits = served.asking()
    ended = json.loads(served.holdshort("execute", "shell.add", "--json", "--input", '{"a": 1, "b": 1}'))[
        "execution_id"
    ]
    (line,) = [line for line in served.holdshort("executions", "list").splitlines() if waits in line]
    assert line.split()[:4] == [waits, "shell", "ask", "waiting"]
    succeeded = served.holdshort("executions", "list", "--status", "succeeded", "--node", "shell", "--json")
    found = [each["execution_id"] for each in json.loads(succeeded)["executions"]]
    assert ended in found
    assert waits not in found
    assert served.holdshort("executions", "list", "--node", "nobody") == "no executions\n"


def test_a_run_is_cancelled_once_and_what_it_asked_is_withdrawn(served: Served):
    run_id = served.asking()
    assert "not today" in served.holdshort("executions", "cancel", run_id, "--reason", "not today")
    assert "withdrawn" in served.holdshort("executions", "show", run_id)
    ended = json.loads(served.holdshort("execute", "shell.add", "--json", "--input", '{"a": 1, "b": 1}'))[
        "execution_id"
    ]
    again = run("executions", "cancel", ended, HOLDSHORT_URL=served.url)
    assert (again.returncode, again.stderr) == (1, f"Error: {ended} was over before: succeeded\n")


def test_nodes_are_listed_with_their_processes_and_shown_with_what_they_serve(served: Served):
    gone = {"node_id": "left", "base_url": "http://127.0.0.1:9", "instance_id": "left-1"}
    httpx.post(f"{served.url}/api/v1/nodes/register", json=gone).raise_for_status()
    httpx.post(f"{served.url}/api/v1/nodes/left/shutdown", json={}).raise_for_status()
    listed = served.holdshort("nodes").splitlines()
    (line,) = [line.split() for line in listed if line.startswith("shell ")]
    assert line[:4] == ["shell", "7", "live", served.agent_url]
    assert line[5:] == ["add,", "fail,", "hang,", "ask"]
    assert [line.split()[1:] for line in listed if line.startswith("left ")] == [["no", "instance", "is", "there"]]
    shown = served.holdshort("nodes", "shell")
    assert served.agent_url in shown
    assert "when_decided" in shown
    (instance,) = json.loads(served.holdshort("nodes", "shell", "--json"))["instances"]
    assert instance["base_url"] == served.agent_url
    assert {node["node_id"] for node in json.loads(served.holdshort("nodes", "--json"))["nodes"]} == {"shell", "left"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("execute", "nobody.add"), r"node_not_found \(404\): .*\nregistered: .*\bshell\b"),
        (("execute", "shell.subtract"), "registered: add, fail, hang, ask"),
        (("execute", "shell"), "is written node.reasoner"),
        (("execute", "shell.add", "--input", "{"), "is not JSON"),
        (("execute", "shell.add", "--input", "@nowhere.json"), "nowhere.json cannot be read"),
        (("executions", "show", "exec_unknown"), r"execution_not_found \(404\)"),
        (("executions", "show", "../nodes"), "must be 1-128 characters"),
        (("executions", "cancel", ".."), "must not be of dots only"),
        (("nodes", "nobody"), r"node_not_found \(404\)"),
        (("execute", "shell.add", "--url", "http://127.0.0.1:9"), "cannot be reached"),
    ],
)
def test_what_cannot_be_done_is_a_sentence_and_an_exit_code(served: Served, arguments: tuple[str, ...], said: str):
    done = run(*arguments, HOLDSHORT_URL=served.url)
    assert done.returncode in {1, 2}
    assert re.search(said, done.stderr), done.stderr
    assert "Traceback" not in done.stderr


def test_the_arguments_of_a_run_may_come_from_a_file(served: Served, tmp_path: Path):
    file = tmp_path / "arguments.json"
    file.write_text('{"a": 1, "b": 4}')
    assert served.holdshort("execute", "shell.add", "--input", f"@{file}") == "5\n"


def test_a_wait_goes_on_through_a_restart_of_the_control_plane(database: Database):
    port, agent_port = free_port(), free_port()
    served = Served(f"http://127.0.0.1:{port}", f"http://127.0.0.1:{agent_port}")
    serve = ("dev", "--port", str(port))
    agent = agent_at(served.url, agent_port)
    try:
        with running(*serve, **serving(database)) as server:
            server.wait_until_ready()
            agent.start()
            wait_until(lambda: served.get("/nodes")["nodes"])
            command = executing(served, "shell.ask")
            approval_id = command.wait_for(r"holdshort approvals decide (apr_\w+) approved")[1]
            server.kill()
            command.wait_for(r"cannot be reached .*; the run goes on, and so does this command")
        with running(*serve, **serving(database)) as server:
            server.wait_until_ready()
            served.holdshort("approvals", "decide", approval_id, "approved")
            command.wait_for('"decision": "approved"')
            assert command.process.wait(10) == 0
            stop([agent])
    finally:
        command.close()
        stop([agent])
