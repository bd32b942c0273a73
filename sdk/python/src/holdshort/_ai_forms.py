"""What form an answer must have: a schema to send, and a check of what comes back."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from holdshort._step_results import decoded

_BY_NAME = frozenset({"properties", "$defs"})
_NAMED = re.compile(r"[^A-Za-z0-9_-]")


class Form:
    """The form of an answer.

    Args:
        schema: None for text; a JSON Schema; a type that msgspec knows; or one of pydantic's models.

    Raises:
        TypeError: no JSON Schema of an object can be made of it.
    """

    def __init__(self, schema: Any) -> None:
        self.kind: Any = str
        self.sent: Mapping[str, Any] | None = None
        self._name = "answer"
        self._fit: Callable[[Any], Any] = lambda answer: answer
        if isinstance(schema, Mapping):
            self.kind, self.sent = Any, schema
            self._name = str(schema.get("title") or self._name)
            self._fit = self._against_schema
        elif schema is not None:
            self.kind, self._name = schema, getattr(schema, "__name__", self._name)
            self.sent = _closed(schema_of(schema))
            self._fit = self._as_kind

    @property
    def response_format(self) -> dict[str, Any]:
        """What makes a model answer in this form."""
        name = _NAMED.sub("_", self._name)[:64]
        return {"type": "json_schema", "json_schema": {"name": name, "schema": self.sent, "strict": True}}

    def read(self, text: str | None) -> Any:
        """The answer: the text itself, or what its JSON stands for.

        Raises:
            ValueError: it has no text, is no JSON, or does not fit.
        """
        if not text:
            raise ValueError("it has no text")
        if self.sent is None:
            return text
        try:
            answer = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ValueError(f"it is no JSON: {error}") from error
        return self._fit(answer)

    def _as_kind(self, answer: Any) -> Any:
        try:
            return decoded(self._name, answer, self.kind)
        except TypeError as error:
            raise ValueError(str(error.__cause__ or error)) from error

    def _against_schema(self, answer: Any) -> Any:
        import jsonschema  # noqa: PLC0415  # comes with the extra, as litellm does

        try:
            jsonschema.validate(answer, self.sent)
        except jsonschema.ValidationError as error:
            raise ValueError(f"{error.json_path}: {error.message}") from error
        except jsonschema.SchemaError as error:
            raise TypeError(f"the schema itself is no JSON Schema: {error.message}") from error
        return answer


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a type that msgspec knows, or of one of pydantic's models.

    Raises:
        TypeError: it is none of an object.
    """
    if hasattr(kind, "model_json_schema"):
        schema: dict[str, Any] = kind.model_json_schema()
    else:
        schema = msgspec.json.schema(kind)
    # Models that are bound to a schema want an object outside, and not a reference to one.
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    whole = {**schema.get("$defs", {}).get(name, {}), **schema} if name else schema
    whole.pop("$ref", None)
    if whole.get("type") != "object":
        raise TypeError(f"an answer's schema must be of an object, and {kind!r} is none; put it into a struct")
    return whole


def _closed(schema: Any) -> Any:
    """The schema as strict mode wants it: every member named, every member given."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {word: _members(value) if word in _BY_NAME else _closed(value) for word, value in schema.items()}
    closed.pop("default", None)
    if "properties" in schema and schema.get("type") == "object":
        closed |= {"additionalProperties": False, "required": list(schema["properties"])}
    return closed


def _members(schemas: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _closed(schema) for name, schema in schemas.items()}
