"""Which functions a function can call, read from the sources: by name, over modules, without running anything."""

import ast
from collections.abc import Iterable, Iterator

from tests.architecture.sources import ROOT, python_files

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Calls:
    """The functions of some folders by their full names, and what each names of the others.

    A function that is only named counts as called: it may be handed on.
    """

    def __init__(self, *folders: str) -> None:
        self.functions: dict[str, Function] = {}
        self._named: dict[str, set[str]] = {}
        for path in python_files(*folders):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            self._read(module, ast.parse(path.read_text("utf-8")))

    def reached(self, roots: Iterable[str]) -> set[str]:
        """Every function that these can call, themselves among them."""
        found: set[str] = set()
        waiting = list(roots)
        while waiting:
            name = waiting.pop()
            if name in self.functions and name not in found:
                found.add(name)
                waiting += self._named[name]
        return found

    def add_call(self, caller: str, called: str) -> None:
        """Plant a call."""
        self._named.setdefault(caller, set()).add(called)
        self._named.setdefault(called, set())

    def _read(self, module: str, tree: ast.Module) -> None:
        known = dict(_imported(tree))
        own = list(_functions(tree))
        known |= {function.name: f"{module}.{function.name}" for function in own}
        for function in own:
            name = f"{module}.{function.name}"
            self.functions[name] = function
            self._named.setdefault(name, set()).update(_named(function, known))


def _functions(tree: ast.Module) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _named(function: Function, known: dict[str, str]) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id in known:
            yield known[node.id]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            # A method of one's own class, or a function of an imported module.
            yield known.get(node.attr, "") if node.value.id == "self" else f"{known.get(node.value.id, '')}.{node.attr}"


def names_in(function: Function) -> set[str]:
    """Every name and attribute that a function's body spells."""
    spelled = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    return spelled | {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)}
