import httpx
import pytest

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
    ("arguments", "environ", "said"),
    [
        ((), {"HOLDSHORT_API_KEY": KEY}, "acts with your API key: set HOLDSHORT_MCP_TOKEN"),
        (("--host", "0.0.0.0"), {}, "is reached from elsewhere (0.0.0.0): set HOLDSHORT_MCP_TOKEN"),
        ((), {"HOLDSHORT_MCP_TOKEN": "short"}, "must be 16 or more printable"),
        (("--node", "a/b"), {}, "--node must be 1-128 characters"),
    ],
)
def test_it_does_not_start_open(arguments: tuple[str, ...], environ: dict[str, str], said: str):
    done = run("mcp", "--http", "--port", "0", *arguments, **environ)
    assert done.returncode == 2
    assert said in done.stderr
