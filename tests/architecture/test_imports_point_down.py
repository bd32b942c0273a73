import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT

# For each contract one import that it must refuse: in which file, and what.
PLANTED = [
    ("Rooms point down only", "controlplane/services/planted.py", "import controlplane.workers"),
    ("Rooms point down only", "controlplane/http/planted.py", "import controlplane.workers"),
    ("Rooms point down only", "controlplane/domain/planted.py", "import controlplane.settings"),
    ("SQL lives in storage", "controlplane/services/planted.py", "import sqlalchemy"),
    ("Sockets to others live in delivery", "controlplane/services/planted.py", "import httpx"),
    ("Litestar lives at the edge", "controlplane/services/planted.py", "import litestar"),
    ("The domain is pure", "controlplane/domain/planted.py", "import asyncio"),
    ("Server and SDK do not know each other", "controlplane/http/planted.py", "import holdshort"),
    ("Server and SDK do not know each other", "sdk/python/src/holdshort/planted.py", "import controlplane"),
]


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    search = f"{root}:{root / 'sdk/python/src'}"
    return subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=root,
        env={"PYTHONPATH": search, "PATH": "/usr/bin:/bin", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The packages and the contracts, to plant something in."""
    for folder in ("controlplane", "sdk/python/src"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_every_contract_is_kept():
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("contract", "file", "planted"), PLANTED)
def test_a_planted_import_breaks_its_contract(copy: Path, contract: str, file: str, planted: str):
    (copy / file).write_text(f"{planted}\n")
    done = lint(copy)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{contract} BROKEN" in " ".join(done.stdout.split())
