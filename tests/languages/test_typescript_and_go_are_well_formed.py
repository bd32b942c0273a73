"""The SDKs in TypeScript and Go by their languages' own tools; and that they need nobody else's packages."""

import json
import re
from pathlib import Path

import pytest

from tests.architecture.test_words_and_calls_keep_to_their_rooms import MACHINE, UNFINISHED
from tests.languages import sdks, toolchains
from tests.languages.sdks import SDKS, Sdk

STRICT = (
    "strict",
    "noUncheckedIndexedAccess",
    "exactOptionalPropertyTypes",
    "noImplicitOverride",
    "noUnusedLocals",
    "noUnusedParameters",
)
GO_NEEDED = "1.22"
LONGEST_FILE = 400
LONGEST_TEST_FILE = 500


@pytest.fixture(scope="module")
def typescript(usable: sdks.Usable) -> Sdk:
    return usable("typescript")


@pytest.fixture(scope="module")
def go(usable: sdks.Usable) -> Sdk:
    return usable("go")


def test_typescript_is_checked_as_strictly_as_can_be(typescript: Sdk) -> None:
    shown = sdks.run(typescript, ["npm", "exec", "--offline", "--", "tsc", "-p", "tsconfig.json", "--showConfig"])
    options = json.loads(shown)["compilerOptions"]
    assert [name for name in STRICT if options.get(name) is not True] == []
    sdks.run(typescript, ["npm", "run", "--silent", "check"])


def test_go_is_vetted_and_in_its_form(go: Sdk) -> None:
    sdks.run(go, ["go", "vet", "./..."])
    assert sdks.run(go, ["gofmt", "-l", "."]) == ""


def test_staticcheck_finds_nothing_in_go(go: Sdk, missing_tool: sdks.Missing) -> None:
    if toolchains.found("staticcheck") is None:
        missing_tool("go: no staticcheck here; `make languages` builds one")
    sdks.run(go, ["staticcheck", "./..."])


def test_go_is_built_without_a_c_compiler(go: Sdk) -> None:
    sdks.run(go, ["go", "build", "./..."], CGO_ENABLED="0")


def test_neither_needs_a_package_of_anybody_else_to_run() -> None:
    package = json.loads((SDKS["typescript"].folder / "package.json").read_text("utf-8"))
    assert [name for name in package if name.lower().endswith("dependencies")] == ["devDependencies"]
    module = (SDKS["go"].folder / "go.mod").read_text("utf-8")
    assert re.findall(r"^(\w+)", module, re.MULTILINE) == ["module", "go"]
    assert f"\ngo {GO_NEEDED}\n" in module


def test_each_has_the_same_licence_text_as_the_server() -> None:
    text = (toolchains.ROOT / "LICENSE").read_text("utf-8")
    assert {name for name, sdk in SDKS.items() if (sdk.folder / "LICENSE").read_text("utf-8") != text} == set()


def test_files_are_small_and_name_neither_a_machine_nor_what_is_left_to_do() -> None:
    found = {path: path.read_text("utf-8").splitlines() for path in sources()}
    assert len(found) > 50
    assert [str(path) for path, lines in found.items() if len(lines) > longest(path)] == []
    assert [
        f"{path}:{number}"
        for path, lines in found.items()
        for number, line in enumerate(lines, 1)
        if MACHINE.search(line) or UNFINISHED.search(line)
    ] == []


def longest(path: Path) -> int:
    """How many lines a file may have."""
    return LONGEST_TEST_FILE if path.stem.endswith("_test") or "test" in path.parts else LONGEST_FILE


def sources() -> list[Path]:
    """Every file of both that is written by hand."""
    made = {"node_modules", ".build", "dist", "coverage"}
    folders = [SDKS[name].folder for name in ("typescript", "go")]
    paths = (path for folder in folders for path in folder.rglob("*") if path.suffix in {".ts", ".mjs", ".go"})
    return sorted(path for path in paths if not made & set(path.parts))
