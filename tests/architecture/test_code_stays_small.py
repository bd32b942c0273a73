import textwrap
from pathlib import Path

import pytest

from tests.architecture.sources import PRODUCT, ROOT, TESTS, Body, bodies, python_files

LONGEST_FILE = 400
LONGEST_TEST_FILE = 500
LONGEST_BODY = 40
SHORT_BODY = 25
SHORT_SHARE = 0.93
DEEPEST = 3


def all_bodies() -> list[Body]:
    return [
        body
        for path in python_files(*PRODUCT)
        for body in bodies(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
    ]


def too_long(folders: tuple[str, ...], most: int) -> list[str]:
    counted = ((path, len(path.read_text(encoding="utf-8").splitlines())) for path in python_files(*folders))
    return [f"{path.relative_to(ROOT)}: {lines} lines" for path, lines in counted if lines > most]


def test_no_file_is_too_long():
    assert too_long(PRODUCT, LONGEST_FILE) == []
    assert too_long(TESTS, LONGEST_TEST_FILE) == []


def test_no_body_is_too_long():
    assert [body for body in all_bodies() if body.lines > LONGEST_BODY] == []


def test_nearly_all_bodies_are_short():
    found = all_bodies()
    longer = [body for body in found if body.lines > SHORT_BODY]
    assert 1 - len(longer) / len(found) >= SHORT_SHARE, longer


def test_nothing_nests_too_deep():
    assert [body for body in all_bodies() if body.depth > DEEPEST] == []


@pytest.mark.parametrize(
    ("source", "lines", "depth"),
    [
        ("def f():\n    '''Only this.'''", 0, 0),
        ("def f():\n    '''Doc.'''\n    return (\n        1\n    )", 3, 0),
        ("def f():\n    if a:\n        pass\n    elif b:\n        pass\n    elif c:\n        pass", 6, 1),
        ("def f():\n  for a in b:\n    if a:\n      with c:\n        while d:\n          pass", 5, 4),
        (
            "def f():\n    try:\n        pass\n    except E:\n        if a:\n            pass\n    else:\n        pass",
            7,
            2,
        ),
        ("def f():\n    match a:\n        case 1:\n            if b:\n                pass", 4, 2),
    ],
)
def test_the_measures_see_what_they_measure(source: str, lines: int, depth: int):
    (body,) = bodies(Path("planted.py"), textwrap.dedent(source))
    assert (body.lines, body.depth) == (lines, depth)
