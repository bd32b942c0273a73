"""What agents ask in these tests and in the pictures of the documentation: work that a person could meet."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from tests.app import PATIENCE_SECONDS, Api, until

CLAUSE = (
    "Either party may terminate for convenience on ninety (90) days' written notice. The fees for the current term "
    "stay payable in full. Liability under this agreement, whatever its cause, is limited to the fees paid in the "
    "twelve months before the claim."
)

CONTRACT: dict[str, Any] = {
    "title": "Sign the renewal with Brightwater Logistics",
    "description": "The redlines are in line with our playbook but for one clause: they ask for 90 days' notice where "
    "we usually offer 30. The discount of 8 % is only good until Friday.",
    "payload": {
        "counterparty": "Brightwater Logistics B.V.",
        "contract": "MSA-2041, renewal 3",
        "annual value": "EUR 184,000",
        "term": "24 months from 1 January 2027",
        "clause 14.2": CLAUSE,
    },
    "expires_in_hours": 30,
}

MIGRATION: dict[str, Any] = {
    "title": "Run the migration orders_0147 on production",
    "description": "The column was last written nine days ago. Compared on a copy of production: no row differs.",
    "payload": {
        "database": "orders-production",
        "statement": "ALTER TABLE orders DROP COLUMN legacy_total;\nVACUUM (ANALYZE) orders;",
        "before": {"columns": 41, "size": "212 GB", "legacy_total": "numeric(12,2)"},
        "after": {"columns": 40, "size": "187 GB"},
    },
    "expires_in_hours": 2.5,
}

REFUND: dict[str, Any] = {
    "title": "Refund EUR 412.50 to order 88-1203",
    "description": "The parcel was lost; the carrier confirmed it on Monday. It is over my limit of EUR 250.",
    "payload": {"order": "88-1203", "customer": "C-20417", "amount": 412.5, "currency": "EUR", "reason": "lost parcel"},
    "expires_in_hours": 0.4,
    "on_expiry": "resume",
}

DEPLOY: dict[str, Any] = {
    "title": "Deploy checkout 4.18.0 to all regions",
    "description": "The canary served 5 % for an hour: errors 0.02 %, as before.",
    "payload": {"service": "checkout", "version": "4.18.0", "replaces": "4.17.2", "regions": ["eu-1", "us-1", "ap-2"]},
    "expires_in_hours": 6,
}

OTP = "The bank sent a one-time code to the phone that ends in 83. Which code is it?"

HOSTILE = (
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script> javascript:alert(1) "
    "https://example.com/a?b=<c> \u202egnp.exe\u202c zero\u200bwidth {{ 7 * 7 }} </textarea></title><svg/onload=a()>"
)


async def ask(api: Api, sample: dict[str, Any], request_id: str, *, run: str, node: str = "legal-desk") -> str:
    """Ask what a sample asks, in a run of its own; the approval's id."""
    await api.start(run, node)
    return str((await api.ask(request_id, run, **sample))["approval_id"])


class Question:
    """A short-lived question, and the call that waits for its answer."""

    def __init__(self, unique_id: str, call: "asyncio.Task[httpx.Response]") -> None:
        self.unique_id = unique_id
        self._call = call

    async def reply(self) -> tuple[int, dict[str, Any]]:
        """What the waiting call returned, once it has."""
        reply = await asyncio.wait_for(asyncio.shield(self._call), PATIENCE_SECONDS)
        return reply.status_code, reply.json()

    async def answer(self) -> str:
        """The answer that it returned."""
        status, body = await self.reply()
        assert (status, body["outcome"]) == (200, "answered"), body
        return str(body["response"])


@asynccontextmanager
async def asking(
    api: Api, message: str = OTP, *, unique_id: str = "question-1", timeout_seconds: int = 300, **fields: Any
) -> AsyncIterator[Question]:
    """Ask and wait, as a call that blocks; leaving the block ends the call."""
    body = {"unique_id": unique_id, "message_for_user": message, "timeout_seconds": timeout_seconds, "wait": True}
    call = asyncio.create_task(api.post("/human-feedback", body | fields))
    try:
        await until(lambda: call.done() or unique_id in shown(api))
        assert not call.done(), call.result().text
        yield Question(unique_id, call)
    finally:
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)


def shown(api: Api) -> list[str]:
    """The ids of the questions that pages show, oldest first."""
    return [each.unique_id for each in api.runtime.board.questions()]
