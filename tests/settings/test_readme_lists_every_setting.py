from pathlib import Path

from controlplane.settings import markdown_table

README = Path(__file__).parents[2] / "README.md"


def test_the_readme_holds_the_table_that_the_code_prints():
    assert markdown_table() in README.read_text(encoding="utf-8"), "replace it with: python -m controlplane.settings"
