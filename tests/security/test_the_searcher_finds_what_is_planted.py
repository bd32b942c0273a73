"""A canary is found in whatever form it stands, wherever it stands; else a search that finds nothing says nothing."""

import base64
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest

from tests.figures import Figures
from tests.security.canaries import Aviary

TEXT = 'p@ss/w?rd "é" 0123456789abcdefXYZ'
FORMS: dict[str, Callable[[str], bytes]] = {
    "raw": str.encode,
    "hex": lambda text: text.encode().hex().encode(),
    "HEX": lambda text: text.encode().hex().upper().encode(),
    "url": lambda text: quote(text).encode(),
    "url_of_everything": lambda text: quote(text, safe="").encode(),
    "json": lambda text: json.dumps({"a": text}).encode(),
    "json_in_json": lambda text: json.dumps(json.dumps({"a": text})).encode(),
    "repr": lambda text: repr([text]).encode(),
    "repr_of_bytes": lambda text: repr(text.encode()).encode(),
    "utf16": lambda text: text.encode("utf-16-le"),
    "reversed": lambda text: text.encode()[::-1],
    "base64": lambda text: base64.b64encode(text.encode()),
    "base64_behind_one_byte": lambda text: base64.b64encode(b":" + text.encode() + b"tail"),
    "base64_behind_two_bytes": lambda text: base64.urlsafe_b64encode(b"u:" + text.encode() + b"tail"),
    "basic": lambda text: b"Basic " + base64.b64encode(b"user:" + text.encode()),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("text", [TEXT, "hs_0123456789ab_abcdefghjkmnpqrstvwxyz01234567"], ids=["odd", "key"])
def test_each_form_is_found(form: str, text: str):
    aviary = Aviary()
    aviary.plant("mine", text)
    aviary.plant("other")
    around = b"x" * 1000 + FORMS[form](text) + b"y" * 1000
    found = aviary.search("there", around)
    assert {one.canary for one in found} == {"mine"}
    assert {one.place for one in found} == {"there"}
    assert aviary.search("there", around, allowed=["mine"]) == []


def test_a_part_of_a_key_is_found_without_its_name():
    aviary = Aviary()
    aviary.plant("key", "hs_0123456789ab_abcdefghjkmnpqrstvwxyz01234567")
    assert aviary.search("there", "hs_0123456789ab_***") == []
    assert aviary.search("there", "secret=abcdefghjkmnpqrstvwxyz01234567")


def test_what_was_searched_is_counted(figures: Figures):
    aviary = Aviary()
    aviary.plant("one")
    assert aviary.search("a", b"12345") == aviary.search("b", "67") == []
    assert (aviary.count, aviary.places, aviary.bytes) == (1, 2, 7)
    figures("searcher", forms_proved=len(FORMS))


def test_a_text_that_would_be_found_by_chance_is_refused():
    with pytest.raises(AssertionError):
        Aviary().plant("short", "abc")
