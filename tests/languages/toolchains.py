"""Where Node, Go and staticcheck are: on PATH when they are new enough, else where `make languages` puts them."""

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / ".cache" / "tools" / "bin"
NEEDED = {"node": (20,), "go": (1, 22)}
ASKED = {"node": ("--version",), "go": ("version",)}
# What a user may have set that changes how programs run.
ALTERS = {"NODE_OPTIONS", "NODE_V8_COVERAGE", "GOFLAGS", "GOCOVERDIR"}
NUMBERS = re.compile(r"(?:v|go)(\d+(?:\.\d+)*)")
ASK_SECONDS = 30.0


@cache
def found(name: str) -> Path | None:
    """The first such program that is new enough; None where there is none."""
    places = [*os.environ["PATH"].split(os.pathsep), str(TOOLS)]
    candidates = (shutil.which(name, path=place) for place in places)
    return next((Path(each) for each in candidates if each and new_enough(name, each)), None)


def new_enough(name: str, program: str) -> bool:
    """Whether it runs, and says a version that will do; a program without a rule will do as it is."""
    if name not in NEEDED:
        return True
    try:
        said = subprocess.run([program, *ASKED[name]], capture_output=True, text=True, timeout=ASK_SECONDS, check=False)
    except OSError:
        return False
    version = NUMBERS.search(said.stdout)
    return version is not None and tuple(map(int, version[1].split("."))) >= NEEDED[name]


def environ() -> dict[str, str]:
    """The environment of what is run with them: they are first on PATH, and no other control plane is named."""
    places = [str(program.parent) for program in map(found, NEEDED) if program is not None]
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("HOLDSHORT_") and name not in ALTERS
    }
    path = os.pathsep.join([*places, os.environ["PATH"], str(TOOLS)])
    # Which commit it is need not stand in what is built, and git refuses to say that to another than its owner.
    return {**kept, "PATH": path, "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"}
