import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import PRODUCT, ROOT, TESTS, python_files, text_files

# Spelled in two halves so that this file does not find itself.
MACHINE = re.compile("/(?:" + "work|root|home|Users" + r")/\w|\.\./" + "shared")
UNFINISHED = re.compile(r"\b(?:" + "TO" + "DO|FIX" + "ME|X" + r"XX)\b")
OVERLAPS_NOTHING = "Async" + "TestClient"
EDGES = tuple(f"controlplane/{room}" for room in ("edge/", "http/", "inbox/", "workers/", "cli/", "app.py", "runtime/"))
READS_ENVIRONMENT = ("controlplane/cli/",)

Finder = Callable[[ast.AST], bool]


def find(finder: Finder, source: str) -> Iterator[int]:
    return (getattr(node, "lineno", 0) for node in ast.walk(ast.parse(source)) if finder(node))


def offenders(finder: Finder, folder: str, allowed: tuple[str, ...] = ()) -> list[str]:
    paths = [path for path in python_files(folder) if not str(path.relative_to(ROOT)).startswith(allowed or ("\0",))]
    return [f"{path.relative_to(ROOT)}:{line}" for path in paths for line in find(finder, path.read_text("utf-8"))]


def is_async(node: ast.AST) -> bool:
    return isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith)


def opens_transaction(node: ast.AST) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    return (isinstance(called, ast.Name) and called.id == "transaction") or (
        isinstance(called, ast.Attribute) and called.attr == "transaction"
    )


def reads_environment(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv", "environb"}


def confuses_litestar(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and node.name in {"Request", "Response", "State"}


def test_the_domain_never_waits():
    assert offenders(is_async, "controlplane/domain") == []


def test_transactions_are_opened_at_the_edges_only():
    assert offenders(opens_transaction, "controlplane", EDGES) == []


def test_the_environment_is_read_once():
    assert offenders(reads_environment, "controlplane", READS_ENVIRONMENT) == []


def test_no_class_takes_a_name_that_litestar_resolves_to_its_own():
    assert offenders(confuses_litestar, "controlplane") == []


@pytest.mark.parametrize(
    ("finder", "planted"),
    [
        (is_async, "async def decide(): ..."),
        (opens_transaction, "async def f(engine):\n    async with transaction(engine) as c: ..."),
        (opens_transaction, "async def f(engine):\n    async with storage.transaction(engine) as c: ..."),
        (reads_environment, "import os\nurl = os.environ['HOLDSHORT_URL']"),
        (reads_environment, "import os\nurl = os.getenv('HOLDSHORT_URL')"),
        (confuses_litestar, "class State: ..."),
    ],
)
def test_each_finder_finds_a_planted_offence(finder: Finder, planted: str):
    assert list(find(finder, planted))


def lines_with(pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}"
        for path in paths
        for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_file_names_the_machine_that_it_was_written_on():
    assert lines_with(MACHINE, text_files()) == []


def test_nothing_is_left_for_later():
    assert lines_with(UNFINISHED, python_files(*PRODUCT, *TESTS)) == []


def test_no_test_uses_the_client_that_serves_one_call_at_a_time():
    assert lines_with(re.compile(OVERLAPS_NOTHING), python_files(*PRODUCT, *TESTS)) == []


@pytest.mark.parametrize("planted", ["see /" + "root/x", "cd /" + "work/main", "read .." + "/shared/spec"])
def test_a_planted_machine_path_is_found(planted: str):
    assert MACHINE.search(planted)
