"""A control plane with keys, one for the tests of a file, and what a person does with it."""

import asyncio
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest

from tests.cli.processes import LOOPBACK, running
from tests.keys import Keys, make_keys, sent, serving
from tests.mcp.clients import served
from tests.postgres import Database, Server, clone


class Plane(NamedTuple):
    """A control plane, and a person at it."""

    url: str
    keys: Keys
    database: Database

    def decide(self, approval_id: str, decision: str, **more: Any) -> None:
        """Decide an approval, as a person with a key of scope review."""
        url = f"{self.url}/api/v1/approvals/{approval_id}/decision"
        httpx.post(url, json={"decision": decision, **more}, headers=sent(self.keys.operator)).raise_for_status()

    async def approval_titled(self, title: str) -> str:
        """The id of the pending approval with this title, once there is one."""
        async with asyncio.timeout(30):
            while True:
                pending: list[dict[str, Any]] = self.seen("approvals?status=pending")["approvals"]
                for each in pending:
                    if each["title"] == title:
                        return str(each["approval_id"])
                await asyncio.sleep(0.02)

    def waiting(self) -> list[dict[str, Any]]:
        """The short-lived questions that wait."""
        url, headers = f"{self.url}/api/human-feedback/pending", sent(self.keys.review)
        found: list[dict[str, Any]] = httpx.get(url, headers=headers).raise_for_status().json()["requests"]
        return found

    async def asked(self, unique_id: str) -> dict[str, Any]:
        """A short-lived question, once it waits."""
        (found,) = await self._until(unique_id, there=True)
        return found

    async def withdrawn(self, unique_id: str) -> None:
        """Return once a question waits no more, and see that no answer is taken."""
        await self._until(unique_id, there=False)
        late = self.submit(unique_id, "493201")
        assert (late.status_code, late.json()["error"]) == (410, "request_cancelled")

    async def _until(self, unique_id: str, *, there: bool) -> list[dict[str, Any]]:
        async with asyncio.timeout(30):
            while True:
                found = [each for each in self.waiting() if each["unique_id"] == unique_id]
                if bool(found) is there:
                    return found
                await asyncio.sleep(0.02)

    async def answered(self, unique_id: str, response: str) -> None:
        """Answer a short-lived question, once it waits."""
        await self.asked(unique_id)
        self.submit(unique_id, response).raise_for_status()

    def submit(self, unique_id: str, response: str) -> httpx.Response:
        """Send an answer to a short-lived question."""
        body = {"unique_id": unique_id, "response": response}
        return httpx.post(f"{self.url}/api/human-feedback/submit", json=body, headers=sent(self.keys.review))

    def seen(self, *path: str) -> Any:
        """What the API says."""
        url = "/".join([self.url, "api/v1", *path])
        return httpx.get(url, headers=sent(self.keys.operator)).raise_for_status().json()


@pytest.fixture(scope="module")
def plane(postgres_server: Server, template_database: str) -> Iterator[Plane]:
    with clone(postgres_server, template_database) as database:
        keys = make_keys(database)
        with running("serve", "--port", "0", **serving(database), **LOOPBACK) as server:
            yield Plane(server.wait_until_ready(), keys, database)
            server.terminate()


@pytest.fixture(scope="module")
def tools(plane: Plane) -> Iterator[str]:
    """The address of a `holdshort mcp --http` with the key of scope agent."""
    with served(plane.url, plane.keys.agent) as address:
        yield address
