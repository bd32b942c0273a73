"""Every route of the API, and nothing else."""

from litestar import Router
from litestar.types import ControllerRouterHandler

from controlplane.http import (
    approvals,
    asking,
    deciding,
    deliveries,
    events,
    execute,
    executions,
    handing_back,
    health,
    peer_routes,
    steps,
    waiting,
    webhooks,
)

API = Router(
    "/api/v1",
    route_handlers=[
        asking.request_approval,
        asking.request_approval_of_node,
        asking.approval_status,
        asking.approval_status_of_node,
        waiting.wait_for_any,
        webhooks.approval_response,
        deciding.decide,
        deciding.decide_for_execution,
        deciding.withdraw,
        deciding.expire,
        deciding.set_callback,
        approvals.list_approvals,
        approvals.get_approval,
        execute.execute,
        execute.execute_async,
        handing_back.hand_back,
        executions.start_execution,
        executions.list_executions,
        executions.get_execution,
        executions.report_status,
        executions.cancel_execution,
        executions.add_note,
        steps.keep_step,
        steps.list_steps,
        peer_routes.take_event,
        peer_routes.register_nested,
        peer_routes.batch_status,
        peer_routes.take_logs,
        peer_routes.take_note,
        peer_routes.take_awaiter_status,
        peer_routes.refuse_identity,
        deliveries.list_deliveries,
        deliveries.redrive_delivery,
        deliveries.list_parked,
        events.stream_events,
    ],
)
ROUTES: list[ControllerRouterHandler] = [API, health.live, health.ready]
