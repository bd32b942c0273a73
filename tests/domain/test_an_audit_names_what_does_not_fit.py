"""Rows that do not fit their seals, and seals that do not fit the heads: each is found, once, by its place."""

from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

from controlplane.domain.audit import Checker, Fault, Finding, Head, HeadsChecker, head_line, read_head
from controlplane.domain.seals import COLUMNS, Place, Seal, seal

AT = "2026-02-01T00:00:01.500000Z"
Row = tuple[str, ...]
Part = tuple[list[Row], Seal]


def row(number: int, **changes: str) -> Row:
    told = dict.fromkeys(COLUMNS, "x") | {"seq": str(number), "xid": str(100 + number)} | changes
    return tuple(told[name] for name in COLUMNS)


def parts(count: int = 4, rows: int = 3) -> list[Part]:
    """So many seals, each with its rows."""
    made: list[Part] = []
    for first in range(1, count * rows + 1, rows):
        covered = [row(number) for number in range(first, first + rows)]
        made.append((covered, seal(made[-1][1] if made else None, covered, AT)))
    return made


def check(given: Sequence[Part]) -> list[Finding]:
    checker, found = Checker(), []
    for rows, sealed in given:
        for each in rows:
            checker.row(each)
        found += checker.seal(sealed)
    return found


def faults(given: Sequence[Part]) -> list[tuple[Fault, int | None]]:
    return [(finding.fault, finding.seal) for finding in check(given)]


def tampered(change: Callable[[list[Row]], None], number: int = 2) -> list[Part]:
    made = parts()
    change(made[number - 1][0])
    return made


def test_what_was_sealed_fits():
    assert check(parts()) == []
    assert check([]) == []


@pytest.mark.parametrize("column", COLUMNS[2:])
def test_a_changed_column_is_found_in_its_seal_alone(column: str):
    def change(rows: list[Row]) -> None:
        rows[1] = row(5, **{column: "y"})

    (finding,) = check(tampered(change))
    assert (finding.fault, finding.seal, finding.first_seq, finding.last_seq) == (Fault.CHANGED, 2, 4, 6)


def test_two_swapped_rows_are_found():
    def change(rows: list[Row]) -> None:
        rows[0], rows[1] = row(4, type="5"), row(5, type="4")

    assert faults(tampered(change)) == [(Fault.CHANGED, 2)]


def test_rows_that_are_gone_are_counted():
    (finding,) = check(tampered(lambda rows: rows.clear()))
    assert (finding.fault, finding.what, finding.first_seq, finding.last_seq) == (
        Fault.REMOVED,
        "3 rows of 3 removed",
        4,
        6,
    )
    assert [each.what for each in check(tampered(lambda rows: rows.remove(row(5))))] == ["1 row of 3 removed"]


def test_a_row_too_many_is_found_with_its_number():
    (finding,) = check(tampered(lambda rows: rows.insert(0, row(99, xid="103"))))
    assert (finding.fault, finding.what, finding.last_seq) == (Fault.INSERTED, "1 row inserted among 3", 99)


CHANGED_SEALS = [{"at": "2026"}, {"sha256": bytes(32)}, {"first": Place(1, 1)}, {"last": Place(9, 9)}]


@pytest.mark.parametrize("change", CHANGED_SEALS)
def test_a_changed_seal_is_found(change: dict[str, object]):
    made = parts()
    made[1] = (made[1][0], replace(made[1][1], **change))
    assert (Fault.CHANGED, 2) in faults(made)


def test_seals_that_are_gone_are_found_at_the_beginning_and_in_the_middle():
    first, _, third, fourth = parts()
    assert faults([third, fourth]) == [(Fault.SEALS_MISSING, 3)]
    assert faults([first, fourth]) == [(Fault.SEALS_MISSING, 4)]
    assert faults([first, third, fourth]) == [(Fault.SEALS_MISSING, 3)]
    assert [each.what.partition(":")[0] for each in check([first, fourth])] == ["seals 2 to 3 missing"]


def compare(heads: Sequence[Seal], stored: Sequence[Seal]) -> list[Finding]:
    checker = HeadsChecker()
    read = [read_head(head_line(each)) for each in heads]
    checker.compare([head for head in read if head], {each.number: each for each in stored}, len(stored))
    assert checker.heads == len(heads)
    return checker.findings(stored[-1] if stored else None)


def test_heads_that_agree_say_nothing():
    seals = [sealed for _, sealed in parts()]
    assert compare(seals, seals) == []
    assert compare(seals[::-1] + seals[:1], seals) == []
    assert compare([], []) == []


def test_an_end_that_was_cut_off_is_found_by_the_heads_alone():
    made = parts()
    seals = [sealed for _, sealed in made]
    assert check(made[:2]) == []
    (finding,) = compare(seals, seals[:2])
    assert (finding.fault, finding.seal, finding.first_seq, finding.last_seq) == (Fault.CUT_OFF, 3, 7, 12)
    (finding,) = compare(seals, [])
    assert (finding.fault, finding.seal, finding.first_seq, finding.last_seq) == (Fault.CUT_OFF, 1, 1, 12)


def test_a_history_that_was_sealed_anew_is_found_by_the_heads_alone():
    seals = [sealed for _, sealed in parts()]
    anew: list[Part] = parts(2)
    for number in (7, 10):
        rows = [row(each, type="y") for each in range(number, number + 3)]
        anew.append((rows, seal(anew[-1][1], rows, AT)))
    assert check(anew) == []
    (finding,) = compare(seals, [sealed for _, sealed in anew])
    assert (finding.fault, finding.seal, finding.first_seq, finding.last_seq) == (Fault.REWRITTEN, 3, 7, 12)
    assert "after seal 2" in finding.what


@pytest.mark.parametrize("line", [b"", b"\n", b"{}\n", b'{"number": 1, "sha25\n', b"[1]\n", b"\xff\n", b"null\n"])
def test_a_line_that_is_no_head_is_none(line: bytes):
    assert read_head(line) is None


def test_a_head_is_one_line_of_json():
    (_, sealed) = parts(1)[0]
    line = head_line(sealed)
    assert (line.count(b"\n"), line[-1:]) == (1, b"\n")
    assert read_head(line) == Head(number=1, sha256=sealed.sha256.hex(), last_seq=3, at=AT)
