"""What the tests of bad input share: one application for a whole file, and what a refusal says of fields."""

import httpx

from tests.app import Api, problem


def faults(reply: httpx.Response) -> list[dict[str, str]]:
    """What a problem document says of fields; it never speaks of types as the decoder does."""
    problem(reply)
    found: list[dict[str, str]] = reply.json().get("errors", [])
    assert all(set(each) == {"field", "rule"} for each in found)
    assert "`" not in "".join(each["rule"] for each in found).replace("`executions`", "")
    return found


async def send(api: Api, path: str, raw: bytes, **headers: str) -> httpx.Response:
    headers = headers or {"Content-Type": "application/json"}
    return await api.client.post(f"/api/v1{path}", content=raw, headers=headers)
