"""Plays a scenario of sdk/conformance/scenarios.json: each step is one verb, which is a method here."""

import json
import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import httpx
from holdshort.webhooks import sign

from controlplane.domain import signatures
from tests.contract.planes import SECRET
from tests.languages.driving import Call, Driver
from tests.languages.matching import Names, differs
from tests.languages.planes import Plane, until
from tests.plain import PLAIN

Step = dict[str, Any]
CALLBACK_PATH = "/webhooks/approval"
ASKED_FOR_WAITING = 2


class Agents(Protocol):
    """The drivers of one play."""

    def named(self, mode: str | None) -> Driver:
        """That of a callback mode; the play's own when None."""
        ...

    def node_of(self, mode: str | None) -> str:
        """The node of that driver."""
        ...

    def kill(self) -> None:
        """Kill the play's own."""

    def end(self) -> None:
        """Let the play's own stop, which it has to do well."""

    def start(self) -> None:
        """Start it again, at the same address."""


class Play:
    """One play of a scenario by one SDK.

    Args:
        plane: the control plane.
        agents: the drivers.
    """

    def __init__(self, plane: Plane, agents: Agents) -> None:
        self._plane = plane
        self._agents = agents
        known = {"review_key": plane.keys.review, "other_key": plane.other_key, "unknown_key": plane.unknown_key}
        self._names = Names(known | {"webhook_secret": SECRET})
        self._calls: dict[str, Call] = {}
        self._verbs: dict[str, Callable[[Any, Step], None]] = {
            name.removeprefix("_do_"): getattr(self, name) for name in dir(self) if name.startswith("_do_")
        }

    def steps(self, steps: list[Step]) -> None:
        """Play them in order; AssertionError names the one that was not as it should be."""
        for number, step in enumerate(steps, 1):
            (verb,) = self._verbs.keys() & step.keys()
            try:
                resolved = self._names.resolved(step)
                self._verbs[verb](resolved[verb], resolved)
            except AssertionError as error:
                raise AssertionError(f"step {number} {json.dumps(step, ensure_ascii=False)}: {error}") from error

    # Runs and what they ask

    def _do_run(self, name: str, step: Step) -> None:
        target = f"{self._agents.node_of(step.get('on'))}.perform"
        self._names.bind(name, self._plane.call(target, {"script": step["script"]}))

    def _do_asked(self, name: str, step: Step) -> None:
        query = {"status": "pending", "execution_id": step["of"]}
        if "id" in step:
            query["approval_request_id"] = step["id"]

        def look() -> list[Step]:
            found: list[Step] = self._plane.get("/api/v1/approvals", **query)["approvals"]
            return [each for each in found if each["round"] == step.get("round", each["round"])]

        (approval,) = until(look, lambda found: len(found) == 1)
        self._names.bind(name, approval["approval_id"])
        self._compare(approval, step)

    def _do_ended(self, execution_id: str, step: Step) -> None:
        found = until(
            partial(self._execution, execution_id), lambda each: each["ended_at"] and not each["outcome_pending"]
        )
        for name, place in step.get("bind", {}).items():
            self._names.bind(name, str(_member(found, place)))
        self._compare(found, step)

    def _do_execution(self, execution_id: str, step: Step) -> None:
        self._compare(self._execution(execution_id), step)

    def _do_still_waiting(self, execution_id: str, _: Step) -> None:
        for _ in range(ASKED_FOR_WAITING):
            self._driver.ask("journal")
        self._compare(self._execution(execution_id), {"expect": {"status": "waiting", "ended_at": None}})

    def _do_operator_cancels(self, execution_id: str, step: Step) -> None:
        reply = self._plane.review(f"/api/v1/executions/{execution_id}/cancel", {"reason": step["reason"]})
        assert reply.status_code == 200, reply.text

    def _do_steps(self, execution_id: str, step: Step) -> None:
        self._compare(self._steps(execution_id), step)

    def _do_stored(self, execution_id: str, step: Step) -> None:
        until(partial(self._steps, execution_id), lambda found: len(found) == step["count"])

    def _do_happened(self, execution_id: str, step: Step) -> None:
        wanted = set(step["expect"])
        seen = self._plane.happened(execution_id, wanted)
        assert wanted <= seen, seen

    # Answers

    def _do_decide(self, approval_id: str, step: Step) -> None:
        verdict = {name: each for name, each in step.items() if name not in {"decide", "replies"}}
        self._reply(self._plane.review(f"/api/v1/approvals/{approval_id}/decision", verdict), step)

    def _do_webhook(self, body: Step, step: Step) -> None:
        sent, now = json.dumps(body), int(time.time())
        made = {"scheme": step.get("signed_by_sdk", "standard"), "now": now, "webhook_id": f"msg_{uuid.uuid4().hex}"}
        if "signed_by_sdk" in step:
            headers = self._driver.ask("sign_webhook", secret=SECRET, body=sent, **made)
        else:
            headers = sign(SECRET, sent.encode(), **made)
        self._reply(self._plane.webhook(sent.encode(), headers), step)

    def _do_callback(self, body: Step, step: Step) -> None:
        sent = json.dumps(body).encode()
        secret = step.get("secret")
        signed = sign(secret, sent, now=int(time.time()), webhook_id="msg_1") if secret else {}
        headers = {**signed, "content-type": "application/json"}
        with httpx.Client(base_url=self._driver.base, trust_env=False, verify=PLAIN) as http:
            self._reply(http.post(CALLBACK_PATH, content=sent, headers=headers), step)

    def _do_approval(self, approval_id: str, step: Step) -> None:
        self._compare(self._plane.get(f"/api/v1/approvals/{approval_id}"), step)

    def _do_history(self, approval_id: str, step: Step) -> None:
        found = self._plane.get(f"/api/v1/approvals/{approval_id}")["history"]
        types = [each["type"] for each in found if each["type"].startswith("approval.")]
        self._compare([each for each in types if each != "approval.callback_changed"], step)

    # Short-lived questions

    def _do_question(self, unique_id: str, step: Step) -> None:
        (question,) = until(partial(self._questions, unique_id), lambda found: len(found) == 1)
        self._compare(question, step)

    def _do_no_question(self, unique_id: str, _: Step) -> None:
        until(partial(self._questions, unique_id), lambda found: found == [])

    def _do_answer(self, unique_id: str, step: Step) -> None:
        given = {"unique_id": unique_id, "response": step["response"]}
        self._reply(self._plane.review("/api/human-feedback/submit", given), step)

    def _do_time_is_up(self, unique_id: str, _: Step) -> None:
        self._plane.pass_time_of(unique_id)

    # The driver

    def _do_start(self, name: str, step: Step) -> None:
        self._calls[name] = self._driver.send(step["op"], **step.get("args", {}))

    def _do_await(self, name: str, step: Step) -> None:
        self._answered(self._calls[name], step)

    def _do_call(self, op: str, step: Step) -> None:
        args = {**_signed(step["signed"]), **step["args"]} if "signed" in step else step["args"]
        self._answered(self._driver.send(op, **args), step)

    def _do_cancel(self, name: str, _: Step) -> None:
        assert self._driver.ask("cancel", id=self._calls[name].number) is None

    def _do_still_waits(self, name: str, _: Step) -> None:
        for _ in range(ASKED_FOR_WAITING):
            self._driver.ask("journal")
        assert not self._calls[name].answered, self._calls[name].answer()

    def _do_journal(self, expected: list[str], _: Step) -> None:
        found = [name for name in self._driver.ask("journal") if name in self._names.made]
        assert found == expected, f"{found} instead of {expected}"

    # Processes

    def _do_server(self, what: str, _: Step) -> None:
        if what in {"kill", "restart"}:
            self._plane.kill()
        if what in {"start", "restart"}:
            self._plane.start()

    def _do_agent(self, what: str, _: Step) -> None:
        if what in {"kill", "restart"}:
            self._agents.kill()
        if what == "stop":
            self._agents.end()
        if what in {"start", "restart"}:
            self._agents.start()

    @property
    def _driver(self) -> Driver:
        return self._agents.named(None)

    def _execution(self, execution_id: str) -> Step:
        found: Step = self._plane.get(f"/api/v1/executions/{execution_id}")
        return found

    def _steps(self, execution_id: str) -> list[Step]:
        found: list[Step] = self._plane.get(f"/api/v1/executions/{execution_id}/steps")["steps"]
        return found

    def _questions(self, unique_id: str) -> list[Step]:
        return [each for each in self._plane.questions() if each["unique_id"] == unique_id]

    def _answered(self, call: Call, step: Step) -> None:
        answer = call.answer()
        wanted = "error" if "error" in step else "ok"
        assert wanted in answer, answer
        for name, place in step.get("bind", {}).items():
            self._names.bind(name, str(_member(answer["ok"], place)))
        self._compare(answer[wanted], {"expect": step.get("error", step.get("expect", answer[wanted]))})

    def _reply(self, reply: httpx.Response, step: Step) -> None:
        wanted = step.get("replies", {"status": 200})
        found = {"status": reply.status_code, "body": reply.json()}
        difference = differs(found, wanted)
        assert difference is None, f"{difference} of {found}"

    @staticmethod
    def _compare(found: Any, step: Step) -> None:
        difference = differs(found, step["expect"]) if "expect" in step else None
        assert difference is None, difference


def _member(found: Any, place: str) -> Any:
    """What is at `result.0.approval_id` of something."""
    for name in place.split("."):
        found = found[int(name)] if isinstance(found, list) else found[name]
    return found


def _signed(wanted: Step) -> Step:
    """Body and headers as the control plane's own signer makes them."""
    body = wanted["body"]
    sent, at = body.encode(), wanted.get("at", 0)
    if wanted["scheme"] == "standard":
        signature = signatures.sign_standard(SECRET, sent, webhook_id="msg_1", timestamp=at)
        headers = {"webhook-id": "msg_1", "webhook-timestamp": str(at), "webhook-signature": signature}
    elif wanted["scheme"] == "timestamped":
        headers = {"X-Webhook-Signature": signatures.sign_timestamped(SECRET, sent, timestamp=at)}
    else:
        headers = {"X-Webhook-Signature": f"sha256={signatures.sign_hex(SECRET, sent)}"}
    return {"body": body, "headers": headers}
