"""The journal of agent processes: one file for all, each line whole and on the disk before the work goes on."""

import json
import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple


class Journal:
    """Where a process writes what it does; lines of several processes stand in the order in which it happened."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, at: str, **line: Any) -> None:
        os.write(self._file, json.dumps({"at": at, "pid": os.getpid(), **line}).encode() + b"\n")
        os.fsync(self._file)


class Reader:
    """Reads a journal while it grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self.lines: list[dict[str, Any]] = []

    def look(self) -> list[dict[str, Any]]:
        """Every line so far."""
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._read)
                whole = file.read().rpartition(b"\n")[0]
            self._read += len(whole) + 1 if whole else 0
            self.lines += [json.loads(line) for line in whole.splitlines()]
        return self.lines


class Deed(NamedTuple):
    """One time that a step's function was called: by whom, from which line to which, and what it returned.

    `ended` and `token` are None where it never returned.
    """

    run: str
    step: str
    pid: int
    fence: int
    begun: int
    ended: int | None
    token: str | None


def deeds(lines: Iterable[Mapping[str, Any]]) -> list[Deed]:
    """What was done, in the order in which it was begun."""
    found: dict[str, Deed] = {}
    for number, line in enumerate(lines):
        if line["at"] == "begin":
            known = (line["run"], line["step"], line["pid"], line["fence"])
            found[line["deed"]] = Deed(*known, number, None, None)
        elif line["at"] == "end":
            found[line["deed"]] = found[line["deed"]]._replace(ended=number, token=line["token"])
    return list(found.values())


def working(lines: Iterable[Mapping[str, Any]], pids: Collection[int]) -> set[str]:
    """The runs that one of these processes is in a step of."""
    return {deed.run for deed in deeds(lines) if deed.ended is None and deed.pid in pids}


def taken(lines: Iterable[Mapping[str, Any]]) -> set[tuple[str, int]]:
    """The runs that a process answered for that it has them, each with its fence."""
    return {(line["run"], line["fence"]) for line in lines if line["at"] == "taken"}


class Tally(NamedTuple):
    """How often steps were run, and what went wrong with it.

    `in_flight` were not finished when their process ended, `unsaved` were, and their result was not yet stored.
    """

    steps: int
    runs_of_steps: int
    in_flight: int
    unsaved: int
    wrong: list[str]


def tally(lines: list[dict[str, Any]], stored: Collection[str], ended: Collection[int]) -> Tally:
    """Compare a journal with what is stored.

    Args:
        lines: of the journal.
        stored: what the steps in the database returned, each a token of its own.
        ended: the processes that were killed or stopped: only what they were at may have been done in vain.
    """
    all_deeds = deeds(lines)
    done = [deed for deed in all_deeds if deed.token in stored]
    vain = [deed for deed in all_deeds if deed.token not in stored]
    wrong = [f"done nowhere: {token}" for token in set(stored) - {deed.token for deed in done}]
    last: dict[tuple[str, int], int] = {(deed.run, deed.pid): deed.begun for deed in all_deeds}
    wrong += [
        f"done again though nothing ended it: {deed}"
        for deed in vain
        if deed.pid not in ended or last[deed.run, deed.pid] != deed.begun
    ]
    return Tally(
        len(stored),
        len(all_deeds),
        sum(deed.ended is None for deed in vain),
        sum(deed.ended is not None for deed in vain),
        [*wrong, *_at_once(all_deeds), *_shared_fences(lines)],
    )


def _at_once(all_deeds: list[Deed]) -> list[str]:
    """Where two processes worked on one run at a time, or an earlier one worked on after a later one had begun."""
    wrong: list[str] = []
    before: dict[str, Deed] = {}
    for deed in all_deeds:
        earlier = before.get(deed.run)
        if earlier is not None and earlier.fence > deed.fence:
            wrong.append(f"worked on under an earlier fence: {deed} after {earlier}")
        if earlier is not None and earlier.ended is not None and earlier.ended > deed.begun:
            wrong.append(f"two at once: {earlier} and {deed}")
        before[deed.run] = deed
    return wrong


def _shared_fences(lines: list[dict[str, Any]]) -> list[str]:
    """Fences under which more than one process was given a run, or worked on it."""
    under: dict[tuple[str, int], set[int]] = {}
    for line in lines:
        if line["at"] in {"given", "begin"}:
            under.setdefault((line["run"], line["fence"]), set()).add(line["pid"])
    return [f"two processes under one fence: {key} {pids}" for key, pids in under.items() if len(pids) > 1]
