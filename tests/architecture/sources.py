"""The repository's own sources, and the measures that the architecture tests take of them."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PRODUCT = ("controlplane", "sdk/python/src", "migrations", "examples", "benchmarks")
TESTS = ("tests", "sdk/python/tests")
TEXT = (".py", ".md", ".toml", ".yml", ".yaml", ".json", ".sh", ".mako", ".cfg", "")
FOLDERS = (*PRODUCT, *TESTS, "docs", "sdk", ".ci")

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_NESTING = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)


class Body(NamedTuple):
    """One function: where it is, how many lines its body has without the docstring, how deep it nests."""

    name: str
    lines: int
    depth: int


def python_files(*folders: str) -> list[Path]:
    """Every Python file below these folders of the repository."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def text_files() -> list[Path]:
    """Every file of ours that people read, in the folders and at the top."""
    below = {path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in TEXT}
    top = {path for path in ROOT.iterdir() if path.suffix in TEXT}
    generated = {"__pycache__", "uv.lock", "node_modules", ".build", "coverage", "dist"}
    return sorted(path for path in below | top if path.is_file() and not generated & {*path.parts, path.name})


def bodies(path: Path, text: str) -> Iterator[Body]:
    """The functions of one file, nested ones too."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _Function):
            yield Body(f"{path}:{node.lineno} {node.name}", _lines(node), _depth(node.body))


def _lines(node: _Function) -> int:
    statements = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    if not statements:
        return 0
    return (statements[-1].end_lineno or 0) - statements[0].lineno + 1


def _depth(statements: list[ast.stmt]) -> int:
    return max((_depth_of(statement) for statement in statements), default=0)


def _depth_of(statement: ast.stmt) -> int:
    if isinstance(statement, _Function | ast.ClassDef) or not isinstance(statement, _NESTING):
        return 0
    chained = isinstance(statement, ast.If) and len(statement.orelse) == 1 and isinstance(statement.orelse[0], ast.If)
    inside = [_depth(block) for block in _blocks(statement, with_else=not chained)]
    deepest = 1 + max(inside, default=0)
    return max(deepest, _depth(statement.orelse)) if chained and isinstance(statement, ast.If) else deepest


def _blocks(statement: ast.stmt, *, with_else: bool) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody") if with_else else ("body",):
        yield getattr(statement, name, [])
    for handler in getattr(statement, "handlers", []):
        yield handler.body
    for case in getattr(statement, "cases", []):
        yield case.body
