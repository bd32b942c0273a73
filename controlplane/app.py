"""The application: routes, error replies, and the lifespan that holds the runtime and the workers."""

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version
from typing import Any

import msgspec
from litestar import Litestar, Request, Response, get
from litestar.connection import ASGIConnection
from litestar.exceptions import HTTPException
from litestar.handlers import BaseRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin

from controlplane import telemetry
from controlplane.domain.access import Access
from controlplane.domain.egress import Endpoint
from controlplane.domain.errors import HoldshortError
from controlplane.edge import errors
from controlplane.edge.cors import Cors
from controlplane.edge.headers import SafeHeaders
from controlplane.edge.request_ids import RequestIds
from controlplane.edge.this_machine import ThisMachineOnly
from controlplane.http import access
from controlplane.http.openapi import document, operation_id
from controlplane.http.routes import ROUTES
from controlplane.inbox import faults, guard
from controlplane.inbox.routes import PAGES
from controlplane.runtime import Runtime
from controlplane.settings import Settings
from controlplane.storage import migrations
from controlplane.workers.crew import running


def create_app(settings: Settings, *, workers: bool = True, own: tuple[Endpoint, ...] = ()) -> Litestar:
    """The ASGI application of one server process.

    Args:
        settings: what the process was told at its start.
        workers: whether this process also expires, dispatches and listens.
        own: where it listens, which it never calls; its ports are those that are asked for in open mode.
    """
    app = Litestar(
        route_handlers=[*ROUTES, *PAGES, openapi_json],
        guards=[_guard],
        lifespan=[_lifespan(settings, own, workers=workers)],
        exception_handlers={
            HoldshortError: _of_its_room(errors.answer),
            HTTPException: _of_its_room(errors.answer_framework),
            Exception: _of_its_room(errors.answer_unexpected),
        },
        openapi_config=OpenAPIConfig(
            title="Holdshort",
            version=version("holdshort-server"),
            create_examples=False,
            operation_id_creator=operation_id,
            path="/openapi",
            # One plugin, as with none the framework adds its own pages, which load scripts from elsewhere.
            render_plugins=[JsonRenderPlugin()],
        ),
        request_max_body_size=None,
        logging_config=None,
    )
    # Around everything, as the framework calls its own middleware only where a route was found.
    ports = {endpoint.port for endpoint in own}

    def stands_open() -> bool:
        return bool(app.state.runtime.open)

    app.asgi_handler = ThisMachineOnly(app.asgi_handler, ports, stands_open)
    app.asgi_handler = SafeHeaders(app.asgi_handler, Cors(settings.cors_origins, stands_open))
    app.asgi_handler = RequestIds(app.asgi_handler, lambda: app.state.runtime.new_id("req_"))
    return app


def description() -> bytes:
    """The API's description as it is committed in sdk/openapi.json; `python -m controlplane.app` prints it."""
    return msgspec.json.format(msgspec.json.encode(document(create_app(Settings())), order="sorted"), indent=1) + b"\n"


@get("/openapi.json", include_in_schema=False, sync_to_thread=False, opt={"access": Access.ANY})
def openapi_json(request: Request[Any, Any, Any]) -> Response[dict[str, Any]]:
    """The API's description."""
    return Response(document(request.app))


async def _guard(asked: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    await (guard.guard if handler.opt.get(guard.ROOM) else access.guard)(asked, handler)


def _of_its_room(answer: Callable[[Request[Any, Any, Any], Any], Response[Any]]) -> Callable[..., Response[Any]]:
    """The reply to an exception: a page where a page was asked for, otherwise `answer`'s."""

    def reply(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
        is_page = f"{request.scope['path']}/".startswith("/inbox/")
        return faults.answer_fault(request, error) if is_page else answer(request, error)

    return reply


def _lifespan(
    settings: Settings, own: tuple[Endpoint, ...], *, workers: bool
) -> Callable[[Litestar], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: Litestar) -> AsyncIterator[None]:
        telemetry.guard_loop()
        runtime = Runtime(settings, own)
        app.state.runtime = runtime
        try:
            await migrations.check(runtime.engine)
            await runtime.settle_access()
            if not workers:
                yield
                return
            async with running(runtime):
                yield
        finally:
            await runtime.close()

    return lifespan


if __name__ == "__main__":
    sys.stdout.buffer.write(description())
