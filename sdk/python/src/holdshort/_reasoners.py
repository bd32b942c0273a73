"""A function with its annotations as the contract: input is converted and checked before the run starts."""

import inspect
import re
import typing
from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal

import msgspec

from holdshort._errors import InvalidInput
from holdshort._runs import current_run
from holdshort._threads import in_thread

Resume = Literal["when_decided", "at_start"]
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_WHERE = re.compile(r" - at `\$\.?(?P<path>.*)`$")
_FIELD = re.compile(r"field `(?P<name>[^`]+)`")


class Reasoner:
    """A registered function.

    Args:
        function: async or plain; its parameters must be named.
        name: under which it is called.
        timeout_seconds: of work; waiting for people does not count.
        resume: how a run whose process died is started again.

    Raises:
        TypeError: the function takes *args, **kwargs or positional-only parameters.
    """

    def __init__(
        self, function: Callable[..., Any], name: str, *, timeout_seconds: float | None, resume: Resume
    ) -> None:
        self.function = function
        self.name = name
        self.timeout_seconds = timeout_seconds
        self.resume = resume
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind not in _NAMED:
                raise TypeError(f"reasoner {name}: parameter {parameter} cannot be given by name")

    @property
    def plain(self) -> bool:
        """True for a function that is not async, and runs in a thread."""
        return not inspect.iscoroutinefunction(self.function)

    @cached_property
    def schema(self) -> dict[str, Any] | None:
        """The JSON Schema of its input; None where an annotation has none."""
        try:
            return msgspec.json.schema(self._accepts)
        except Exception:  # it is for readers only; whatever hinders it must not hinder the agent
            return None

    @cached_property
    def _accepts(self) -> type[msgspec.Struct]:
        hints = typing.get_type_hints(self.function, include_extras=True)
        fields: list[Any] = []
        for parameter in inspect.signature(self.function).parameters.values():
            annotation = hints.get(parameter.name, Any)
            if parameter.default is parameter.empty:
                fields.append((parameter.name, annotation))
            else:
                # The default itself is left to the call, so that any value works and none is shared by conversion.
                fields.append((parameter.name, annotation | msgspec.UnsetType, msgspec.UNSET))
        return msgspec.defstruct(self.name, fields, kw_only=True, forbid_unknown_fields=True)

    def check(self) -> None:
        """Resolve the annotations now; raises TypeError for one that no JSON can be converted to."""
        msgspec.json.Decoder(self._accepts)

    def arguments(self, raw: Any) -> dict[str, Any]:
        """The keyword arguments of a call.

        Args:
            raw: decoded JSON.

        Raises:
            InvalidInput: names the field and the rule.
        """
        try:
            given = msgspec.convert(raw, self._accepts)
        except msgspec.ValidationError as error:
            raise _invalid(error) from error
        return {k: v for k, v in msgspec.structs.asdict(given).items() if v is not msgspec.UNSET}

    async def call(self, arguments: dict[str, Any]) -> Any:
        """Run the function: on the loop when it is async, else in a thread of its own."""
        if self.plain:
            return await in_thread(lambda: self._in_its_thread(arguments), self.name)
        return await self.function(**arguments)

    def _in_its_thread(self, arguments: dict[str, Any]) -> Any:
        if run := current_run.get():
            run.steps.moved_here()
        return self.function(**arguments)


def _invalid(error: msgspec.ValidationError) -> InvalidInput:
    text = str(error)
    where = _WHERE.search(text)
    rule = text[: where.start()] if where else text
    named = _FIELD.search(rule)
    parts = [where["path"] if where else "", named["name"] if named else ""]
    field = ".".join(part for part in parts if part) or "input"
    fault = InvalidInput(f"{field}: {rule}", details={"errors": [{"field": field, "rule": rule}]})
    fault.field, fault.rule = field, rule
    return fault
