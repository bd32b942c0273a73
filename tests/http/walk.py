"""Every route of the API by what it takes, and paths and bodies for it that are good: for the tests that walk them."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from litestar.handlers import HTTPRouteHandler

from controlplane.http.routes import TABLE

MIB = 1024 * 1024
SIGNED = "approval_response"
# What every route with a body takes at most, as the specification says; one that is missing here fails the walk.
CAPS = {
    "approval_response": MIB,
    "request_approval": MIB,
    "request_approval_of_node": MIB,
    "set_callback": MIB,
    "decide": MIB,
    "decide_for_execution": MIB,
    "start_execution": 8 * MIB,
    "report_status": 8 * MIB,
    "keep_step": 8 * MIB,
    "execute": 8 * MIB,
    "execute_async": 8 * MIB,
    "register_node": 8 * MIB,
    "take_event": 8 * MIB,
    "take_logs": 8 * MIB,
    "refuse_identity": 8 * MIB,
    "add_note": MIB,
    "heartbeat": MIB,
    "renew_lease": MIB,
    "shut_down_node": MIB,
    "hand_back": MIB,
    "register_nested": MIB,
    "take_note": MIB,
    "take_awaiter_status": MIB,
    "cancel_execution": MIB,
    "wait_for_any": MIB,
    "batch_status": MIB,
    "ask_feedback": MIB,
    "submit_feedback": 16 * 1024,
}
# What these are sent is read and dropped.
DROPPED = {"take_logs", "refuse_identity"}
BODYLESS = {"withdraw", "expire", "redrive_delivery", "end_feedback"}
PUBLIC_KEY = "j0DFrbaPJWJK5bIU6nZ6bslNgp09e14a0bpvPiE4KF8="
GOOD: dict[str, dict[str, Any]] = {
    "request_approval": {"approval_request_id": "q-9"},
    "request_approval_of_node": {"approval_request_id": "q-9"},
    "set_callback": {"callback_url": "http://127.0.0.1:9/"},
    "decide": {"decision": "approved"},
    "decide_for_execution": {"decision": "approved"},
    "report_status": {"status": "running"},
    "keep_step": {"name": "s", "occurrence": 1, "result": None},
    "add_note": {"message": "m"},
    "hand_back": {"instance_id": "i", "executions": []},
    "take_awaiter_status": {"status": "waiting"},
    "ask_feedback": {"unique_id": "f-9", "message_for_user": "m", "public_key": PUBLIC_KEY},
    "submit_feedback": {"unique_id": "f-9", "response": "r"},
}
NAMES = {
    "execution_id": "run-1",
    "node_id": "node-1",
    "approval_id": "apr_0",
    "delivery_id": "dlv_0",
    "target": "node-1.work",
    "unique_id": "f-1",
}
_PARAMETER = re.compile(r"\{(\w+):str\}")


class Call(NamedTuple):
    """One method of one path of one handler."""

    handler: HTTPRouteHandler
    method: str
    path: str

    @property
    def name(self) -> str:
        return self.handler.handler_name

    @property
    def parameters(self) -> list[str]:
        return _PARAMETER.findall(self.path)

    def at(self, **values: str) -> str:
        """The path with its parameters filled in, those not given with something good."""
        prefix = "" if self.path.startswith(("/health", "/api/")) else "/api/v1"
        return prefix + _PARAMETER.sub(lambda found: values.get(found[1], NAMES[found[1]]), self.path)


def calls() -> Iterator[Call]:
    """Every call of the API."""
    for handlers in TABLE.values():
        for handler in handlers:
            for path in sorted(handler.paths):
                for method in sorted(handler.http_methods - {"OPTIONS"}):
                    yield Call(handler, method, path)
