"""What the tests start by forking a process that has loaded everything does what a start from a shell does."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.processes import Running, run, running, wait_until_gone
from tests.postgres import Database


def started(*arguments: str, given: str | None = None, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "controlplane.cli", *arguments],
        env={"PATH": os.environ["PATH"], "COLUMNS": "200", **environ},
        input=given,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.mark.parametrize(
    "arguments",
    [("--version",), ("--help",), ("serve", "--help"), ("serve",), ("keys", "list", "--json"), ("no-such-command",)],
    ids=" ".join,
)
def test_it_prints_and_ends_the_same(database: Database, arguments: tuple[str, ...]):
    environ = {"HOLDSHORT_DATABASE_URL": database.url, "HOLDSHORT_LOG_FORMAT": "console"}
    loaded, fresh = run(*arguments, **environ), started(*arguments, **environ)
    assert (loaded.returncode, loaded.stdout, loaded.stderr) == (fresh.returncode, fresh.stdout, fresh.stderr)


def test_it_reads_what_it_is_given(tmp_path: Path):
    secret = f"HOLDSHORT_WEBHOOK_SECRETS=desk:{os.urandom(16).hex()}"
    environ = dict([secret.split("=", 1)])
    loaded, fresh = (each("sign", "-", given="{}", **environ) for each in (run, started))
    assert (loaded.returncode, loaded.stdout) == (fresh.returncode, fresh.stdout)
    assert loaded.stdout


def test_nothing_of_one_is_left_for_the_next(database: Database):
    told = run("serve", HOLDSHORT_DATABASE_URL=database.url)
    assert "HOLDSHORT_DATABASE_URL" not in told.stderr
    assert "HOLDSHORT_DATABASE_URL" in run("serve").stderr


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_signals_end_it_as_they_end_any(database: Database, end: signal.Signals):
    codes = []
    for anew in (False, True):
        with running("dev", "--port", "0", anew=anew, HOLDSHORT_DATABASE_URL=database.url) as dev:
            dev.wait_until_ready()
            assert dev.process.poll() is None
            dev.process.send_signal(end)
            codes.append(dev.process.wait(30))
            wait_until_gone(dev.process.pid)
    assert codes[0] == codes[1]


def test_each_is_the_leader_of_a_session_of_its_own(database: Database):
    commands = [Running("dev", "--port", "0", HOLDSHORT_DATABASE_URL=database.url) for _ in range(2)]
    for command in commands:
        command.wait_until_ready()
        assert os.getsid(command.process.pid) == command.process.pid
        command.close()
