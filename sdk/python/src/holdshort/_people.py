"""What an agent asks people beside approvals: for what leaves no trace, and for what is kept."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar

from msgspec import Struct

from holdshort import _errors
from holdshort._choices import FeedbackKind, checked_choices, invalid
from holdshort._feedback import unique_id as new_unique_id
from holdshort._forms import FormKind, Sought, of_question
from holdshort._wire import ApprovalResult, OnExpiry

if TYPE_CHECKING:
    from holdshort._rounds import Rounds
    from holdshort._runs import Run
    from holdshort._session import Sessions

T = TypeVar("T")
_LONGEST_TITLE = 200
InputKind = Literal["text", "yes_no", "multiple_choice"]


class HumanInput(Struct, frozen=True, kw_only=True):
    """What a person put in, and to which kind of question.

    `answer` is the text, the option that was chosen, or `yes` or `no`. It has no truth value, as a no is text too:
    ask `.yes`.
    """

    kind: InputKind
    answer: str

    @property
    def yes(self) -> bool:
        """True only for the yes of a yes_no question."""
        return self.kind == "yes_no" and self.answer == "yes"

    @property
    def no(self) -> bool:
        """True only for the no of a yes_no question."""
        return self.kind == "yes_no" and self.answer == "no"

    def __bool__(self) -> NoReturn:
        """Refuse: `if given:` would go on after a no too."""
        raise TypeError("a HumanInput has no truth value; ask given.yes, or look at given.answer")


class People:
    """What an agent asks of people; a base class of Agent, which knows the current run."""

    sessions: "Sessions"

    def _run(self) -> "Run | None":
        raise NotImplementedError

    def _asker(self, run: "Run | None", execution_id: str | None) -> "tuple[Rounds, str]":
        raise NotImplementedError

    def _seek(
        self,
        sought: Sought | None,
        approval_request_id: str,
        *,
        timeout: float | None,
        execution_id: str | None,
        **asked: Any,
    ) -> Coroutine[Any, Any, ApprovalResult]:
        raise NotImplementedError

    async def human_feedback(  # noqa: PLR0913  # the order is part of the published signature
        self,
        message_for_user: str,
        unique_id: str,
        timeout_seconds: float = 300,
        options: Sequence[str] | None = None,
        kind: FeedbackKind | None = None,
        *,
        yes_label: str | None = None,
        no_label: str | None = None,
    ) -> str:
        """Ask a person for what only they can give, a one-time code or a yes, and wait: seconds to half an hour.

        The answer goes to this call and is stored nowhere, so keep it out of logs, notes, results and steps. For the
        same reason this is no step: a run that is started again asks again, and the id of the question that was asked
        before is used up, so make a new one each time with `holdshort.unique_id("otp")`. What may wait for hours, or
        has to be remembered, is a question for `ask` or `pause`.

        Restarts of the control plane are not noticed. A call that is cancelled, or whose run ends, withdraws its
        question; when the process dies the question is gone within 15 s. Time spent waiting does not count as work.

        Args:
            message_for_user: the question, 1-4,000 characters.
            unique_id: 1-128 of `A-Z a-z 0-9 . _ ~ : -`, new for each question.
            timeout_seconds: 5-1800; nobody's answer is waited for longer.
            options: of multiple_choice, 1-20 distinct texts of 1-200 characters.
            kind: text, yes_no, multiple_choice or secret (masked while it is typed); multiple_choice where options
                are given, else text.
            yes_label: what the yes of yes_no is called.
            no_label: what its no is called.

        Returns:
            The text; for yes_no `yes` or `no`, for multiple_choice the option.

        Raises:
            InvalidField: a field breaks its rule; nothing was asked.
            FeedbackExpired: nobody answered in time. That is never an approval.
            FeedbackCancelled: the question was withdrawn.
            DuplicateRequest: another call asks under this id.
            RequestIdUsed: a question under this id ended within the last hour.
            ConnectionFailed: the control plane was not reached for as long; nothing was answered.
        """
        known: dict[str, Any] = {"yes_label": yes_label, "no_label": no_label}
        asked = (message_for_user, unique_id, timeout_seconds, options, kind)
        run = self._run()
        async with self.sessions.use() as session:
            if run is None:
                return await session.client.human_feedback(*asked, **known)
            with run.waiting():
                answer = await session.client.human_feedback(*asked, execution_id=run.execution_id, **known)
                # A yes must not wake code that was taken over while it waited.
                await run.sure()
            return answer

    def human_feedback_sync(  # noqa: PLR0913  # as human_feedback
        self,
        message_for_user: str,
        unique_id: str,
        timeout_seconds: float = 300,
        options: Sequence[str] | None = None,
        kind: FeedbackKind | None = None,
        *,
        yes_label: str | None = None,
        no_label: str | None = None,
    ) -> str:
        """As `human_feedback`, for plain functions and scripts; blocks the caller's own thread.

        Raises:
            NoExecution: called on an event loop, which it would block; await human_feedback() there.
        """
        asked = (message_for_user, unique_id, timeout_seconds, options, kind)
        return self._blocking(lambda: self.human_feedback(*asked, yes_label=yes_label, no_label=no_label))

    async def human_input(  # noqa: PLR0913  # what is said of a question, each by its name
        self,
        question: str,
        kind: InputKind | None = None,
        options: Sequence[str] | None = None,
        timeout_seconds: float = 600,
        *,
        unique_id: str | None = None,
        yes_label: str | None = None,
        no_label: str | None = None,
    ) -> HumanInput:
        """Let a person put something in, in the middle of a run, and say which kind of input it is.

        A thin layer over `human_feedback`: the same errors, and nothing is stored. An answer that is unclear is
        refused to the person, and never taken for another one.

        Args:
            question: 1-4,000 characters.
            kind: text, yes_no or multiple_choice; multiple_choice where options are given, else text.
            options: of multiple_choice, 1-20 distinct texts of 1-200 characters.
            timeout_seconds: 5-1800.
            unique_id: of the question; a new one when absent.
            yes_label: what the yes of yes_no is called.
            no_label: what its no is called.

        Returns:
            The answer with its kind. It has no truth value: ask `.yes`.

        Raises:
            InvalidField: a field breaks its rule; nothing was asked.
            FeedbackExpired: nobody answered in time. That is never a yes.
            FeedbackCancelled: the question was withdrawn.
        """
        choices = checked_choices(kind, options, yes_label, no_label)
        if choices.kind not in {"text", "yes_no", "multiple_choice"}:
            raise invalid("kind", "must be text, yes_no or multiple_choice; a secret is asked for by human_feedback")
        named = unique_id or new_unique_id("input")
        answer = await self.human_feedback(
            question, named, timeout_seconds, options, kind, yes_label=yes_label, no_label=no_label
        )
        return HumanInput(kind=choices.kind, answer=answer)  # type: ignore[arg-type]  # narrowed by the check above

    def human_input_sync(self, question: str, kind: InputKind | None = None, **asked: Any) -> HumanInput:
        """As `human_input`, for plain functions and scripts: the same arguments, by name; blocks the caller's thread.

        Raises:
            NoExecution: called on an event loop, which it would block; await human_input() there.
        """
        return self._blocking(lambda: self.human_input(question, kind, **asked))

    def ask(  # noqa: PLR0913  # what is said of a question, each by its name
        self,
        question: str,
        kind: FormKind | None = None,
        options: Sequence[str] | None = None,
        schema: Any = None,
        expires_in_hours: float | None = 72,
        approval_request_id: str | None = None,
        *,
        yes_label: str | None = None,
        no_label: str | None = None,
        description: str | None = None,
        timeout: float | None = None,
        execution_id: str | None = None,
        on_expiry: OnExpiry = "cancel",
    ) -> Coroutine[Any, Any, ApprovalResult]:
        """Ask a person something that may take hours or days; await the result.

        It is a pause with something to fill in: durable, in the same inbox, found again when the run is started again.
        The answer is kept with the run, so what is secret is a question for `human_feedback`. What comes back is held
        against the schema once more: what does not fit is an error and never reaches the code as an answer.

        Args:
            question: at most 20,000 characters; a long one is shown below a title that is its beginning.
            kind: text, yes_no, multiple_choice or form; form where a schema is given, multiple_choice where options
                are, else text.
            options: of multiple_choice, 1-20 distinct texts of 1-200 characters.
            schema: of form: a struct, dataclass, TypedDict or one of pydantic's models, which the values become; or
                the JSON Schema of an object (the extra `forms`).
            expires_in_hours: 1 s to 8760 h; the control plane's default when None.
            approval_request_id: as in `pause`.
            yes_label: what the yes of yes_no is called.
            no_label: what its no is called.
            description: more for the reviewer, below the question.
            timeout: as in `pause`.
            execution_id: the run that asks; the current one when absent.
            on_expiry: as in `pause`.

        Returns:
            An answer is `approved`, and `result.values` what was answered: the text, `yes` or `no`, the option, or the
            form. It is None for everything else: a rejection, a wish for changes, an expiry.

        Raises:
            InvalidField: nobody could answer that; nothing was asked.
            ValuesInvalid: it was answered with what does not fit.
            MissingExtra: a JSON Schema needs the extra `forms`; a type does not.
        """
        sought = of_question(kind, options, schema, yes_label=yes_label, no_label=no_label)
        rounds, _ = self._asker(self._run(), execution_id)
        return self._seek(
            sought,
            approval_request_id or rounds.made_id(sys._getframe(1).f_code.co_qualname),  # noqa: SLF001
            **_worded(question, description),
            expires_in_hours=expires_in_hours,
            timeout=timeout,
            execution_id=execution_id,
            on_expiry=on_expiry,
        )

    def ask_sync(self, question: str, approval_request_id: str | None = None, **asked: Any) -> ApprovalResult:
        """As `ask`, for plain functions: the same arguments, by name; blocks the function's own thread.

        Raises:
            NoExecution: not called from the thread of a reasoner.
        """
        run = self._run()
        if run is None:
            raise _errors.NoExecution("ask_sync works in a plain reasoner's thread; elsewhere await ask()")
        made = approval_request_id or run.rounds.made_id(sys._getframe(1).f_code.co_qualname)  # noqa: SLF001
        return run.blocking(lambda: self.ask(question, approval_request_id=made, **asked))

    def _blocking(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Await something from a thread: on the run's loop, or outside a run on one of its own."""
        run = self._run()
        if run is not None:
            return run.blocking(work)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(work())
        raise _errors.NoExecution("this would block the event loop; await its async form here")


def _worded(question: str, description: str | None) -> dict[str, str | None]:
    """A question as a title, and what does not fit into one below it."""
    first, _, rest = question.strip().partition("\n")
    if not rest and len(first) <= _LONGEST_TITLE:
        return {"title": first, "description": description}
    title = first if len(first) <= _LONGEST_TITLE else f"{first[: _LONGEST_TITLE - 1]}\u2026"
    return {"title": title, "description": "\n\n".join(filter(None, (question, description)))}
