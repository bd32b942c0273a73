"""The API's description: what the framework sees of the handlers, with the bodies that we read ourselves."""

import re
from typing import Any

import msgspec
from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.types import Method
from litestar.types.internal_types import PathParameterDefinition

from controlplane.http.errors import STATUS

_BARE = "_bare"
_REF = "#/components/schemas/{name}"


def document(app: Litestar) -> dict[str, Any]:
    """The OpenAPI document of an application, as JSON-ready values in a stable order."""
    described: dict[str, Any] = app.openapi_schema.to_schema()
    kinds = [handler.opt["takes"] for handler in _handlers(app) if "takes" in handler.opt]
    _, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    schemas = described.setdefault("components", {}).setdefault("schemas", {})
    schemas.update(components)
    schemas["Problem"] = _problem()
    for handler in _handlers(app):
        for operation in _operations(described, handler):
            _complete(operation, handler)
    ordered: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(described, order="sorted"))
    return ordered


def operation_id(handler: HTTPRouteHandler, _: Method, path: list[str | PathParameterDefinition]) -> str:
    """A handler's name; the second address of a handler, which names no node, is told apart by its ending."""
    bare = "agents" in path and not handler.handler_name.endswith("_of_node")
    return f"{handler.handler_name}{_BARE if bare else ''}"


def _handlers(app: Litestar) -> list[HTTPRouteHandler]:
    found = {id(h): h for route in app.routes for h in getattr(route, "route_handlers", [])}
    return [h for h in found.values() if isinstance(h, HTTPRouteHandler)]


def _operations(described: dict[str, Any], handler: HTTPRouteHandler) -> list[dict[str, Any]]:
    return [
        operation
        for path in described["paths"].values()
        for operation in path.values()
        if isinstance(operation, dict) and str(operation.get("operationId")).removesuffix(_BARE) == handler.handler_name
    ]


def _complete(operation: dict[str, Any], handler: HTTPRouteHandler) -> None:
    schema = _body_of(handler)
    if schema is not None:
        required = not handler.opt.get("body_optional", False)
        operation["requestBody"] = {"required": required, "content": {"application/json": {"schema": schema}}}
    operation["description"] = re.sub(r"\s+", " ", handler.fn.__doc__ or "").strip()
    problem = {"application/problem+json": {"schema": {"$ref": _REF.format(name="Problem")}}}
    responses = operation["responses"]
    responses.pop("400", None)
    for status in handler.opt.get("also", ()):
        responses[str(status)] = responses[str(handler.status_code)]
    responses["default"] = {"description": "Refused; see `error`.", "content": problem}


def _body_of(handler: HTTPRouteHandler) -> dict[str, Any] | None:
    if handler.opt.get("takes_any"):
        return {"type": "object"}
    kind = handler.opt.get("takes")
    return None if kind is None else {"$ref": _REF.format(name=kind.__name__)}


def _problem() -> dict[str, Any]:
    text = {"type": "string"}
    fault = {"type": "object", "required": ["field", "rule"], "properties": {"field": text, "rule": text}}
    return {
        "type": "object",
        "required": ["type", "title", "status", "detail", "error", "message"],
        "properties": {
            "type": text,
            "title": text,
            "status": {"type": "integer"},
            "detail": text,
            "error": {"type": "string", "enum": sorted({error.code for error in STATUS})},
            "message": text,
            "request_id": text,
            "errors": {"type": "array", "items": fault},
        },
    }
