"""Whoever starts runs and answers their questions: dispatching, looking, and webhooks signed in every way there is."""

import hashlib
import hmac
import itertools
import json
import time
from typing import Any

import httpx

from tests.durability.plane import API, SENDERS, until

HEADERS = ("X-Webhook-Signature", "X-Hub-Signature-256", "X-Hax-Signature")
FORMS = ("bare", "prefixed", "stamped")
SHAPES = ("flat", "envelope")
FINAL = {"succeeded", "failed", "cancelled", "timeout"}
WAYS = tuple(itertools.product(HEADERS, FORMS, SHAPES))
SECRET = SENDERS["desk"]


class Desk:
    """One caller of a control plane."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client

    async def execute(self, target: str, /, **argument: Any) -> dict[str, Any]:
        """Run a function and wait for what comes of it."""
        reply = await self.client.post(f"{API}/execute/{target}", json={"input": argument})
        assert reply.status_code in (200, 202), reply.text
        return dict(reply.json())

    async def start(self, target: str, /, **argument: Any) -> str:
        """Start a run and do not wait; its id."""
        reply = await self.client.post(f"{API}/execute/async/{target}", json={"input": argument})
        assert reply.status_code == 202, reply.text
        return str(reply.json()["execution_id"])

    async def look(self, execution_id: str) -> dict[str, Any]:
        reply = await self.client.get(f"{API}/executions/{execution_id}")
        assert reply.status_code == 200, reply.text
        return dict(reply.json())

    async def until_waiting(self, execution_id: str, request_id: str | None = None) -> dict[str, Any]:
        """Wait until a run waits (for that request); its state then."""

        async def waits() -> bool:
            run = await self.look(execution_id)
            assert run["status"] not in FINAL, run
            asked = run["approval_request_id"] if run["approval_status"] == "pending" else None
            return run["status"] == "waiting" and request_id in (None, asked)

        await until(waits)
        return await self.look(execution_id)

    async def asked(self, request_id: str) -> list[dict[str, Any]]:
        """Every approval that was asked for under an id."""
        reply = await self.client.get(f"{API}/approvals", params={"approval_request_id": request_id})
        assert reply.status_code == 200, reply.text
        return list(reply.json()["approvals"])

    async def until_asked(self, request_id: str) -> dict[str, Any]:
        """Wait until a question is pending under an id, whichever run asks it; the approval."""

        async def pending() -> bool:
            return any(each["status"] == "pending" for each in await self.asked(request_id))

        await until(pending)
        return next(each for each in await self.asked(request_id) if each["status"] == "pending")

    async def until_over(self, execution_id: str, *, seconds: float = 30.0) -> dict[str, Any]:
        """Wait until a run is over; its state then."""

        async def over() -> bool:
            return (await self.look(execution_id))["status"] in FINAL

        await until(over, seconds=seconds)
        return await self.look(execution_id)

    async def until_reported(self, execution_id: str) -> dict[str, Any]:
        """Wait until a run's own code has brought a result or an error; its state then."""

        async def reported() -> bool:
            run = await self.look(execution_id)
            return run["result"] is not None or run["error"] is not None

        await until(reported)
        return await self.look(execution_id)

    async def decide(
        self, execution_id: str, request_id: str, decision: str = "approved", **options: Any
    ) -> dict[str, Any]:
        """Answer a question by a signed webhook; the control plane's reply, which must say that it took effect."""
        reply = await self.webhook(execution_id, request_id, decision, **options)
        assert (reply.status_code, reply.json().get("status")) == (200, "processed"), reply.text
        return dict(reply.json())

    async def webhook(
        self,
        execution_id: str,
        request_id: str,
        decision: str = "approved",
        *,
        header: str = HEADERS[0],
        form: str = "prefixed",
        shape: str = "flat",
        **more: Any,
    ) -> httpx.Response:
        body = _flat if shape == "flat" else _envelope
        raw = json.dumps(body(execution_id, request_id, decision, more)).encode()
        return await self.post_signed(raw, {header: signature(form, raw)})

    async def post_signed(self, raw: bytes, headers: dict[str, str]) -> httpx.Response:
        headers = {"Content-Type": "application/json", **headers}
        return await self.client.post(f"{API}/webhooks/approval-response", content=raw, headers=headers)

    async def history(self, execution_id: str) -> list[dict[str, Any]]:
        """Every event of a run so far."""
        found: list[dict[str, Any]] = []
        query = {"execution_id": execution_id}
        async with self.client.stream("GET", f"{API}/events", params=query) as stream:
            async for line in stream.aiter_lines():
                if line.startswith("data:"):
                    found.append(json.loads(line[5:]))
                    if found[-1]["type"] in {f"execution.{status}" for status in FINAL}:
                        break
        return found


def signature(form: str, raw: bytes) -> str:
    """A signature header's value, of the body alone or of a moment and the body."""
    now = int(time.time())
    signed = b"%d." % now + raw if form == "stamped" else raw
    digest = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
    return {"bare": digest, "prefixed": f"sha256={digest}", "stamped": f"t={now},v1={digest}"}[form]


def _flat(execution_id: str, request_id: str, decision: str, more: dict[str, Any]) -> dict[str, Any]:
    return {"requestId": request_id, "executionId": execution_id, "decision": decision, **more}


def _envelope(execution_id: str, request_id: str, decision: str, more: dict[str, Any]) -> dict[str, Any]:
    data = {
        "id": request_id,
        "response": {"decision": decision, **more},
        "metadata": {"executionId": execution_id},
    }
    return {"id": f"evt_{execution_id}_{request_id}", "type": "request.completed", "createdAt": "now", "data": data}
