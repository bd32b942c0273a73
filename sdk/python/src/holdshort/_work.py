"""Work: what a run does once, however often it is started again."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload
from unicodedata import category

from holdshort._ai import Asking
from holdshort._ai_forms import Form
from holdshort._errors import NoExecution
from holdshort._step_calls import Deed
from holdshort._step_results import annotation

if TYPE_CHECKING:
    from holdshort._runs import Run

P = ParamSpec("P")
T = TypeVar("T")
_LONGEST_NAME = 200


def _breaks(character: str) -> bool:
    """Control characters, halves of a pair and line breaks: the control plane takes none of them."""
    return category(character) in {"Cc", "Cs", "Zl", "Zp"}


class Work:
    """Steps of an agent's runs; a base class of Agent, which knows the current run."""

    def _run(self) -> "Run | None":
        raise NotImplementedError

    @overload
    def step(
        self, name: str, fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, T]: ...
    @overload
    def step(self, name: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]: ...
    def step(self, name: str, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """Do something once: its result is stored before it is returned, and a restarted run gets what was stored.

        A run that dies while fn works does it again when it is restarted, so fn should bear being done twice. What fn
        raises is not stored: it comes out here, and a restarted run tries again. The same call repeated at once after
        it raised (same fn, equal arguments) is the same step, so a result that took three tries is stored as one.

        A restarted run knows its steps by their names and their order *within each task*: tasks may finish in any
        order. Calls of one name that start side by side are known by the order in which `step(...)` was called, not by
        when they ran, so `gather(*(app.step("fetch", fetch, url) for url in urls))` gives each url its own result. A
        task is known by where it was created, the name of its function, and the how-many-eth of these it is. Where
        that order may change (queues, sets, threads, `as_completed` of coroutines), put what tells the calls apart into
        the name: `f"fetch {url}"`. Before Python 3.12 `asyncio.wait_for` makes a task of what it awaits;
        `asyncio.timeout` does not. A step inside fn is part of this one.

        Names and order must not change while runs are open: code that asks for another step than the one that is
        stored ends the run with StepMismatch, before anything is done.

        Args:
            name: 1-200 characters.
            fn: async, or plain; a plain one is called in a thread. Its result is JSON up to 1 MiB, and what comes
                back is what JSON made of it: converted to fn's return annotation (structs, dataclasses, pydantic's
                models, datetimes, ...), the first time too, or plain where there is none.
            *args: for fn.
            **kwargs: for fn.

        Raises:
            NoExecution: outside a run.
            TypeError: the result is no JSON, or not what the annotation says; nothing was stored.
            StepTooLarge: the result is over 1 MiB; nothing was stored.
            ExecutionFinished: the run was ended meanwhile, so the result could not be stored. After a rejection or
                an expiry, where the code may clean up, the result is returned without being stored.
        """
        return self._step(Deed(name, fn, args, kwargs, annotation(fn)))

    @overload
    def step_sync(self, name: str, fn: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    def step_sync(self, name: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    def step_sync(self, name: str, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """As `step`, for plain functions: calls fn in the function's own thread, and blocks that.

        Raises:
            NoExecution: not called from the thread of a plain reasoner, or one started from async code of a run.
        """
        run = self._running(name)
        if run.on_loop:
            raise NoExecution("step_sync would block the event loop; await step() here")
        deed = Deed(name, fn, args, kwargs, annotation(fn))
        ticket = run.steps.called(deed)
        return deed.perform_blocking(run.blocking) if ticket is None else run.steps.do_blocking(ticket)

    @overload
    def ai(
        self,
        *,
        user: str,
        system: str | None = None,
        model: str | None = None,
        schema: None = None,
        name: str = "ai",
        **options: Any,
    ) -> Coroutine[Any, Any, str]: ...
    @overload
    def ai(
        self,
        *,
        user: str,
        schema: type[T],
        system: str | None = None,
        model: str | None = None,
        name: str = "ai",
        **options: Any,
    ) -> Coroutine[Any, Any, T]: ...
    @overload
    def ai(
        self,
        *,
        user: str,
        schema: Mapping[str, Any],
        system: str | None = None,
        model: str | None = None,
        name: str = "ai",
        **options: Any,
    ) -> Coroutine[Any, Any, Any]: ...
    def ai(
        self,
        *,
        user: str,
        system: str | None = None,
        model: str | None = None,
        schema: Any = None,
        name: str = "ai",
        **options: Any,
    ) -> Coroutine[Any, Any, Any]:
        """Ask a language model, as a step: what it answered is stored, and a restarted run asks nothing again.

        It goes through litellm (`pip install 'holdshort[ai]'`), so model is `provider/name` and keys come from where
        litellm takes them. Only the answer is stored: no key, no option, no question.

        Args:
            user: the question.
            system: instructions.
            model: HOLDSHORT_AI_MODEL when absent.
            schema: the form of the answer: a struct, dataclass or TypedDict, one of pydantic's models, or a JSON
                Schema. It is sent in strict mode, in which a model has to give every member.
            name: of the step; see `step` for when calls need names of their own.
            **options: for litellm: temperature, max_tokens, api_base, api_key, timeout, ...

        Returns:
            The text; with a schema, the answer as that type, or plain JSON where the schema is a JSON Schema.

        Raises:
            ModelUnknown: no model is given, nor set.
            MissingExtra: litellm is not installed.
            AiFailed: the model could not be asked; nothing is stored, so asking again is safe.
            AiAnswerInvalid: the answer does not fit the schema, or has no text; nothing is stored.
            TypeError: the schema is none, or an option is ai's own.
        """
        form = Form(schema)
        args = (system, user, model, form.sent)
        return self._step(Deed(name, Asking(form, options), args, {}, form.kind))

    def _step(self, deed: Deed) -> Coroutine[Any, Any, Any]:
        run = self._running(deed.name)
        if not run.on_loop:
            raise NoExecution("step is awaited by async code on the run's own loop; in a thread use step_sync")
        # The call counts, not when its coroutine first runs: start order is the same on every replay.
        ticket = run.steps.called(deed)
        return deed.perform() if ticket is None else run.steps.do(ticket)

    def _running(self, name: str) -> "Run":
        run = self._run()
        if run is None:
            raise NoExecution
        # Before anything is done: a result under a name that is refused could not be stored.
        if not 1 <= len(name) <= _LONGEST_NAME or any(map(_breaks, name)):
            raise ValueError(f"a step's name is 1-{_LONGEST_NAME} characters, no control characters, not {name!r}")
        return run
