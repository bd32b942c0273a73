"""A control plane that wants keys, as a process on a loopback port, and what agents and people do there."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx

from controlplane.domain import keys as key_rules
from tests.contract import planes
from tests.contract.planes import PATIENCE_SECONDS
from tests.keys import keep_key, make_keys, sent
from tests.plain import PLAIN
from tests.postgres import Database, run

Value = TypeVar("Value")

SHORTEST_PAUSE_SECONDS = 0.01


class Plane(planes.Plane):
    """One control plane on one database that has keys, always on the same port."""

    def __init__(self, database: Database) -> None:
        # Before it starts: it stands open only where there has never been a key.
        self.keys = make_keys(database)
        self.other_key = run(keep_key(database, "another agent", "agent"))
        self.unknown_key = key_rules.mint(os.urandom(key_rules.ENTROPY_BYTES))[1]
        super().__init__(database)
        self._http = httpx.Client(base_url=self.url, timeout=PATIENCE_SECONDS, trust_env=False, verify=PLAIN)

    def close(self) -> None:
        self._http.close()
        super().close()

    def get(self, path: str, **query: Any) -> Any:
        """What an agent may look at."""
        reply = self._http.get(path, params=query, headers=sent(self.keys.agent))
        assert reply.status_code == 200, reply.text
        return reply.json()

    def call(self, target: str, given: Any) -> str:
        """Let an agent run a function; the execution's id."""
        path = f"/api/v1/execute/async/{target}"
        reply = self._http.post(path, json={"input": given}, headers=sent(self.keys.agent))
        assert reply.status_code == 202, reply.text
        return str(reply.json()["execution_id"])

    def review(self, path: str, body: Any) -> httpx.Response:
        """What a person, or whoever runs the place, says."""
        return self._http.post(path, json=body, headers=sent(self.keys.operator))

    def questions(self) -> list[dict[str, Any]]:
        """The short-lived questions that wait for a person."""
        reply = self._http.get("/api/human-feedback/pending", headers=sent(self.keys.review))
        found: list[dict[str, Any]] = reply.json()["requests"]
        return found

    def webhook(self, body: bytes, headers: dict[str, str]) -> httpx.Response:
        """A webhook of whoever signed it."""
        return self._http.post("/api/v1/webhooks/approval-response", content=body, headers=headers)

    def happened(self, execution_id: str, wanted: set[str]) -> set[str]:
        """The types of what happened to a run, read from the stream until all that are wanted were there."""
        seen: set[str] = set()
        query = {"execution_id": execution_id}
        deadline = time.monotonic() + PATIENCE_SECONDS
        with self._http.stream("GET", "/api/v1/events", params=query, headers=sent(self.keys.agent)) as reply:
            for line in reply.iter_lines():
                if line.startswith("event:"):
                    seen.add(line.removeprefix("event:").strip())
                if wanted <= seen or time.monotonic() > deadline:
                    break
        return seen

    def pass_time_of(self, unique_id: str) -> None:
        """Let the time of a short-lived question be up now rather than in a while."""
        run(self._expire(unique_id))

    async def _expire(self, unique_id: str) -> None:
        connection = await self._database.connect()
        try:
            done = await connection.execute(
                "UPDATE feedback SET expires_at = clock_timestamp() WHERE unique_id = $1", unique_id
            )
            assert done == "UPDATE 1", done
        finally:
            await connection.close()


@contextmanager
def serving(database: Database) -> Iterator[Plane]:
    """A control plane for the length of a block."""
    plane = Plane(database)
    try:
        yield plane
    finally:
        plane.close()


def until(look: Callable[[], Value], holds: Callable[[Value], object]) -> Value:
    """What `look` returns, once it holds; AssertionError with what it returned last after 20 s."""
    begun = time.monotonic()
    while not holds(found := look()):
        waited = time.monotonic() - begun
        assert waited < PATIENCE_SECONDS, found
        # What takes long is looked for less often: a look costs the control plane as much as the wait itself.
        time.sleep(max(SHORTEST_PAUSE_SECONDS, waited / 10))
    return found
