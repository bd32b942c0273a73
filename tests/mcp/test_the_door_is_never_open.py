import re
import subprocess
import sys

import httpx
import pytest

from controlplane.cli.faults import WrongUsage
from controlplane.cli.mcp.door import door
from controlplane.domain import keys
from tests.cli.processes import run
from tests.mcp.clients import RIGHT, TOKEN

_, KEY, _ = keys.mint(bytes(keys.ENTROPY_BYTES))
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def knock(address: str, **headers: str) -> int:
    sent = {**RIGHT, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return httpx.post(address, json=HELLO, headers=sent).status_code


@pytest.mark.parametrize(
    "shown", ["", "Bearer", "Bearer another-token-of-some-length", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x"]
)
def test_who_has_not_the_token_is_refused(tools: str, shown: str):
    assert knock(tools, authorization=shown) == 401


def test_a_page_that_was_made_to_lead_here_is_refused_also_with_the_token(tools: str):
    assert knock(tools, host="evil.example") == 421
    assert knock(tools, host="evil.example:8070") == 421
    assert knock(tools, origin="https://evil.example") == 403
    assert knock(tools, origin="http://localhost:1") == 403


def test_too_much_is_refused(tools: str):
    body = b'"' + b"x" * (1024 * 1024) + b'"'
    sent = {**RIGHT, "content-type": "application/json"}
    assert httpx.post(tools, content=body, headers=sent).status_code == 413


@pytest.mark.parametrize(
    ("host", "token", "has_key", "said"),
    [
        ("127.0.0.1", "", True, "acts with your API key: set HOLDSHORT_MCP_TOKEN"),
        ("0.0.0.0", "", False, "reached from elsewhere"),
        ("::", "", False, "reached from elsewhere"),
        ("desk.example", "", False, "reached from elsewhere"),
        ("127.0.0.1", "short", False, "16 or more printable"),
        ("0.0.0.0", "with a space in the middle", True, "16 or more printable"),
    ],
)
def test_a_door_that_would_stand_open_is_refused(host: str, token: str, has_key: bool, said: str):
    with pytest.raises(WrongUsage, match=re.escape(said)):
        door(host, (), token, has_key=has_key)


def test_on_this_machine_and_without_a_key_no_token_is_needed():
    assert door("::1", ("desk",), "", has_key=False).names == ("127.0.0.1", "localhost", "[::1]", "desk")
    assert door("0.0.0.0", ("desk",), TOKEN, has_key=True).names == ("0.0.0.0", "desk")


def test_it_does_not_start_open():
    done = run("mcp", "--http", "--port", "0", HOLDSHORT_API_KEY=KEY)
    assert done.returncode == 2
    assert "set HOLDSHORT_MCP_TOKEN" in done.stderr


def test_without_the_protocols_package_it_says_how_to_get_it():
    hidden = "import sys; sys.modules['mcp'] = None; from controlplane.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", hidden, "mcp"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'holdshort-server[mcp]'" in done.stderr
