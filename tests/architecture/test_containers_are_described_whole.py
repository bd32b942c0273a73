"""The container files, read by a parser: what they may say without a Docker engine being asked."""

import json
import re
import shlex
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from controlplane.cli.main import COMMANDS, holdshort
from controlplane.settings import SETTINGS
from tests.architecture.sources import ROOT

KNOWN = {row.name for row in SETTINGS}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    document = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    assert isinstance(document, dict)
    return document


def what_secrets_prints() -> set[str]:
    """The settings that `holdshort secrets` makes, all of which `serve` asks for."""
    done = CliRunner().invoke(holdshort, ["secrets", "--json"])
    return set(json.loads(done.output))


def instructions() -> list[list[str]]:
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    return [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]


def test_every_service_that_stays_has_a_health_check_and_restarts(compose: dict[str, Any]):
    for name in ("postgres", "controlplane"):
        service = compose["services"][name]
        assert service["healthcheck"]["test"][0] == "CMD"
        assert service["restart"] == "unless-stopped"
    assert "/health/ready" in compose["services"]["controlplane"]["healthcheck"]["test"][-1]


def test_the_control_plane_starts_after_the_migration_and_that_after_the_database(compose: dict[str, Any]):
    services = compose["services"]
    assert services["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert services["controlplane"]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
    assert services["migrate"]["command"] == ["migrate"]


def test_secrets_come_from_the_environment_and_their_absence_stops_the_start(compose: dict[str, Any]):
    services = compose["services"]
    assert services["postgres"]["environment"]["POSTGRES_PASSWORD"].startswith("${POSTGRES_PASSWORD:?")
    given = services["controlplane"]["environment"]
    for name in what_secrets_prints():
        assert given[name].startswith(f"${{{name}:?"), name
        assert "`holdshort secrets`" in given[name]


def test_the_control_plane_has_all_that_it_does_not_start_without(compose: dict[str, Any]):
    given = compose["services"]["controlplane"]["environment"]
    assert {"HOLDSHORT_DATABASE_URL", *what_secrets_prints()} <= set(given)


def test_only_settings_that_exist_are_set(compose: dict[str, Any]):
    for service in compose["services"].values():
        ours = {name for name in service.get("environment", {}) if name.startswith("HOLDSHORT_")}
        assert ours <= KNOWN
    assert set(re.findall(r"HOLDSHORT_[A-Z_]+", (ROOT / "Dockerfile").read_text())) <= KNOWN


def test_nothing_listens_beyond_this_machine(compose: dict[str, Any]):
    assert compose["services"]["controlplane"]["ports"] == ["127.0.0.1:8080:8080"]
    assert "ports" not in compose["services"]["postgres"]


def test_the_image_has_two_stages_and_runs_as_nobody_special():
    said = instructions()
    assert [name for name, _ in said].count("FROM") == 2
    last = max(index for index, (name, _) in enumerate(said) if name == "FROM")
    users = [value for name, value in said[last:] if name == "USER"]
    assert users == ["10001:10001"]
    assert said[-1][0] == "CMD"
    assert yaml.safe_load(said[-1][1])[0] in COMMANDS


def test_what_the_image_copies_exists_and_passes_the_ignore_file():
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for name, value in instructions():
        if name != "COPY" or value.startswith("--from"):
            continue
        for source in shlex.split(value)[:-1]:
            assert (ROOT / source).exists(), source
            assert any(source == each or source.startswith(f"{each}/") for each in kept), source
