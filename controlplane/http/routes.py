"""Every route of the API, and what each is for: the one table that says who may call it."""

from litestar import Router
from litestar.handlers import HTTPRouteHandler
from litestar.types import ControllerRouterHandler

from controlplane.domain.access import Access
from controlplane.http import (
    approvals,
    asking,
    deciding,
    deliveries,
    events,
    execute,
    executions,
    feedback,
    feedback_events,
    feedback_people,
    handing_back,
    health,
    node_lists,
    nodes,
    peer_routes,
    steps,
    waiting,
    webhooks,
)

# What each route is for; `http.access` refuses a route that stands in none of these.
TABLE: dict[Access, list[HTTPRouteHandler]] = {
    Access.PUBLIC: [health.live, health.ready, webhooks.approval_response],
    Access.AGENT: [
        asking.request_approval,
        asking.request_approval_of_node,
        deciding.expire,
        deciding.set_callback,
        executions.start_execution,
        executions.report_status,
        executions.add_note,
        steps.keep_step,
        nodes.register_node,
        nodes.heartbeat,
        nodes.renew_lease,
        nodes.shut_down_node,
        handing_back.hand_back,
        peer_routes.take_event,
        peer_routes.register_nested,
        peer_routes.take_logs,
        peer_routes.take_note,
        peer_routes.take_awaiter_status,
        peer_routes.refuse_identity,
    ],
    Access.EXECUTE: [execute.execute, execute.execute_async],
    Access.CANCEL: [executions.cancel_execution],
    Access.WITHDRAW: [deciding.withdraw],
    Access.FEEDBACK: [feedback.ask_feedback, feedback.feedback_answer, feedback.end_feedback],
    Access.REVIEW: [
        deciding.decide,
        deciding.decide_for_execution,
        deliveries.list_parked,
        feedback_people.submit_feedback,
        feedback_people.pending_feedback,
        feedback_events.stream_feedback,
    ],
    Access.READ: [
        asking.approval_status,
        asking.approval_status_of_node,
        waiting.wait_for_any,
        approvals.list_approvals,
        approvals.get_approval,
        steps.list_steps,
        node_lists.list_nodes,
        node_lists.get_node,
        events.stream_events,
    ],
    Access.RUNS: [executions.list_executions, executions.get_execution, peer_routes.batch_status],
    Access.ADMIN: [deliveries.list_deliveries, deliveries.redrive_delivery],
}
for _access, _handlers in TABLE.items():
    for _handler in _handlers:
        _handler.opt["access"] = _access

# These have a path of their own: what looks at health, and clients that were written for other servers of it.
_ELSEWHERE: list[HTTPRouteHandler] = [
    health.live,
    health.ready,
    feedback_people.submit_feedback,
    feedback_people.pending_feedback,
    feedback_events.stream_feedback,
]
API = Router("/api/v1", route_handlers=[h for handlers in TABLE.values() for h in handlers if h not in _ELSEWHERE])
ROUTES: list[ControllerRouterHandler] = [API, *_ELSEWHERE]
