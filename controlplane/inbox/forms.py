"""What a person sent: a form of one of our own pages, read strictly, or nothing."""

from collections.abc import Callable
from typing import Any

from litestar import Request

from controlplane.domain.door_errors import MalformedRequest
from controlplane.domain.errors import UnsupportedMediaType
from controlplane.edge.bodies import MIB, read
from controlplane.inbox import csrf, urlencoded

MEDIA_TYPE = "application/x-www-form-urlencoded"
_CHARSETS = frozenset({"", "charset=utf-8", 'charset="utf-8"'})


async def form_of(
    request: Request[Any, Any, Any], *, limit: int = MIB, repeatable: Callable[[str], bool] | None = None
) -> dict[str, str]:
    """The fields of a form that a page of ours sent for the session that it came with, without the token.

    Args:
        request: what was sent; the token stands in its field `csrf` or in its header `X-CSRF-Token`.
        limit: bytes that it may have.
        repeatable: says of a field's name whether it may come more than once; here the first value counts.

    Raises:
        CrossOrigin, FormStale: no page of ours sent it, or not one of this session.
        UnsupportedMediaType, MalformedRequest, BodyTooLarge: it is no form that has one reading.
    """
    found = await form_lists(request, limit=limit, repeatable=repeatable)
    return {name: values[0] for name, values in found.items()}


async def form_lists(
    request: Request[Any, Any, Any], *, limit: int = MIB, repeatable: Callable[[str], bool] | None = None
) -> dict[str, list[str]]:
    """As `form_of`, with every value of each field in their order: one of each, but for those that may be repeated."""
    found = await unbound_form(request, limit=limit, repeatable=repeatable)
    token = request.headers.get(csrf.HEADER) or next(iter(found.get(csrf.FIELD, ())), "")
    csrf.check_token(request, token)
    found.pop(csrf.FIELD, None)
    return found


async def unbound_form(
    request: Request[Any, Any, Any], *, limit: int, repeatable: Callable[[str], bool] | None = None
) -> dict[str, list[str]]:
    """A form of a page of ours that no session is needed for: nothing but its origin is checked."""
    csrf.check_origin(request)
    _check_media_type(request)
    found: dict[str, list[str]] = {}
    for field in urlencoded.parse(await read(request, limit=limit)):
        values = found.setdefault(field.name, [])
        if values and (repeatable is None or not repeatable(field.name)):
            raise MalformedRequest("A field of the form came twice; send each once.")
        values.append(field.value)
    return found


def _check_media_type(request: Request[Any, Any, Any]) -> None:
    sent = request.headers.getall("content-type", [])
    kind, _, rest = (sent[0] if len(sent) == 1 else "").partition(";")
    if kind.strip().lower() != MEDIA_TYPE or rest.strip().lower() not in _CHARSETS:
        raise UnsupportedMediaType(f"A form is sent as {MEDIA_TYPE}; send it so.")
