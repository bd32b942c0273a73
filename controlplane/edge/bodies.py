"""Bytes of a request to a struct: capped, JSON only, strict, and every fault with its field and rule."""

import re
from typing import Any, TypeVar

import msgspec
from litestar import Request
from litestar.exceptions import InternalServerException
from msgspec import Struct

from controlplane.domain.door_errors import MalformedRequest
from controlplane.domain.errors import BodyTooLarge, FieldFault, InvalidBody, UnsupportedMediaType
from controlplane.edge import strict_json
from controlplane.edge.rules import rule_of

MIB = 1024 * 1024
BodyType = TypeVar("BodyType", bound=Struct)

_LENGTH = re.compile(r"[0-9]{1,19}")
_MISSING = re.compile(r"Object missing required field `(?P<field>[^`]*)`")
_PLACE = re.compile(r" - at `\$\.(?P<field>[A-Za-z_]+)[^`]*`$")


async def read(request: Request[Any, Any, Any], *, limit: int) -> bytes:
    """The request's body.

    Raises:
        BodyTooLarge: it has more than `limit` bytes.
        MalformedRequest: the caller went away before it had come; nobody reads this answer.
    """
    body, size, keeping = bytearray(), 0, _announced(request) <= limit
    if not keeping and "expect" in request.headers:
        raise _too_large(limit)  # it waits to be told to send
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size > limit:
                raise _too_large(limit)
            if keeping:
                body += chunk
    except InternalServerException:
        raise MalformedRequest("The connection ended before the body had come.") from None
    return bytes(body)


async def take(request: Request[Any, Any, Any], kind: type[BodyType], *, limit: int = MIB) -> BodyType:
    """The request's JSON body as a struct.

    Raises:
        UnsupportedMediaType: it does not say that it is JSON.
        BodyTooLarge: it has more than `limit` bytes.
        InvalidBody: it is no JSON that every parser reads alike.
        FieldFault: a field is missing, or of another type or size than the rule says.
    """
    return decode(await read_json(request, limit=limit), kind)


async def read_json(request: Request[Any, Any, Any], *, limit: int) -> bytes:
    """The request's body, which must say that it is JSON; raises as `read` does, and UnsupportedMediaType."""
    _check_media_type(request)
    return await read(request, limit=limit)


async def take_if_sent(request: Request[Any, Any, Any], kind: type[BodyType]) -> BodyType:
    """As `take`, but a request without a body is one with an empty object."""
    raw = await read(request, limit=MIB)
    if not raw:
        return kind()
    _check_media_type(request)
    return decode(raw, kind)


def decode(raw: bytes, kind: type[BodyType]) -> BodyType:
    """JSON bytes as a struct; raises as `take` does."""
    strict_json.check(raw)
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise _fault(str(error), kind) from None
    except msgspec.DecodeError:
        raise InvalidBody from None


def plain(raw: bytes) -> object:
    """One JSON value that was checked with its body before."""
    value: object = msgspec.json.decode(raw)
    return value


def _announced(request: Request[Any, Any, Any]) -> int:
    length = request.headers.get("content-length", "")
    return int(length) if _LENGTH.fullmatch(length) else 0


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(f"The body may have {limit} bytes; send less.", limit_bytes=limit)


def _check_media_type(request: Request[Any, Any, Any]) -> None:
    media_type = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if media_type != "application/json":
        raise UnsupportedMediaType


def _fault(message: str, kind: type[Struct]) -> FieldFault:
    missing = _MISSING.fullmatch(message)
    if missing:
        return FieldFault(missing["field"], "is required")
    place = _PLACE.search(message)
    return FieldFault(*rule_of(kind, place["field"])) if place else FieldFault("body", "must be a JSON object")
