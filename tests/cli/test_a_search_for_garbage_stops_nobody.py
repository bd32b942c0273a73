"""What a serving process has loaded is not searched for garbage, and what it makes afterwards is."""

import json
import os
import subprocess
import sys

from tests.postgres import Database

PROGRAM = """
import gc, json, sys
from controlplane.cli import main
from controlplane.cli.serving import application

def told(app, server, **options):
    alive = len(gc.get_objects())
    print(json.dumps({"enabled": gc.isenabled(), "searched": alive, "kept": gc.get_freeze_count()}))
    sys.exit(0)

application.serve = told
sys.argv = ["holdshort", "dev", "--port", "0"]
main()
"""


def test_a_serving_process_searches_only_what_it_made_since_its_start(database: Database):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PATH": os.environ["PATH"], "HOLDSHORT_DATABASE_URL": database.url},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["enabled"], "nothing would ever be searched"
    assert found["kept"] > 100_000
    assert found["searched"] < found["kept"] / 20
