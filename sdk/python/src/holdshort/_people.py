"""What an agent asks people beside approvals: for what leaves no trace, and for what is kept."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar

from msgspec import Struct

from holdshort import _errors
from holdshort._choices import FeedbackKind, checked_choices, invalid
from holdshort._feedback import unique_id as new_unique_id

if TYPE_CHECKING:
    from holdshort._runs import Run
    from holdshort._session import Sessions

T = TypeVar("T")
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
