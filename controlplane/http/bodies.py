"""Bytes of a request to a struct: capped, JSON only, strict, and every fault with its field and rule."""

import re
from typing import Any, TypeVar

import msgspec
from litestar import Request
from msgspec import Struct

from controlplane.domain import json_text
from controlplane.domain.errors import BodyTooLarge, FieldFault, InvalidBody, UnsupportedMediaType

MIB = 1024 * 1024
BodyType = TypeVar("BodyType", bound=Struct)

_PLACE = re.compile(r"^(?P<rule>.*?)(?: - at `(?P<path>[^`]*)`)?$", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<field>[^`]*)`")


async def read(request: Request[Any, Any, Any], *, limit: int) -> bytes:
    """The request's body.

    Raises:
        BodyTooLarge: it has more than `limit` bytes.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise BodyTooLarge(f"The body may have {limit} bytes; send less.", limit_bytes=limit)
    return bytes(body)


async def take(request: Request[Any, Any, Any], kind: type[BodyType], *, limit: int = MIB) -> BodyType:
    """The request's JSON body as a struct.

    Raises:
        UnsupportedMediaType: it does not say that it is JSON.
        BodyTooLarge: it has more than `limit` bytes.
        InvalidBody: it is no JSON that every parser reads alike.
        FieldFault: a field is missing, or of another type or size than the rule says.
    """
    media_type = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if media_type != "application/json":
        raise UnsupportedMediaType
    return decode(await read(request, limit=limit), kind)


def decode(raw: bytes, kind: type[BodyType]) -> BodyType:
    """JSON bytes as a struct; raises as `take` does."""
    json_text.check(raw)
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise _fault(str(error)) from None
    except msgspec.DecodeError:
        raise InvalidBody from None


def plain(raw: bytes) -> object:
    """One JSON value that was checked with its body before."""
    value: object = msgspec.json.decode(raw)
    return value


def _fault(message: str) -> FieldFault:
    found = _PLACE.match(message)
    rule, path = (found["rule"], found["path"]) if found else (message, None)
    missing = _MISSING.fullmatch(rule)
    field = (path or "$").removeprefix("$").lstrip(".")
    if missing:
        return FieldFault(".".join(filter(None, [field, missing["field"]])), "is required")
    return FieldFault(field or "body", rule[0].lower() + rule[1:])
