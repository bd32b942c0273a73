from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("distribution", ["python", "typescript", "go"])
def test_each_sdk_has_the_same_licence_text_as_the_server(distribution: str):
    # Apache-2.0 section 4 asks for a copy with every distribution; each is built from its own directory.
    assert (ROOT / "sdk" / distribution / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
