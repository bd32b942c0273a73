import json
import os
import re
import signal
import time
from collections.abc import Iterator

import httpx
import pytest

from controlplane.cli.demo.faults import DemoFault, NotSeen, check
from controlplane.cli.demo.page import Page
from controlplane.cli.demo.programs import Program, stop
from tests import postgres
from tests.cli.processes import Running, children_of, run, running, wait_until_gone
from tests.postgres import Database

CODE = "493201"
STEPS = [
    "signed webhook",
    "decided in the inbox",
    "tampered webhook",
    "duplicate webhook",
    "expiry",
    "control plane killed",
    "agent killed",
    "killed between steps",
    "killed in a pause",
    "rolling restart",
]


def test_it_decides_by_itself_and_sees_everything_on_a_postgresql_of_its_own():
    begun = time.monotonic()
    with running("demo", "--auto", "--json", anew=True) as demo:
        demo.process.wait(100)
        demo.wait_for(r"^\}$")
        document = json.loads("".join(demo.seen))
    assert document["fault"] is None
    assert list(dict.fromkeys(seen["step"] for seen in document["seen"])) == STEPS
    assert demo.process.returncode == 0
    assert time.monotonic() - begun < 90


@pytest.mark.parametrize(("word", "status"), [("approve", "approved"), ("reject", "rejected")])
def test_a_person_decides_on_the_pages_that_it_prints_and_sigterm_ends_it_whole(
    database: Database, word: str, status: str
):
    with running("demo", anew=True, HOLDSHORT_DATABASE_URL=database.url) as demo:
        first = demo.wait_for(r"^  (http://\S+/inbox/apr_\w+)$")[1]
        started = children_of(demo.process.pid)
        if word == "approve":
            press(first, "approved")
            press(demo.wait_for(r"^  (http://\S+/inbox/apr_\w+)$")[1], "approved")
            answer_both(demo)
        else:
            press(first, "rejected")
        demo.wait_for(rf'The run has ended; the agent returned {{"status": "{status}"')
        assert len(started) == 3
        assert demo.terminate() < 10
    assert demo.process.returncode == 0
    wait_until_gone(*started)
    assert CODE not in "".join(demo.seen)


def press(url: str, verdict: str, **given: str) -> None:
    """Press a button of a page, and once more to confirm."""
    base, path = url[: url.index("/inbox")], url[url.index("/inbox") :]
    with httpx.Client(trust_env=False) as browser:
        page = Page(browser, base, path)
        page.press(f"{path}/decision", verdict=verdict, **given)
        page.press(f"{path}/decision", verdict=verdict, **given)
        assert page.status == 200


def answer_both(demo: Running) -> None:
    """Answer the agent's question that keeps on its page, and the short-lived one by the command that is printed."""
    press(demo.wait_for(r"^  (http://\S+/inbox/apr_\w+)$")[1], "approved", **{"value.answer": "suppliers"})
    words = demo.wait_for(r"^  holdshort (feedback answer \S+ --url \S+)$")[1].split()
    assert run(*words, given=CODE).stdout == "Response submitted\n"


@pytest.mark.proof
def test_what_is_killed_by_hand_is_started_again_and_the_run_ends_by_itself(database: Database):
    with running("demo", HOLDSHORT_DATABASE_URL=database.url) as demo:
        review = demo.wait_for(r"curl -X POST (http://\S+/approve)\b")[1]
        control_plane, agent = children_of(demo.process.pid)[:2]
        for program in (control_plane, agent):
            os.kill(program, signal.SIGKILL)
            demo.wait_for(r" is back ")
        assert httpx.post(review).json()["status"] == "processed"
        sign_off = demo.wait_for(r"curl -X POST (http://\S+/approve)\b")[1]
        assert httpx.post(sign_off).json()["status"] == "processed"
        demo.wait_for("The agent has a question")
        answer_both(demo)
        demo.wait_for(r'The run has ended; the agent returned \{"status": "approved"')
        assert demo.terminate() < 10
    doers = re.findall(r"\[(\d+)\] step (\w+)", "".join(demo.seen))
    assert [(step, int(pid) == agent) for pid, step in doers] == [("read", True), ("analyse", True), ("file", False)]


def test_a_database_that_is_not_there_is_one_sentence():
    with running("demo", "--auto", HOLDSHORT_DATABASE_URL="postgresql://nobody@127.0.0.1:1/none") as demo:
        demo.wait_for(r"^Error: the database cannot be reached")
        assert demo.process.wait(10) == 1


REFUSE_EVERY_DECISION = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
CREATE TRIGGER refuse BEFORE UPDATE OF status ON approvals FOR EACH ROW EXECUTE FUNCTION refuse();
"""


@pytest.mark.proof
def test_a_step_that_was_not_seen_fails_by_name_and_shows_what_the_programs_wrote(database: Database):
    postgres.run(execute(database, REFUSE_EVERY_DECISION))
    with running("demo", "--auto", "--json", HOLDSHORT_DATABASE_URL=database.url) as demo:
        demo.wait_for(r"^-- the control plane --")
        demo.wait_for(r'"fault": "signed webhook: expected `processed` for request-changes; found .*internal_error')
        demo.wait_for(r"^Error: signed webhook: ")
        assert demo.process.wait(15) == 1


FORGET_STEPS_AT_EACH_DISPATCH = """
CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN DELETE FROM steps WHERE execution_id = NEW.execution_id; RETURN NULL; END $$;
CREATE TRIGGER forget AFTER UPDATE OF fence ON executions FOR EACH ROW
WHEN (NEW.fence > OLD.fence) EXECUTE FUNCTION forget();
"""


@pytest.mark.proof
def test_a_step_of_a_killed_agent_that_is_done_again_fails_the_demo(database: Database):
    postgres.run(execute(database, FORGET_STEPS_AT_EACH_DISPATCH))
    with running("demo", "--auto", "--json", HOLDSHORT_DATABASE_URL=database.url) as demo:
        demo.wait_for(r'"fault": "killed between steps: expected `read` by the processes \[(\d+)\]; found \[\1, \d+\]')
        assert demo.process.wait(15) == 1


async def execute(database: Database, statements: str) -> None:
    connection = await database.connect()
    try:
        await connection.execute(statements)
    finally:
        await connection.close()


@pytest.fixture
def program() -> Iterator[Program]:
    made = Program("the program", ["-c", "print('hello'); input()"], {}, health="http://127.0.0.1:1/")
    yield made
    stop([made])


def test_what_is_not_seen_ends_the_demo(program: Program, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("controlplane.cli.demo.programs.SEE_SECONDS", 0.2)
    program.start()
    with pytest.raises(DemoFault, match=r"the program ended: .*EOFError"):
        program.wrote("never", 0)
    waiting = Program("the sleeper", ["-c", "import signal; signal.pause()"], {}, health="http://127.0.0.1:1/")
    waiting.start()
    with pytest.raises(NotSeen, match="the sleeper did not write 'never'"):
        waiting.wrote("never", 0)
    stop([waiting])
    assert not waiting.running
    with pytest.raises(NotSeen, match="expected a yes; found no"):
        check(False, "a yes", "no")
