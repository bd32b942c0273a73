"""An SDK as its users get it, in a directory that knows nothing of this one: a ten-line agent asks and resumes."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from holdshort import Execution

from controlplane.cli.demo.programs import free_port
from tests import postgres
from tests.cli.processes import running
from tests.languages import fresh, sdks, toolchains
from tests.languages.sdks import SDKS, Usable

SECONDS = 60.0


@pytest.fixture(scope="module")
def url(
    postgres_server: postgres.Server, template_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A control plane as `holdshort dev` starts it on a new machine."""
    with postgres.clone(postgres_server, template_database) as database:
        environ = {"HOLDSHORT_DATABASE_URL": database.url, "HOLDSHORT_HOME": str(tmp_path_factory.mktemp("home"))}
        with running("dev", "--port", "0", **environ) as server:
            yield server.wait_until_ready()


def do(place: Path, *command: str) -> str:
    """What a command says that is run in a directory."""
    done = subprocess.run(
        command, cwd=place, env=toolchains.environ(), capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def served(url: str, node: str, place: Path, *command: str) -> Execution:
    """The run of a program that is served here."""
    with fresh.program(command, place, HOLDSHORT_URL=url, NODE=node, PORT=str(free_port())):
        return fresh.greeted(url, node)


@pytest.fixture(scope="module")
def tarball(usable: Usable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `npm publish` would send."""
    sdk, place = usable("typescript"), tmp_path_factory.mktemp("packed")
    with sdks.building(sdk):
        said = sdks.run(sdk, ["npm", "pack", "--silent", "--pack-destination", str(place)])
    return place / said.split()[-1]


@pytest.fixture(scope="module")
def installed(tarball: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the package installed, and nothing else."""
    place = tmp_path_factory.mktemp("program")
    (place / "package.json").write_text('{"type": "module", "private": true}')
    do(place, "npm", "install", "--silent", "--offline", "--no-audit", "--no-fund", str(tarball))
    assert [each.name for each in (place / "node_modules").iterdir() if each.is_dir()] == ["@holdshort"]
    return place


def test_npm_installs_an_agent_that_asks_and_resumes(url: str, installed: Path) -> None:
    (installed / "agent.js").write_text(fresh.JAVASCRIPT)
    run = served(url, "fresh-typescript", installed, "node", "agent.js")
    assert (run.status, run.result) == ("succeeded", "Hello Ann")


def test_npm_installs_types_that_a_strict_program_compiles_with(installed: Path) -> None:
    (installed / "program.ts").write_text(fresh.TYPESCRIPT)
    options = {
        "strict": True,
        "noEmit": True,
        "module": "NodeNext",
        "target": "ES2022",
        "skipLibCheck": False,
        "types": [],
    }
    (installed / "tsconfig.json").write_text(json.dumps({"compilerOptions": options, "files": ["program.ts"]}))
    compiler = SDKS["typescript"].folder / "node_modules" / "typescript" / "bin" / "tsc"
    do(installed, "node", str(compiler), "-p", ".")


def test_npm_packs_what_users_need_and_no_tests(installed: Path) -> None:
    package = installed / "node_modules" / "@holdshort" / "sdk"
    files = {str(each.relative_to(package)) for each in package.rglob("*") if each.is_file()}
    assert {"package.json", "README.md", "LICENSE"} <= files
    assert {each.split("/")[0] for each in files if "/" in each} == {"dist"}
    assert [each for each in files if "test" in each or "conformance" in each] == []


def test_go_gets_an_agent_that_asks_and_resumes(url: str, usable: Usable, tmp_path: Path) -> None:
    folder = usable("go").folder
    module = (folder / "go.mod").read_text("utf-8").split()[1]
    (tmp_path / "main.go").write_text(fresh.GO)
    (tmp_path / "go.mod").write_text(
        f"module example.com/greeter\n\ngo 1.22\n\nrequire {module} v0.0.0\n\nreplace {module} => {folder}\n"
    )
    do(tmp_path, "go", "build", "-o", "greeter", ".")
    run = served(url, "fresh-go", tmp_path, str(tmp_path / "greeter"))
    assert (run.status, run.result) == ("succeeded", "Hello Ann")
