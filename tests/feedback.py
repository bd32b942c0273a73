"""Short-lived questions as tests ask them: with keys of their own, over whichever server."""

import base64
import os
from typing import Any

import httpx

from controlplane.domain.sealing import Opener, Sealed

SUBMIT = "/api/human-feedback/submit"
PENDING = "/api/human-feedback/pending"
EVENTS = "/api/human-feedback/events"


class Asker:
    """Whoever asks: keys for its questions, and what it sends."""

    def __init__(self) -> None:
        self._opener = Opener(os.urandom(32))

    @property
    def public_key(self) -> str:
        """As it is sent."""
        return base64.b64encode(self._opener.public_key).decode()

    def body(self, unique_id: str = "f-1", **fields: Any) -> dict[str, Any]:
        """A question as it is asked."""
        return {"unique_id": unique_id, "message_for_user": "Which code?", "public_key": self.public_key} | fields

    async def ask(self, client: httpx.AsyncClient, unique_id: str = "f-1", **fields: Any) -> dict[str, Any]:
        """Ask, which must succeed."""
        reply = await client.post("/api/v1/human-feedback", json=self.body(unique_id, **fields))
        assert reply.status_code == 201, reply.text
        return dict(reply.json())

    def open(self, reply: httpx.Response, unique_id: str = "f-1") -> str:
        """What a person said, from the answer of the call that waited."""
        assert reply.status_code == 200, reply.text
        assert reply.json()["outcome"] == "answered", reply.text
        sealed = {name: base64.b64decode(text) for name, text in reply.json()["sealed"].items()}
        return self._opener.open(Sealed(**sealed), unique_id)


async def submit(client: httpx.AsyncClient, response: object, unique_id: str = "f-1", **fields: Any) -> httpx.Response:
    """Answer as a person."""
    return await client.post(SUBMIT, json={"unique_id": unique_id, "response": response} | fields)


async def answer(client: httpx.AsyncClient, unique_id: str = "f-1", wait: float = 0) -> httpx.Response:
    """Fetch an answer as whoever asked."""
    return await client.get(f"/api/v1/human-feedback/{unique_id}/answer", params={"wait": wait})
