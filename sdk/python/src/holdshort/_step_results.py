"""A step's result on its way through JSON: what is stored, and what comes back, the first time and every other."""

import inspect
import json
import typing
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

import msgspec

from holdshort._errors import StepTooLarge

LARGEST = 1024 * 1024


class _Unknown(Exception):
    """No JSON is converted to this type."""


def encoded(name: str, result: Any) -> bytes:
    """The JSON of a step's result.

    Args:
        name: of the step, for the message.
        result: whatever msgspec can encode, and pydantic's models.

    Raises:
        TypeError: it is no JSON, or holds NaN or infinity, which JSON does not have.
        StepTooLarge: it is over 1 MiB.
    """
    try:
        plain = msgspec.to_builtins(result, str_keys=True, enc_hook=_from_model)
        raw = msgspec.json.encode(plain)
        if b"null" in raw:
            # NaN and infinity are written as null; only this encoder says that they are there.
            json.dumps(plain, allow_nan=False)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise TypeError(f"the result of step {name!r} is no JSON, so nothing was stored: {error}") from error
    if len(raw) > LARGEST:
        known = {"size_bytes": len(raw), "limit_bytes": LARGEST}
        message = f"the result of step {name!r} is {len(raw):,} bytes of JSON, and {LARGEST:,} is the most"
        raise StepTooLarge(f"{message}; store it elsewhere and return where it is", details=known)
    return raw


def decoded(name: str, result: Any, kind: Any) -> Any:
    """A stored result as the type that its function names.

    Args:
        name: of the step, for the message.
        result: decoded JSON.
        kind: an annotation; the plain value is returned for one that msgspec cannot convert to.

    Raises:
        TypeError: the value is of another form than the annotation says.
    """
    try:
        return msgspec.convert(result, kind, str_keys=True, dec_hook=to_model)
    except msgspec.ValidationError as error:
        raise TypeError(f"the result of step {name!r} is not what its annotation says: {error}") from error
    except (TypeError, _Unknown):
        return result


def annotation(function: Callable[..., Any]) -> Any:
    """The type that a function says it returns; Any where it says nothing that can be resolved."""
    while isinstance(function, partial):
        function = function.func
    if inspect.isclass(function):
        return function
    if not inspect.isroutine(function):
        function = type(function).__call__
    try:
        kind = typing.get_type_hints(function, include_extras=True).get("return", Any)
    except Exception:  # a name that only type checkers know
        return Any
    if typing.get_origin(kind) in {Coroutine, Awaitable}:
        return typing.get_args(kind)[-1]
    return kind


def _from_model(value: Any) -> Any:
    """Pydantic's models, known by what they can, so that pydantic is not needed."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, round_trip=True)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def to_model(kind: type, value: Any) -> Any:
    """One of pydantic's models from plain values; for msgspec's `dec_hook`."""
    if hasattr(kind, "model_validate"):
        return kind.model_validate(value)
    raise _Unknown
