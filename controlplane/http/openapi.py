"""The API's description: what the framework sees of the handlers, with the bodies that we read ourselves."""

import re
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.types import Method
from litestar.types.internal_types import PathParameterDefinition

from controlplane.domain.access import Access
from controlplane.domain.decisions import WORDS, Decision
from controlplane.domain.form_kinds import FormKind
from controlplane.edge.errors import MEDIA_TYPE, STATUS

_BARE = "_bare"
_REF = "#/components/schemas/{name}"
_SECURITY = {
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "bearer": {"type": "http", "scheme": "bearer"},
}
# A person cannot decide that the time is up.
_BY_PEOPLE = [word for word in WORDS if word != Decision.EXPIRED]
# What any request may be answered with, whatever it asks for.
_ALWAYS = frozenset({400, 403, 408, 421, 431, 503})
_KEYED = frozenset({401, 429})
_WITH_A_BODY = frozenset({409, 413, 415, 422})
_LOOKS = frozenset({"GET", "HEAD"})


def document(app: Litestar) -> dict[str, Any]:
    """The OpenAPI document of an application, as JSON-ready values in a stable order."""
    described: dict[str, Any] = app.openapi_schema.to_schema()
    kinds = [handler.opt["takes"] for handler in _handlers(app) if "takes" in handler.opt]
    _, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    schemas = described.setdefault("components", {}).setdefault("schemas", {})
    schemas.update(components)
    # It is kept as the bytes that came, so the struct does not say what it may be.
    schemas["DecisionIn"] |= {"required": ["decision"]}
    schemas["DecisionIn"]["properties"]["decision"] = {"type": "string", "enum": _BY_PEOPLE}
    schemas["AskIn"]["properties"]["form"] = _form()
    schemas["Problem"] = _problem()
    described["components"]["responses"] = {str(int(status)): _refusal(status) for status in set(STATUS.values())}
    described["components"]["securitySchemes"] = _SECURITY
    for handler in _handlers(app):
        for operation in _operations(described, handler):
            _complete(operation, handler)
    described["paths"] = _unions(described["paths"])
    described["components"]["schemas"] = _unions(schemas)
    ordered: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(described, order="sorted"))
    return ordered


def _form() -> dict[str, Any]:
    """What a question asks for; as with a decision, the bytes that came are read by the domain."""
    members: dict[str, Any] = {"options": {"type": "array", "items": {"type": "string"}}}
    members |= {name: {"type": "string"} for name in ("yes_label", "no_label")}
    members |= {"schema": {"type": "object"}, "editable": {"type": "boolean"}}
    members |= {"kind": {"type": "string", "enum": list(FormKind)}}
    described = {"type": "object", "properties": members, "required": ["kind"], "additionalProperties": False}
    return {"anyOf": [described, {"type": "null"}]}


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
    operation["security"] = [] if handler.opt["access"] is Access.PUBLIC else [{name: []} for name in _SECURITY]
    responses = operation["responses"]
    responses.pop("400", None)
    for status in handler.opt.get("also", ()):
        responses[str(status)] = responses[str(handler.status_code)]
    for status in _refusals(operation, handler):
        responses[str(status)] = {"$ref": f"#/components/responses/{status}"}


def _refusals(operation: dict[str, Any], handler: HTTPRouteHandler) -> set[int]:
    """Every status that a request of this kind may be refused with, wherever on its way that happens."""
    found = set(_ALWAYS)
    if handler.opt["access"] is not Access.PUBLIC or "requestBody" in operation:
        found |= _KEYED
    if operation.get("parameters"):
        found |= {404, 422}
    if not handler.http_methods <= _LOOKS:
        found |= {404, 409}
    found |= set(handler.opt.get("refuses", ()))
    return found | _WITH_A_BODY if "requestBody" in operation else found


def _refusal(status: HTTPStatus) -> dict[str, Any]:
    codes = sorted(error.code for error, its in STATUS.items() if its == status)
    problem = {"schema": {"$ref": _REF.format(name="Problem")}}
    return {"description": f"{status.phrase}: {', '.join(codes)}.", "content": {MEDIA_TYPE: problem}}


def _unions(value: Any) -> Any:
    """The framework says `oneOf` of every union, which nothing fits that two of its kinds take, such as JSON's null."""
    if isinstance(value, dict):
        return {"anyOf" if name == "oneOf" else name: _unions(each) for name, each in value.items()}
    return [_unions(each) for each in value] if isinstance(value, list) else value


def _body_of(handler: HTTPRouteHandler) -> dict[str, Any] | None:
    if handler.opt.get("takes_any"):
        return _webhook()
    kind = handler.opt.get("takes")
    return None if kind is None else {"$ref": _REF.format(name=kind.__name__)}


def _webhook() -> dict[str, Any]:
    """What `http.inbound` reads: the decision at the top, or in an envelope; further members are the sender's own."""
    text: dict[str, Any] = {"type": "string"}
    word = {"type": "string", "enum": WORDS}
    flat = {
        "type": "object",
        "required": ["decision"],
        "properties": {
            **dict.fromkeys(("requestId", "approval_request_id", "approval_id", "executionId", "execution_id"), text),
            "decision": word,
            "feedback": text,
            "response": {},
            "round": {"type": "integer", "minimum": 1},
        },
    }
    answer = {"type": "object", "properties": {"decision": word, "action": word, "feedback": text}}
    data = {"type": "object", "properties": {"requestId": text, "id": text, "executionId": text, "response": answer}}
    envelope = {"type": "object", "required": ["type", "data"], "properties": {"type": text, "data": data}}
    return {"anyOf": [flat, envelope]}


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
