"""Exceptions to problem documents (RFC 9457): the only table of statuses."""

from http import HTTPStatus
from typing import Any

import msgspec
import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException, MethodNotAllowedException, NotFoundException, ValidationException

from controlplane import telemetry
from controlplane.domain import door_errors, errors
from controlplane.edge.keys_in_urls import carries_key
from controlplane.edge.rules import rule_of

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = 1

STATUS: dict[type[errors.HoldshortError], HTTPStatus] = {
    errors.FieldFault: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.CallbackUrlRefused: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.NotFound: HTTPStatus.NOT_FOUND,
    door_errors.PreflightRefused: HTTPStatus.FORBIDDEN,
    errors.MethodNotAllowed: HTTPStatus.METHOD_NOT_ALLOWED,
    errors.ExecutionNotFound: HTTPStatus.NOT_FOUND,
    errors.ApprovalNotFound: HTTPStatus.NOT_FOUND,
    errors.NoApprovalRequest: HTTPStatus.NOT_FOUND,
    errors.DeliveryNotFound: HTTPStatus.NOT_FOUND,
    errors.OwnershipMismatch: HTTPStatus.FORBIDDEN,
    errors.SenderNotAllowed: HTTPStatus.FORBIDDEN,
    errors.InvalidState: HTTPStatus.CONFLICT,
    errors.RoundNotOpen: HTTPStatus.CONFLICT,
    errors.ApprovalRequestConflict: HTTPStatus.CONFLICT,
    errors.AmbiguousRequestId: HTTPStatus.CONFLICT,
    errors.ApprovalChanged: HTTPStatus.CONFLICT,
    errors.InvalidAnswer: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.DuplicateRequest: HTTPStatus.CONFLICT,
    errors.RequestIdUsed: HTTPStatus.CONFLICT,
    errors.AlreadyAnswered: HTTPStatus.CONFLICT,
    errors.RequestExpired: HTTPStatus.GONE,
    errors.RequestCancelled: HTTPStatus.GONE,
    errors.AnswerTaken: HTTPStatus.GONE,
    errors.RequestNotFound: HTTPStatus.NOT_FOUND,
    errors.TooManyQuestions: HTTPStatus.TOO_MANY_REQUESTS,
    errors.AlreadyDecided: HTTPStatus.CONFLICT,
    errors.ExecutionExists: HTTPStatus.CONFLICT,
    errors.DeliverySettled: HTTPStatus.CONFLICT,
    errors.EventsPruned: HTTPStatus.GONE,
    errors.NotAuthenticated: HTTPStatus.UNAUTHORIZED,
    errors.InvalidKey: HTTPStatus.UNAUTHORIZED,
    errors.TooManyFailures: HTTPStatus.TOO_MANY_REQUESTS,
    errors.KeyNotFound: HTTPStatus.NOT_FOUND,
    door_errors.KeyInUrl: HTTPStatus.BAD_REQUEST,
    door_errors.WrongHost: HTTPStatus.MISDIRECTED_REQUEST,
    door_errors.Forwarded: HTTPStatus.FORBIDDEN,
    door_errors.CrossOrigin: HTTPStatus.FORBIDDEN,
    door_errors.FormStale: HTTPStatus.FORBIDDEN,
    door_errors.HttpsNeeded: HTTPStatus.FORBIDDEN,
    errors.SenderNotFound: HTTPStatus.NOT_FOUND,
    errors.SenderExists: HTTPStatus.CONFLICT,
    errors.TooManySecrets: HTTPStatus.CONFLICT,
    errors.NotAllowed: HTTPStatus.FORBIDDEN,
    errors.NodeOwned: HTTPStatus.FORBIDDEN,
    errors.NodeNotFound: HTTPStatus.NOT_FOUND,
    errors.ReasonerNotFound: HTTPStatus.NOT_FOUND,
    errors.StaleInstance: HTTPStatus.CONFLICT,
    errors.StepMismatch: HTTPStatus.CONFLICT,
    errors.StepTooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    errors.QueueFull: HTTPStatus.TOO_MANY_REQUESTS,
    errors.IdempotencyConflict: HTTPStatus.CONFLICT,
    errors.TooManyParked: HTTPStatus.TOO_MANY_REQUESTS,
    door_errors.MalformedRequest: HTTPStatus.BAD_REQUEST,
    errors.InvalidBody: HTTPStatus.BAD_REQUEST,
    errors.RequestIdMissing: HTTPStatus.BAD_REQUEST,
    errors.DecisionMissing: HTTPStatus.BAD_REQUEST,
    errors.InvalidDecision: HTTPStatus.BAD_REQUEST,
    errors.DecisionConflict: HTTPStatus.BAD_REQUEST,
    errors.BodyTooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    errors.UnsupportedMediaType: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    door_errors.HeaderTooLarge: HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    door_errors.RequestTimeout: HTTPStatus.REQUEST_TIMEOUT,
    errors.SignatureMissing: HTTPStatus.UNAUTHORIZED,
    errors.SignatureInvalid: HTTPStatus.UNAUTHORIZED,
    errors.SignatureStale: HTTPStatus.UNAUTHORIZED,
    errors.WebhookNotConfigured: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.SenderUnreadable: HTTPStatus.SERVICE_UNAVAILABLE,
    door_errors.TooManyConnections: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.DatabaseUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.InternalError: HTTPStatus.INTERNAL_SERVER_ERROR,
}
_RETRY = {
    errors.DatabaseUnavailable,
    errors.SenderUnreadable,
    errors.TooManyParked,
    errors.QueueFull,
    errors.TooManyFailures,
    errors.TooManyQuestions,
    door_errors.TooManyConnections,
}
_log = structlog.get_logger()


