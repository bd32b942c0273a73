"""An application in which every page and state that a person can meet is there at once, by its path."""

from contextlib import AsyncExitStack
from typing import Any

from tests.app import Api
from tests.browser.samples import CONTRACT, DEPLOY, HOSTILE, MIGRATION, REFUND, ask, asking

LONG = "\n".join(f"line {number} of the statement" for number in range(200))
# Nobody listens there, so what is sent fails.
NOWHERE = "http://127.0.0.1:9/webhooks/approval"

FORM: dict[str, Any] = {
    "kind": "form",
    "schema": {
        "type": "object",
        "properties": {
            "amount": {"type": "number", "title": "Amount", "description": "At most what was paid"},
            "reason": {"type": "string", "title": "Reason", "enum": ["damage", "delay", "goodwill"]},
            "notify": {"type": "boolean", "title": "Tell the customer"},
        },
        "required": ["amount"],
    },
}


async def furnish(api: Api, sql: Any, stack: AsyncExitStack) -> dict[str, str]:
    """Make all of it; the questions stay open as long as the stack."""
    waiting = await _waiting(api)
    ended = await _ended(api, sql)
    await _around(api)
    await stack.enter_async_context(asking(api, unique_id="code", kind="secret"))
    await stack.enter_async_context(asking(api, HOSTILE, unique_id="text", kind="text"))
    await stack.enter_async_context(asking(api, "Which seat?", unique_id="choice", options=["Aisle", "W" * 200]))
    await stack.enter_async_context(asking(api, "Go on?", unique_id="yes", kind="yes_no", yes_label="Go on"))
    lists = {"list": "/inbox", "nothing fits": "/inbox?q=nowhere"}
    lists |= {f"list {tab}": f"/inbox?tab={tab}" for tab in ("decided", "expired", "all")}
    pages = {name: f"/inbox/{name}" for name in ("executions", "deliveries", "nodes", "status")}
    pages |= {"execution": "/inbox/executions/run-contract", "question": "/inbox/feedback/code"}
    return lists | waiting | ended | pages


EMPTY = {
    "empty": "/inbox",
    **{f"empty {tab}": f"/inbox?tab={tab}" for tab in ("decided", "expired", "all")},
    **{f"no {name}": f"/inbox/{name}" for name in ("executions", "deliveries", "nodes")},
}


async def _waiting(api: Api) -> dict[str, str]:
    asked = {
        "text": await ask(api, CONTRACT, "contract", run="run-contract"),
        "change": await ask(api, MIGRATION, "migrate", run="run-migrate", node="dba"),
        "soon": await ask(api, REFUND, "refund", run="run-refund", node="support"),
        "folded": await ask(api, DEPLOY | {"payload": {"log": LONG}}, "deploy", run="run-deploy"),
        "hostile": await ask(api, {"title": HOSTILE[:190], "payload": {HOSTILE: [HOSTILE]}}, "odd", run="run-odd"),
        "wide": await ask(api, {"title": "w" * 200, "payload": {"w" * 300: "w" * 3000}}, "w" * 100, run="w" * 100),
        "no payload": await ask(api, {}, "bare", run="run-bare"),
        "form": await ask(api, {"title": "How much back?", "form": FORM}, "form", run="run-form"),
        "choice": await ask(
            api, {"title": "Which?", "form": {"kind": "multiple_choice", "options": ["A", "B"]}}, "one", run="run-one"
        ),
    }
    first = await ask(api, REFUND, "again", run="run-again")
    await api.decide(first, "request_changes", feedback="At most half.")
    second = await api.ask("again", "run-again", **(REFUND | {"payload": {"amount": 200}, "round": 2}))
    asked |= {"second round": second["approval_id"], "an older round": first}
    return {name: f"/inbox/{approval_id}" for name, approval_id in asked.items()}


async def _ended(api: Api, sql: Any) -> dict[str, str]:
    ids = {
        name: await ask(api, DEPLOY, name, run=f"run-{name}") for name in ("approved", "rejected", "expired", "gone")
    }
    await api.decide(ids["approved"], "approved", feedback="Go.")
    await api.decide(ids["rejected"], "rejected", feedback=HOSTILE)
    await api.post(f"/approvals/{ids['gone']}/withdraw")
    await sql.execute("UPDATE approvals SET expires_at = clock_timestamp() WHERE approval_id = $1", ids["expired"])
    return {name: f"/inbox/{approval_id}" for name, approval_id in ids.items()}


async def _around(api: Api) -> None:
    node = {"id": "legal-desk", "base_url": "http://127.0.0.1:9", "version": "2.4.1", "reasoners": [{"id": "review"}]}
    await api.post("/nodes/register", node)
    await api.post("/executions/run-contract/notes", {"message": "Compared with the playbook.", "tags": ["legal"]})
    told = await api.asked("told", "run-told", callback_url=NOWHERE)
    await api.decide(told)
