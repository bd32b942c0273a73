import re
from pathlib import Path

import pytest

from controlplane.inbox.static_files import FILES
from tests.architecture.sources import ROOT

STATIC = ROOT / "controlplane" / "inbox" / "static"
SCRIPTS = sorted(STATIC.glob("*.js"))
WORDS = (ROOT / "controlplane" / "inbox" / "templates" / "_live.html").read_text("utf-8")
LONGEST_FILE = 400
LONGEST_BODY = 40
# What could read text as markup or code, keep or send what was typed, or load something from elsewhere.
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|console\.|sessionStorage|indexedDB"
    r"|document\.cookie|history\.(push|replace)State|sendBeacon|XMLHttpRequest|WebSocket|import\(|https?:|\bdata:"
)
FUNCTION = re.compile(r"^(?:export )?(?:async )?function .*?^}", re.MULTILINE | re.DOTALL)
# A choice of the person's own is all that is kept.
KEPT = re.compile(r"localStorage\.setItem\(([^)]*)\)")


def bodies(text: str) -> list[int]:
    """The lines of each function that begins at the left."""
    return [len(body.splitlines()) - 2 for body in FUNCTION.findall(text)]


@pytest.mark.parametrize("path", [*SCRIPTS, STATIC / "inbox.css"], ids=lambda path: path.name)
def test_no_file_is_long(path: Path):
    assert len(path.read_text("utf-8").splitlines()) <= LONGEST_FILE


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_module_keeps_to_what_it_may_do(path: Path):
    text = path.read_text("utf-8")
    assert FORBIDDEN.findall(text) == []
    assert all(found <= LONGEST_BODY for found in bodies(text))
    for loaded in re.findall(r'from "([^"]+)"', text):
        assert loaded.removeprefix("./") in FILES


def test_only_the_choice_of_keys_is_kept():
    kept = [found for path in SCRIPTS for found in KEPT.findall(path.read_text("utf-8"))]
    assert kept == ['KEPT, on ? "on" : "off"']


def test_every_word_that_is_said_stands_in_the_template_and_none_for_nothing():
    script = "".join(path.read_text("utf-8") for path in SCRIPTS)
    written = set(re.findall(r'data-word="([^"]+)"', WORDS))
    said = set(re.findall(r'\bsay\("([a-z-]+)"', script))
    families = (*re.findall(r"\bsay\(`([a-z-]+-)\$", script), *re.findall(r'counted\("([a-z]+)"', script))
    assert said - written == set()
    assert [word for word in written if f'"{word}"' not in script and not word.startswith(families)] == []


@pytest.mark.parametrize(
    "planted", ["box.innerHTML = text", "eval(text)", 'fetch("https://elsewhere.example")', "console.log(field.value)"]
)
def test_a_planted_fault_is_found(planted: str):
    assert FORBIDDEN.search(planted)
