import os
import socket
from pathlib import Path

import pytest

from controlplane.cli.kept import keep_secret, read_secret
from tests.cli.processes import Running, run, running
from tests.keys import make_keys, serving
from tests.postgres import Database

WEAK = "hunter22"
SECRETS = f"crm:{WEAK},late:x," + ",".join(f"late:sixteen-characters-{number}" for number in range(5))


def started(server: Running) -> str:
    server.wait_until_ready()
    server.terminate()
    return "".join(server.seen)


@pytest.mark.parametrize("command", ["serve", "dev"])
def test_weak_and_untried_webhook_secrets_are_named_by_their_sender(database: Database, command: str):
    make_keys(database)
    environ = serving(database) | {"HOLDSHORT_WEBHOOK_SECRETS": SECRETS}
    with running(command, "--port", "0", **environ) as server:
        said = started(server)
    short = [line for line in said.splitlines() if "webhook_secret_is_short" in line]
    assert ['"sender": "crm"' in short[0], '"sender": "late"' in short[1], len(short)] == [True, True, 2]
    (untried,) = [line for line in said.splitlines() if "webhook_secret_is_never_tried" in line]
    assert '"sender": "late"' in untried
    assert WEAK not in said
    assert "sixteen-characters" not in said


def test_the_password_of_a_given_database_is_not_shown(database: Database, tmp_path: Path):
    url = f"{database.url}{'&' if '?' in database.url else '?'}application_name=hunter22"
    with running("dev", "--port", "0", HOLDSHORT_DATABASE_URL=url, HOLDSHORT_HOME=str(tmp_path)) as dev:
        dev.wait_for("Ctrl-C")
        said = "".join(dev.seen)
    assert "database    HOLDSHORT_DATABASE_URL\n" in said
    assert "hunter22" not in said


def test_an_absent_database_is_one_line_whatever_the_reason(database: Database):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for url in (
            database.server.url_of("no_such_database"),
            "postgresql://u:hunter22@127.0.0.1:1/x",
            f"postgresql://u:hunter22@127.0.0.1:{silent.getsockname()[1]}/x",
        ):
            done = run("migrate", HOLDSHORT_DATABASE_URL=url)
            assert done.returncode == 1
            (line,) = done.stderr.splitlines()
            assert line.startswith("Error: the database cannot be reached (")
            assert line.endswith("); start it, or correct its URL")
            assert "()" not in line
            assert "sqlalche" not in line
            assert "hunter22" not in line


def test_a_parameter_that_means_nothing_is_one_line():
    done = run("migrate", HOLDSHORT_DATABASE_URL="postgresql://u:hunter22@127.0.0.1:1/x?sslmode=perhaps")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "sslmode" in done.stderr
    assert "hunter22" not in done.stderr


def test_a_home_that_cannot_be_one_is_one_line(tmp_path: Path):
    file = tmp_path / "file"
    file.touch()
    for home in (file, file / "below", Path("/proc/none/at/all")):
        done = run("dev", "--port", "0", HOLDSHORT_HOME=str(home))
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
        assert "set HOLDSHORT_HOME to another directory" in done.stderr


def test_an_empty_secret_file_is_no_secret(database: Database, tmp_path: Path):
    kept = tmp_path / "webhook-secret"
    kept.touch()
    (tmp_path / "body").write_text("{}")
    sign = ("sign", str(tmp_path / "body"))
    refused = run(*sign, HOLDSHORT_HOME=str(tmp_path))
    assert (refused.returncode, refused.stdout) == (2, "")
    with running("dev", "--port", "0", HOLDSHORT_DATABASE_URL=database.url, HOLDSHORT_HOME=str(tmp_path)) as dev:
        started(dev)
    assert len(kept.read_text()) == 48
    assert kept.stat().st_mode & 0o777 == 0o600
    assert run(*sign, HOLDSHORT_HOME=str(tmp_path)).returncode == 0


def test_a_secret_is_kept_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        keep_secret(tmp_path / "secret", "text")
    assert read_secret(tmp_path / "secret") is None
    assert list(tmp_path.iterdir()) == []
