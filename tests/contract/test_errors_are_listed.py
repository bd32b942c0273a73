from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.domain import door_errors, errors
from controlplane.domain.errors import HoldshortError
from controlplane.edge.errors import STATUS, markdown_table, problem

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"


def leaves(kind: type[HoldshortError]) -> Iterator[type[HoldshortError]]:
    below = [each for each in kind.__subclasses__() if each.__module__ in {errors.__name__, door_errors.__name__}]
    if not below:
        yield kind
    for each in below:
        yield from leaves(each)


LEAVES = list(leaves(HoldshortError))


def test_the_page_holds_the_table_that_the_code_gives():
    assert PAGE.read_text(encoding="utf-8").endswith(f"\n{markdown_table()}\n")


def test_every_error_has_a_status_and_a_code_of_its_own():
    assert {*STATUS} == {*LEAVES}
    codes = [kind.code for kind in LEAVES]
    assert len(set(codes)) == len(codes)
    assert "error" not in codes


@pytest.mark.parametrize("kind", LEAVES, ids=lambda kind: kind.code)
def test_every_error_says_what_is_wrong_and_what_to_do(kind: type[HoldshortError]):
    when, separator, remedy = " ".join((kind.__doc__ or "").split()).partition("; ")
    assert when
    assert separator
    assert remedy.endswith(".")
    fault = kind("id", "must be") if kind is errors.FieldFault else kind()  # type: ignore[call-arg]
    status, _, body = problem(fault)
    assert status == STATUS[kind]
    assert kind.code.encode() in body
