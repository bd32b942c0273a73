"""What is public, documented and cheap to import."""

import asyncio
import inspect
import resource
import subprocess
import sys

import holdshort
import holdshort.testing
import holdshort.webhooks
import pytest

FORBIDDEN = (
    "uvicorn",
    "cryptography",
    "jsonschema",
    "litellm",
    "litestar",
    "sqlalchemy",
    "starlette",
    "pydantic",
    "httpx",
)


@pytest.mark.parametrize("module", [holdshort, holdshort.testing, holdshort.webhooks])
def test_exported_members_are_sorted_and_there(module: object) -> None:
    names = module.__all__  # type: ignore[attr-defined]
    assert sorted(names) == list(names)
    assert all(hasattr(module, name) for name in names)


def test_every_public_name_says_what_it_is() -> None:
    for module in (holdshort, holdshort.testing, holdshort.webhooks):
        for name in module.__all__:
            documented(name, getattr(module, name))


def documented(name: str, member: object) -> None:
    if isinstance(member, (str, int)):
        return
    assert inspect.getdoc(member), name
    if inspect.isclass(member):
        for inner, value in vars(member).items():
            if not inner.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                assert inspect.getdoc(value), f"{name}.{inner}"


def test_every_error_has_its_own_code_and_is_exported() -> None:
    def below(kind: type) -> set[type]:
        # What is raised into waiting code is the same leaf, as a cancellation.
        leaves = [leaf for leaf in kind.__subclasses__() if not issubclass(leaf, asyncio.CancelledError)]
        return {kind}.union(*(below(leaf) for leaf in leaves))

    tree = below(holdshort.HoldshortError) | below(holdshort.RunEnded)
    assert all(hasattr(holdshort, kind.__name__) for kind in tree)
    assert len({kind.code for kind in tree}) == len(tree)  # type: ignore[attr-defined]
    drawn = sys.modules["holdshort._errors"].__doc__ or ""
    assert all(kind.__name__ in drawn for kind in tree)
    assert not issubclass(holdshort.RunEnded, Exception)
    assert issubclass(holdshort.WaitTimeout, TimeoutError)


def test_tracebacks_name_the_door() -> None:
    assert holdshort.Agent.__module__ == "holdshort"


def test_importing_pulls_in_no_framework() -> None:
    program = f"import sys, holdshort; sys.exit(repr([m for m in {FORBIDDEN!r} if m in sys.modules] or 0))"
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert done.stderr.strip() in {"", "0"}


def test_importing_costs_no_more_than_httpx() -> None:
    def cost(module: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # Its own work, not the time on a clock that other programs run on too; and the best of several, side by side.
    costs = [(cost("holdshort"), cost("httpx")) for _ in range(5)]
    ours, theirs = (min(column) for column in zip(*costs, strict=True))
    assert ours <= 1.2 * theirs
