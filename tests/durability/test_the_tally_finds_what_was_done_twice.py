"""The count of steps in the agents' journal is right, and names what no kill explains."""

from pathlib import Path
from typing import Any

import pytest

from tests.durability.journal import Journal, Reader, tally, working

OLD, NEW = 1, 2
Line = dict[str, Any]


def given(pid: int, fence: int) -> Line:
    return {"at": "given", "pid": pid, "run": "a", "fence": fence}


def begin(pid: int, fence: int, token: str) -> Line:
    return {"at": "begin", "pid": pid, "run": "a", "fence": fence, "step": "work", "deed": token}


def end(pid: int, token: str) -> Line:
    return {"at": "end", "pid": pid, "deed": token, "token": token}


FINE = {
    "once": [given(OLD, 1), begin(OLD, 1, "x"), end(OLD, "x")],
    "cut off": [given(OLD, 1), begin(OLD, 1, "v"), given(NEW, 2), begin(NEW, 2, "x"), end(NEW, "x")],
    "not stored": [given(OLD, 1), begin(OLD, 1, "v"), end(OLD, "v"), given(NEW, 2), begin(NEW, 2, "x"), end(NEW, "x")],
    "of a stopped one and its successor": [
        given(OLD, 1),
        begin(OLD, 1, "x"),
        end(OLD, "x"),
        given(NEW, 2),
        begin(NEW, 2, "y"),
        end(NEW, "y"),
    ],
}
WRONG: dict[str, tuple[str, list[Line]]] = {
    "twice by one that was there": (
        "done again",
        [begin(NEW, 1, "v"), end(NEW, "v"), begin(NEW, 1, "x"), end(NEW, "x")],
    ),
    "in vain by one that went on and was killed later": (
        "done again",
        [begin(OLD, 1, "v"), end(OLD, "v"), begin(OLD, 1, "x"), end(OLD, "x")],
    ),
    "two at once": (
        "two at once",
        [begin(OLD, 1, "v"), begin(NEW, 2, "x"), end(OLD, "v"), end(NEW, "x")],
    ),
    "an earlier one after a later one": (
        "worked on under an earlier fence",
        [begin(NEW, 2, "x"), end(NEW, "x"), begin(OLD, 1, "v")],
    ),
    "given to two under one fence": (
        "two processes",
        [given(OLD, 1), given(NEW, 1), begin(NEW, 1, "x"), end(NEW, "x")],
    ),
    "begun by two under one fence": ("two processes", [begin(OLD, 1, "v"), begin(NEW, 1, "x"), end(NEW, "x")]),
    "stored and done by nobody": ("done nowhere", [given(NEW, 1)]),
}


@pytest.mark.parametrize("lines", FINE.values(), ids=FINE)
def test_what_a_kill_explains_is_counted(lines: list[Line]):
    stored = [line["token"] for line in lines if line["at"] == "end" and line["token"] in "xy"]
    counted = tally(lines, stored, {OLD})
    assert counted.wrong == []
    assert counted.steps == len(stored)
    assert counted.runs_of_steps == counted.steps + counted.in_flight + counted.unsaved


@pytest.mark.parametrize(("found", "lines"), WRONG.values(), ids=WRONG)
def test_what_no_kill_explains_is_named(found: str, lines: list[Line]):
    assert any(each.startswith(found) for each in tally(lines, ["x"], {OLD}).wrong)


def test_a_journal_is_read_while_it_grows(tmp_path: Path):
    reader = Reader(tmp_path / "journal")
    assert reader.look() == []
    journal = Journal(str(tmp_path / "journal"))
    journal.write("begin", deed="v", run="a", fence=1, step="work")
    pid = reader.look()[0]["pid"]
    assert working(reader.lines, {pid}) == {"a"}
    with (tmp_path / "journal").open("ab") as half:
        half.write(b'{"at": "end", "deed": "v"')
    assert len(reader.look()) == 1
    with (tmp_path / "journal").open("ab") as half:
        half.write(b', "token": "x"}\n')
    assert working(reader.look(), {pid}) == set()
