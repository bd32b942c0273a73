"""What each route is sent when it is asked rightly: bodies with a canary in every field that holds a caller's text."""

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.http.walk import PUBLIC_KEY
from tests.security.canaries import Aviary

Body = Any


class Ids(NamedTuple):
    """What stands already: a run that has asked and one that works, a node with an instance, a dead delivery, and a
    short-lived question.
    """

    execution_id: str
    working_id: str
    approval_id: str
    request_id: str
    node_id: str
    instance_id: str
    delivery_id: str
    receiver: str
    agent: str
    unique_id: str


class Recipe(NamedTuple):
    """A good request: who sends it, its body, its query, further headers, and in which run."""

    key: str
    body: Callable[[Aviary, Ids], Body] | None = None
    query: str = ""
    headers: Callable[[Aviary, Ids], dict[str, str]] = lambda *_: {}
    works: bool = False


def asking(a: Aviary, ids: Ids) -> Body:
    return {
        "approval_request_id": f"{ids.request_id}-more",
        "callback_url": ids.receiver,
        "callback_secret": a.plant("callback_secret"),
        "title": a.plant("title"),
        "description": a.plant("description"),
        "payload": {a.plant("payload"): [a.plant("payload"), 'é"/\\' + a.plant("payload")]},
        "form": {"kind": "multiple_choice", "options": [a.plant("form"), "other"]},
    }


def deciding(a: Aviary, ids: Ids) -> Body:
    named = {"approval_request_id": ids.request_id}
    return named | {"decision": "approved", "feedback": a.plant("feedback"), "response": {"r": a.plant("response")}}


def answering(a: Aviary, ids: Ids) -> Body:
    return {"requestId": ids.request_id, "executionId": ids.execution_id, "unknown": a.plant("unknown")} | {
        "decision": "rejected",
        "feedback": a.plant("feedback"),
        "response": {"r": a.plant("response")},
    }


def registering(a: Aviary, ids: Ids) -> Body:
    features = {"replay": True, "fence": True}
    reasoners = [{"id": "work", "input_schema": {"d": a.plant("schema")}}]
    base = {"node_id": ids.node_id, "instance_id": ids.instance_id, "base_url": ids.agent, "version": "1"}
    return base | {"reasoners": reasoners, "features": features, "token": a.plant("unknown")}


def reporting(a: Aviary, ids: Ids) -> Body:
    details = {"trace": a.plant("error")}
    return {"status": "failed", "error": a.plant("error"), "result": {"v": a.plant("result")}, "error_details": details}


def of_instance(a: Aviary, ids: Ids) -> Body:
    return {"instance_id": ids.instance_id, "unknown": a.plant("unknown")}


def input_of(a: Aviary, ids: Ids) -> Body:
    return {"input": {"i": a.plant("input")}, "context": {"c": a.plant("unknown")}}


def asking_a_person(a: Aviary, ids: Ids) -> Body:
    words = {"message_for_user": a.plant("question"), "options": [a.plant("question"), "other"]}
    return words | {
        "unique_id": f"{ids.unique_id}-more",
        "public_key": PUBLIC_KEY,
        "session_id": a.plant("session"),
        "execution_id": ids.execution_id,
        "unknown": a.plant("unknown"),
    }


def answering_an_agent(a: Aviary, ids: Ids) -> Body:
    answer = {"unique_id": ids.unique_id, "response": a.plant("answer")}
    return answer | {"submission_id": a.plant("submission"), "unknown": a.plant("unknown")}


RECIPES: dict[str, Recipe] = {
    "live": Recipe("none"),
    "ready": Recipe("none"),
    "approval_response": Recipe("signature", answering),
    "request_approval": Recipe("agent", asking),
    "request_approval_of_node": Recipe("agent", asking),
    "expire": Recipe("agent", lambda a, _: {"unknown": a.plant("unknown")}),
    "set_callback": Recipe(
        "agent", lambda a, ids: {"callback_url": ids.receiver, "callback_secret": a.plant("callback_secret")}
    ),
    "start_execution": Recipe("agent", lambda a, ids: {"node_id": ids.node_id, "input": {"i": a.plant("input")}}),
    "report_status": Recipe("agent", reporting, works=True),
    "add_note": Recipe("agent", lambda a, _: {"message": a.plant("note"), "tags": [a.plant("note")]}),
    "keep_step": Recipe(
        "agent",
        lambda a, _: {"name": "s", "occurrence": 1, "previous": "", "result": {"s": a.plant("step")}},
        works=True,
    ),
    "register_node": Recipe("agent", registering),
    "heartbeat": Recipe("agent", of_instance),
    "renew_lease": Recipe("agent", of_instance),
    "shut_down_node": Recipe("agent", of_instance),
    "hand_back": Recipe("agent", lambda a, ids: of_instance(a, ids) | {"executions": []}),
    "take_event": Recipe(
        "agent",
        lambda a, ids: {
            "execution_id": ids.working_id,
            "status": "failed",
            "error": a.plant("error"),
            "result": {"v": a.plant("result")},
        },
    ),
    "register_nested": Recipe(
        "agent",
        lambda a, ids: {"execution_id": f"{ids.working_id}-in", "node_id": ids.node_id, "input": a.plant("unknown")},
    ),
    "take_logs": Recipe("agent", lambda a, _: {"lines": [a.plant("unknown")]}),
    "take_note": Recipe(
        "agent",
        lambda a, _: {"message": a.plant("note"), "tags": [a.plant("note")]},
        headers=lambda _, ids: {"X-Execution-ID": ids.working_id},
    ),
    "take_awaiter_status": Recipe("agent", lambda a, _: {"status": a.plant("unknown")}),
    "refuse_identity": Recipe("agent", lambda a, _: {"did": a.plant("unknown")}),
    "execute": Recipe("agent", input_of, query="wait=0.5"),
    "execute_async": Recipe("agent", input_of),
    "cancel_execution": Recipe("agent", lambda a, _: {"reason": a.plant("reason")}),
    "withdraw": Recipe("review", lambda a, _: {"unknown": a.plant("unknown")}),
    "decide": Recipe("review", deciding),
    "decide_for_execution": Recipe("review", deciding),
    "list_parked": Recipe("review"),
    "ask_feedback": Recipe("agent", asking_a_person),
    "feedback_answer": Recipe("agent"),
    "end_feedback": Recipe("agent", lambda a, _: {"unknown": a.plant("unknown")}),
    "submit_feedback": Recipe("review", answering_an_agent),
    "pending_feedback": Recipe("review"),
    "stream_feedback": Recipe("review"),
    "approval_status": Recipe("agent"),
    "approval_status_of_node": Recipe("agent"),
    "wait_for_any": Recipe(
        "agent", lambda a, ids: {"approval_ids": [ids.approval_id], "wait": 0, "unknown": a.plant("unknown")}
    ),
    "list_approvals": Recipe("review"),
    "get_approval": Recipe("review"),
    "list_steps": Recipe("agent"),
    "list_nodes": Recipe("admin"),
    "get_node": Recipe("admin"),
    "stream_events": Recipe("admin"),
    "list_executions": Recipe("review"),
    "get_execution": Recipe("review"),
    "batch_status": Recipe("review", lambda _, ids: {"execution_ids": [ids.execution_id, ids.working_id]}),
    "list_deliveries": Recipe("admin"),
    "redrive_delivery": Recipe("admin", lambda a, _: {"unknown": a.plant("unknown")}),
}
