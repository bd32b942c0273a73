"""Exceptions to pages: a person reads what happened and what to do next, a script gets it as a problem document."""

from http import HTTPStatus
from typing import Any

from litestar import Request, Response
from litestar.response import Redirect

from controlplane import telemetry
from controlplane.domain import errors
from controlplane.edge.errors import answer, fault_of, problem
from controlplane.inbox import links
from controlplane.inbox.guard import is_by_script
from controlplane.inbox.rendering import page
from controlplane.inbox.session import COOKIE, no_cookie

_HEADINGS: dict[int, str] = {
    HTTPStatus.BAD_REQUEST: "That could not be read",
    HTTPStatus.FORBIDDEN: "That is not allowed",
    HTTPStatus.NOT_FOUND: "There is nothing here",
    HTTPStatus.METHOD_NOT_ALLOWED: "That is not done this way",
    HTTPStatus.CONFLICT: "Something changed meanwhile",
    HTTPStatus.GONE: "That has ended",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "That is too much",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "That could not be read",
    HTTPStatus.UNPROCESSABLE_ENTITY: "Something is not as it must be",
    HTTPStatus.TOO_MANY_REQUESTS: "Too many tries",
    HTTPStatus.SERVICE_UNAVAILABLE: "Not reachable just now",
    HTTPStatus.INTERNAL_SERVER_ERROR: "Something went wrong",
}
_SIGNED_OUT = "You are signed out; sign in again, then send this once more."
_AWAY = "The database cannot be reached, so nothing was changed and nothing was decided. Try again in a moment."


def answer_fault(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
    """The reply to an exception: a page, the way to sign in, or for a script a problem document."""
    fault = fault_of(request, error)
    if is_by_script(request):
        return answer(request, errors.NotAuthenticated(_SIGNED_OUT) if _is_signed_out(fault) else fault)
    if _is_signed_out(fault):
        return _to_sign_in(request)
    status, headers, _ = problem(fault)
    reply = page(
        request,
        "error.html",
        status=status,
        heading=_HEADINGS.get(status, "That did not work"),
        advice=_AWAY if isinstance(fault, errors.DatabaseUnavailable) else fault.message,
        retry=links.here(request) if request.method == "GET" and "Retry-After" in headers else None,
        request_id=telemetry.request_id(),
    )
    reply.headers.update(headers)
    if isinstance(fault, errors.MethodNotAllowed):
        reply.headers["Allow"] = (getattr(error, "headers", None) or {}).get("allow", "")
    return reply


def _is_signed_out(fault: errors.HoldshortError) -> bool:
    return isinstance(fault, errors.NotAuthenticated)


def _to_sign_in(request: Request[Any, Any, Any]) -> Response[Any]:
    reply = Redirect(links.to_sign_in(request), status_code=303)
    if COOKIE in request.cookies:
        reply.set_cookie(no_cookie())
    return reply
