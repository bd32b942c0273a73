"""Origins of a setting are those that a browser could send; whatever else is written there is refused."""

import pytest

from controlplane.domain import origins

GOOD = ["https://desk.example", "http://localhost:5173", "http://127.0.0.1:8080", "https://[::1]:8443"]
WRONG = [
    "*",
    "null",
    "",
    "desk.example",
    "https://",
    "https://desk.example/",
    "https://desk.example/path",
    "https://Desk.example",
    "HTTPS://desk.example",
    "https://desk.example:443",
    "http://desk.example:80",
    "https://*.example",
    "https://user@desk.example",
    "https://desk.example:0",
    "ftp://desk.example",
    "https://desk.example?x",
    "https://desk.example#x",
    "https://a b",
]


@pytest.mark.parametrize("origin", GOOD)
def test_an_origin_is_taken_as_it_is(origin: str):
    assert origins.parse(f" {origin} ,{origin}") == (origin,)


@pytest.mark.parametrize("origin", WRONG)
def test_what_no_browser_sends_is_refused(origin: str):
    for text in (origin, f"https://desk.example,{origin}"):
        with pytest.raises(ValueError, match="must be origins"):
            origins.parse(text)
