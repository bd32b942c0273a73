"""A base address has one spelling, and what lies under it is told by whole segments, never by letters."""

import pytest

from controlplane.domain.addresses import base_address, moved_url
from controlplane.domain.errors import FieldFault
from tests.addresses import ELSEWHERE, UNDER

PLAIN = [
    ("http://agent:8001", "http://agent:8001"),
    ("http://agent:8001/", "http://agent:8001"),
    ("http://agent:8001///", "http://agent:8001"),
    ("HTTP://Agent.Local:80/", "http://agent.local"),
    ("https://agent:443/Base/", "https://agent/Base"),
    ("https://agent:80", "https://agent:80"),
    ("http://agent:0080", "http://agent"),
    ("http://agent:", "http://agent"),
    ("http://[::1]:80/a", "http://[::1]/a"),
    ("http://[::1]:8001", "http://[::1]:8001"),
]
REFUSED = [
    "",
    "x",
    "//a/b",
    "ftp://a/",
    "http://",
    "http:///a",
    "http://u:p@a/",
    "http://u@a/",
    "http://a/?x=1",
    "http://a/?",
    "http://a/#f",
    "http://a/#",
    "http://a:0/",
    "http://a:99999/",
    "http://a b/",
    "http://a/\n",
    "http://a\\b/",
    "http://a/" + "x" * 2048,
]
HOME = "https://new:9000/agent"


@pytest.mark.parametrize(("given", "plain"), PLAIN)
def test_a_base_address_has_one_spelling(given: str, plain: str):
    assert base_address("base_url", given) == plain
    assert base_address("base_url", plain) == plain


@pytest.mark.parametrize("given", REFUSED)
def test_what_can_be_no_base_address_is_refused(given: str):
    with pytest.raises(FieldFault) as refused:
        base_address("base_url", given)
    assert refused.value.field == "base_url"


@pytest.mark.parametrize(("base", "url", "rest"), UNDER)
def test_what_lies_under_an_address_moves_with_it(base: str, url: str, rest: str):
    assert moved_url(url, base, HOME) == HOME + rest
    assert moved_url(url, base, HOME + "/") == HOME + rest


@pytest.mark.parametrize(("base", "url"), ELSEWHERE)
def test_what_only_looks_alike_stays(base: str, url: str):
    assert moved_url(url, base, HOME) is None
