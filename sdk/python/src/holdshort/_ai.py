"""One question to a language model, through litellm, which is imported when the first one is asked."""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from holdshort._ai_forms import Form
from holdshort._errors import AiAnswerInvalid, AiFailed, MissingExtra, ModelUnknown
from holdshort._threads import in_thread

MODEL = "HOLDSHORT_AI_MODEL"
# What ai() says itself, and what would make of the answer something else than one text.
_OURS = frozenset({"messages", "response_format", "stream"})
_SECRET = re.compile(r"key|token|secret|password|credential|auth|header", re.IGNORECASE)
_SHORTEST_SECRET = 6
_SHOWN = 2_000


class Asking:
    """Asks; equal to any other, so that only what is asked tells two calls apart, and no option is kept anywhere.

    Args:
        form: of the answer.
        options: for litellm, keys and all.

    Raises:
        TypeError: an option is ai's own.
    """

    def __init__(self, form: Form, options: Mapping[str, Any]) -> None:
        if ours := sorted(_OURS & options.keys()):
            raise TypeError(f"ai() takes no {', '.join(ours)}: give system, user and schema")
        self._form = form
        self._options = options

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Asking)

    __hash__ = None  # type: ignore[assignment]  # never looked up

    async def __call__(self, system: str | None, user: str, model: str | None, schema: Mapping[str, Any] | None) -> Any:
        """The answer, checked: text without a schema, else JSON.

        Raises:
            ModelUnknown: no model is given, nor set.
            MissingExtra: litellm is not installed.
            AiFailed: it could not be asked.
            AiAnswerInvalid: the answer does not fit.
        """
        named = model or os.environ.get(MODEL)
        if not named:
            raise ModelUnknown
        said = [{"role": "system", "content": system}] if system else []
        said.append({"role": "user", "content": user})
        formed = {} if schema is None else {"response_format": self._form.response_format}
        litellm = await in_thread(_litellm, "litellm")
        try:
            response = await litellm.acompletion(model=named, messages=said, **formed, **self._options)
            choice = response.choices[0]
            text, finish = choice.message.content, choice.finish_reason
        except Exception as error:  # litellm's, its providers' and its transports' own
            raise self._failed(named, error) from error
        return self._read(named, text, finish)

    def _read(self, model: str, text: str | None, finish: str | None) -> Any:
        try:
            return self._form.read(text)
        except ValueError as error:
            cut_off = "; it was cut off, so raise max_tokens" if finish == "length" else ""
            known = {"answer": (text or "")[:_SHOWN], "finish_reason": finish, "model": model}
            raise AiAnswerInvalid(f"the answer of {model} does not fit: {error}{cut_off}", details=known) from error

    def _failed(self, model: str, error: Exception) -> AiFailed:
        told = f"{model} could not be asked: {type(error).__name__}: {error}"
        # What a run failed with is stored, and a provider may repeat the key that it refuses.
        for secret in _secrets(self._options):
            told = told.replace(secret, "***")
        return AiFailed(told, details={"kind": type(error).__name__, "status": getattr(error, "status_code", None)})


def _litellm() -> Any:
    # Otherwise its import fetches the newest list of prices from somebody's server.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        # They take seconds, so they are imported here, in a thread.
        import jsonschema  # noqa: F401, PLC0415
        import litellm  # noqa: PLC0415
    except ImportError as missing:
        raise MissingExtra("app.ai() needs litellm: pip install 'holdshort[ai]'") from missing
    litellm.suppress_debug_info = True
    return litellm


def _secrets(options: Mapping[str, Any]) -> Iterator[str]:
    """Every text that an option or the environment keeps under a name that says secret."""
    for name, value in (*options.items(), *os.environ.items()):
        if _SECRET.search(name):
            yield from (text for text in _texts(value) if len(text) >= _SHORTEST_SECRET)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
