from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_sdk_has_the_same_licence_text_as_the_server():
    # Apache-2.0 section 4 asks for a copy with every distribution; each wheel is built from its own directory.
    assert (ROOT / "sdk/python/LICENSE").read_text() == (ROOT / "LICENSE").read_text()