def markdown_table() -> str:
    """The table of docs/errors.md: a row a code, in the order of the statuses; `python -m controlplane.edge.errors`."""
    rows = [_row(error, status) for error, status in sorted(STATUS.items(), key=lambda e: (e[1], e[0].code))]
    return "\n".join(("| code | status | when | what to do |", "|---|---|---|---|", *rows))


def problem(error: errors.HoldshortError) -> tuple[int, dict[str, str], bytes]:
    """The status, headers and body of an error's reply."""
    status = STATUS[type(error)]
    seconds = error.extra.get("retry_after_seconds", RETRY_AFTER_SECONDS)
    headers = {"Retry-After": str(seconds)} if type(error) in _RETRY else {}
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": status.phrase,
        "status": int(status),
        "detail": error.message,
        "error": error.code,
        "message": error.message,
        **error.extra,
    }
    request_id = telemetry.request_id()
    if request_id is not None:
        body["request_id"] = request_id
    return int(status), headers, msgspec.json.encode(body)


def answer(request: Request[Any, Any, Any], error: errors.HoldshortError) -> Response[bytes]:
    """The reply to one of our own errors."""
    status, headers, body = problem(fault_of(request, error))
    return Response(body, status_code=status, headers=headers, media_type=MEDIA_TYPE)


def answer_framework(request: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    """The reply to what the framework refuses, in the same form as our own."""
    fault = fault_of(request, error)
    reply = answer(request, fault)
    if isinstance(fault, errors.MethodNotAllowed):
        reply.headers["Allow"] = (error.headers or {}).get("allow", "")
    return reply


def answer_unexpected(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """The reply to a fault of ours: nothing of it is shown, all of it is logged."""
    return answer(request, unexpected(request, error))


def fault_of(request: Request[Any, Any, Any], error: Exception) -> errors.HoldshortError:
    """What an exception is to its caller: one of our own that has a status; what is a fault of ours is logged."""
    if isinstance(error, errors.HoldshortError):
        return error if type(error) in STATUS else unexpected(request, error)
    if not isinstance(error, HTTPException):
        return unexpected(request, error)
    if isinstance(error, ValidationException):
        return _field_fault(request, error)
    if isinstance(error, NotFoundException | MethodNotAllowedException):
        return _no_route(request, error)
    if error.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return errors.BodyTooLarge()
    return errors.InvalidBody() if error.status_code < HTTPStatus.INTERNAL_SERVER_ERROR else unexpected(request, error)


def unexpected(request: Request[Any, Any, Any], error: Exception) -> errors.InternalError:
    """Log a fault of ours; what its caller is told."""
    # The route, not the path that was sent: anything may stand in that.
    route = request.scope.get("path_template", "")
    _log.error("request_failed", method=request.method, route=route, exc_info=error)
    return errors.InternalError()


def _no_route(request: Request[Any, Any, Any], error: HTTPException) -> errors.HoldshortError:
    if carries_key(request.scope):
        return door_errors.KeyInUrl()  # as on every route: no guard has seen this one
    return errors.NotFound() if isinstance(error, NotFoundException) else errors.MethodNotAllowed()


def _field_fault(request: Request[Any, Any, Any], error: ValidationException) -> errors.FieldFault:
    extra = error.extra if isinstance(error.extra, list) else []
    first = extra[0] if extra and isinstance(extra[0], dict) else {}
    handler = request.scope["route_handler"]
    return errors.FieldFault(*rule_of(handler.signature_model, str(first.get("key", "query"))))


def _row(error: type[errors.HoldshortError], status: HTTPStatus) -> str:
    when, _, remedy = " ".join((error.__doc__ or "").split()).partition("; ")
    return f"| `{error.code}` | {int(status)} | {when} | {remedy[:1].upper()}{remedy[1:]} |"


if __name__ == "__main__":
    print(markdown_table())  # noqa: T201 - this is how the table of docs/errors.md is made
