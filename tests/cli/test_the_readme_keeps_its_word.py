import re
import shlex
from pathlib import Path

import click
import httpx
import pytest

from controlplane.cli.demo.programs import Program, free_port, stop
from controlplane.cli.main import holdshort
from tests.cli.processes import run, running, wait_until
from tests.postgres import Database

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "examples").glob("*/README.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[list[str]]:
    """The arguments of every `holdshort` command on a page."""
    lines = [line for block in blocks(page, "sh") for line in block.replace("\\\n", " ").splitlines()]
    calls = [re.sub(r"^(\w+=\S+ )+", "", line) for line in lines]
    return [shlex.split(call.rstrip(" &"), comments=True)[1:] for call in calls if call.startswith("holdshort ")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_it_shows_is_understood(page: Path):
    shown = [[word for word in words if word != "&"] for words in commands(page)]
    assert shown
    for words in shown:
        command: click.Command = holdshort
        context = command.make_context(command.name, words)
        # A group reads its words itself, as some stand for a command without naming it.
        while isinstance(command, click.Group):
            _, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
            assert found is not None, words
            command, context = found, found.make_context(found.name, rest, parent=context)


def test_its_agent_is_killed_in_the_middle_of_a_run_and_the_run_ends_by_itself(database: Database, tmp_path: Path):
    (source,) = [block for block in blocks(ROOT / "README.md", "python") if block.startswith("# agent.py")]
    port = free_port()
    file = tmp_path / "agent.py"
    file.write_text(source.replace("port=8001", f"port={port}"))
    environ = {"HOLDSHORT_DATABASE_URL": database.url, "HOLDSHORT_HOME": str(tmp_path)}
    with running("dev", "--port", "0", **environ) as server:
        url = server.wait_until_ready()
        agent = Program("the agent", [str(file)], {"HOLDSHORT_URL": url}, health=f"http://127.0.0.1:{port}/health")
        try:
            agent.start()
            wait_until(lambda: httpx.get(f"{url}/api/v1/nodes").json()["nodes"])
            called = ("execute", "contract-reviewer.review_contract", "--input", '{"document": "NDA.pdf"}')
            with running(*called, HOLDSHORT_URL=url) as command:
                approval_id = command.wait_for(r"Sign this contract\?: holdshort approvals decide (\w+) approved")[1]
                assert command.wait_for(r"or on its page: (\S+)")[1] == f"{url}/inbox/{approval_id}"
                agent.kill()
                run("approvals", "decide", approval_id, "approved", HOLDSHORT_URL=url).check_returncode()
                agent.start()
                command.wait_for('"status": "approved"')
                assert command.process.wait(10) == 0
        finally:
            stop([agent])
        assert len(agent.written("^reading NDA.pdf$", 0)) == 1
