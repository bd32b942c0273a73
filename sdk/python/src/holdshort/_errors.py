"""Every way the SDK says no.

HoldshortError (Exception)
├── ConnectionFailed            the control plane was not reached for as long as the caller would wait
├── WaitTimeout                 (also a TimeoutError) wait_for_resume's own time is up
├── NoExecution                 pause(), step() or ai() outside a run
├── MissingExtra                an optional dependency is not installed
├── ModelUnknown                ai() without a model
├── AiFailed                    the model could not be asked
├── AiAnswerInvalid             the model's answer does not fit the schema
├── CallbackUnknown             callback="push" without an address to push to
├── InvalidSignature            a webhook or callback whose signature does not hold
│   └── StaleSignature          it holds, but its time is too far from now
├── InvalidInput                a reasoner was called with input that does not fit its annotations
├── RunFailed                   the testing control plane's run ended with an error
├── UnreadableAnswer            a short-lived question's answer was not sealed to it
├── ValuesInvalid               an approval's values do not fit the form that was asked with
└── Refused                     the control plane answered with an error
    ├── BadRequest              400, 413, 415; and a webhook's body that decides nothing
    │   ├── InvalidField        422
    │   │   └── InvalidAnswer   invalid_answer: what a person gave is no answer to what was asked
    │   └── StepTooLarge        step_too_large: a step's result is over 1 MiB
    ├── NotAuthorised           401, 403
    │   ├── KeyRefused          not_authenticated, invalid_key: none was sent, or it is wrong, ended or revoked
    │   ├── WrongScope          not_allowed: the key is for something else
    │   └── NodeOwned           node_owned: the node is another key's
    ├── NotFound                404
    ├── Conflict                409
    │   ├── ExecutionFinished   invalid_state: nothing new can be asked
    │   ├── RoundNotOpen        round_not_open
    │   ├── RequestConflict     approval_request_conflict
    │   ├── AmbiguousRequestId  ambiguous_request_id
    │   ├── ApprovalChanged     approval_changed
    │   ├── AlreadyDecided      already_decided
    │   ├── ExecutionExists     execution_exists
    │   ├── IdempotencyConflict idempotency_conflict
    │   ├── DuplicateRequest    duplicate_request: the id of a short-lived question that is open
    │   ├── RequestIdUsed       request_id_used: the id of one that has ended
    │   └── AlreadyAnswered     already_answered
    ├── FeedbackEnded           410: a short-lived question is over
    │   ├── FeedbackExpired     request_expired
    │   ├── FeedbackCancelled   request_cancelled
    │   └── AnswerTaken         answer_taken
    └── Unavailable             429, 5xx, for longer than the caller would wait

RunEnded (BaseException: `except Exception` does not swallow it)
├── ExecutionCancelled          an operator cancelled this run
├── StaleInstance               another instance took this run over
├── StepMismatch                the code does other steps than this run did before; the run has failed
└── HandedBack                  the process stops; the run waits without it
    └── AccessLost              the key is refused since the run began to wait
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar


class _Described:
    """What every error of this package carries."""

    code: str = "error"
    # What the control plane's message cannot know: how this program is told otherwise.
    advice: ClassVar[str] = ""
    # The status_reason of a run that fails with this error; None for the control plane's own.
    fails_as: ClassVar[str | None] = None
    message: str
    status: int | None
    request_id: str | None
    details: Mapping[str, Any]

    def _describe(self, message: str | None, known: Mapping[str, Any]) -> str:
        self.code = known.get("code") or type(self).code
        self.message = message or " ".join((type(self).__doc__ or "").split())
        self.status = known.get("status")
        self.request_id = known.get("request_id")
        self.details = known.get("details") or {}
        return self.message


class HoldshortError(_Described, Exception):
    """Base of every error of this package.

    Args:
        message: what happened and what to do; the class's docstring when absent.
        known: `code` (stable, snake_case), `status` (HTTP), `request_id` (of the control plane's log) and
            `details` (the other members of the problem document), as far as there are any.
    """

    code: str = "error"

    def __init__(self, message: str | None = None, **known: Any) -> None:
        super().__init__(self._describe(message, known))


class ConnectionFailed(HoldshortError):
    """The control plane could not be reached in the time the caller gave; check HOLDSHORT_URL and that it runs."""

    code = "connection_failed"


class WaitTimeout(HoldshortError, TimeoutError):
    """The approval is still pending and stays so; call wait_for_resume again to go on waiting."""

    code = "wait_timeout"


class NoExecution(HoldshortError):
    """There is no run here; call this inside a reasoner or `async with app.execution()`, or name an execution_id."""

    code = "no_execution"


class MissingExtra(HoldshortError):
    """An optional dependency is not installed; the message names the extra that brings it."""

    code = "missing_extra"


class ModelUnknown(HoldshortError):
    """ai() does not know which model to ask: pass model="provider/name" or set HOLDSHORT_AI_MODEL."""

    code = "model_unknown"


class AiFailed(HoldshortError):
    """The model could not be asked; `__cause__` is litellm's own error. Nothing was stored: ask again, or fail."""

    code = "ai_failed"


class AiAnswerInvalid(HoldshortError):
    """The model's answer does not fit the schema. Nothing was stored: ask again, more clearly, or let the run fail."""

    code = "ai_answer_invalid"


class CallbackUnknown(HoldshortError):
    """callback="push" needs an address: pass callback_url, set HOLDSHORT_CALLBACK_URL, or use "auto" or "pull"."""

    code = "callback_unknown"


class InvalidSignature(HoldshortError):
    """No signature matches the body as received; verify the raw bytes, with the secret the sender signs with."""

    code = "invalid_signature"


class StaleSignature(InvalidSignature):
    """The signature holds but its time is more than 300 s from now; check both clocks, or refuse it as a replay."""

    code = "stale_signature"


class InvalidInput(HoldshortError):
    """A reasoner's input does not fit its annotations; correct the field that `field` names and call again."""

    code = "invalid_input"
    field: str = ""
    rule: str = ""


class RunFailed(HoldshortError):
    """A run under the testing control plane ended otherwise than by returning; the message says how."""

    code = "run_failed"


class Refused(HoldshortError):
    """The control plane answered with an error; `code` is stable, `message` says what to do."""

    code = "refused"


class BadRequest(Refused):
    """The control plane could not take the request as it is, or `holdshort.webhooks` a body; the message says why."""

    code = "bad_request"


class InvalidField(BadRequest):
    """A field breaks a rule; `details["errors"]` lists each field with its rule. Correct it and call again."""

    code = "invalid_field"


class StepTooLarge(BadRequest):
    """A step's result is over 1 MiB of JSON; store it elsewhere and return where it is."""

    code = "step_too_large"


class NotAuthorised(Refused):
    """The key, the node or the sender may not do this; use a key with the scope the message names."""

    code = "not_authorised"


class KeyRefused(NotAuthorised):
    """No API key was sent, or it is wrong, past its time or revoked; give a good one and start the program again.

    Nothing was asked and nothing was done. The key is `api_key` or HOLDSHORT_API_KEY; `holdshort keys create` makes one
    and `holdshort keys rotate` gives one a new secret.
    """

    code = "invalid_key"
    advice = "This program sends api_key or HOLDSHORT_API_KEY; `holdshort keys create` makes a key."


class WrongScope(NotAuthorised):
    """The key is for something else: agents need one of scope agent, people who decide one of scope review."""

    code = "not_allowed"
    advice = "This program sends api_key or HOLDSHORT_API_KEY."


class NodeOwned(NotAuthorised):
    """The node belongs to another key; use that one, another node_id, or have an admin move the node to this one."""

    code = "node_owned"
    advice = "`holdshort nodes move NODE --to KEY_ID` does that."


class NotFound(Refused):
    """Nothing has this id; check the id, and that HOLDSHORT_URL is the control plane it was made on."""

    code = "not_found"


class Conflict(Refused):
    """What stands does not allow this; read it again (`details` holds what stands) and decide anew."""

    code = "conflict"


class ExecutionFinished(Conflict):
    """The execution is over, so nothing new can be asked. This is never a decision.

    It comes when pause() opens a new question after a rejection, an expiry with on_expiry="cancel", a cancellation
    or the run's end. To go on asking after a deadline, ask with on_expiry="resume".
    """

    code = "invalid_state"


class RoundNotOpen(Conflict):
    """The round before this one is still pending or ended for good; ask under another approval_request_id."""

    code = "round_not_open"


class RequestConflict(Conflict):
    """The id was asked with another payload or on_expiry; an answer never covers an action nobody saw. Use a new id."""

    code = "approval_request_conflict"


class AmbiguousRequestId(Conflict):
    """Several approvals could be meant; name the execution_id. `details["approvals"]` lists them."""

    code = "ambiguous_request_id"


class ApprovalChanged(Conflict):
    """Another round or payload stands than the one decided on; read the approval again before deciding."""

    code = "approval_changed"


class AlreadyDecided(Conflict):
    """Another decision was first and stands; `details` holds it. Nothing was changed."""

    code = "already_decided"


class ExecutionExists(Conflict):
    """Another node owns an execution with this id; choose another execution_id."""

    code = "execution_exists"


class IdempotencyConflict(Conflict):
    """The idempotency key was used for another reasoner or another input; take a new key for a new call."""

    code = "idempotency_conflict"


class Unavailable(Refused):
    """The control plane or its database is away, or asks for fewer calls; retried already, so try again later."""

    code = "unavailable"


class RunEnded(_Described, BaseException):
    """This run must stop. Outside `Exception`, so that `except Exception` does not swallow it; let it pass."""

    code: str = "run_ended"

    def __init__(self, message: str | None = None, **known: Any) -> None:
        super().__init__(self._describe(message, known))

    def again(self, kind: "type[RunEnded] | None" = None) -> "RunEnded":
        """The same reason to be raised at another place (as another kind of it), with a traceback of its own."""
        known = {"code": self.code, "status": self.status, "request_id": self.request_id, "details": self.details}
        return (kind or type(self))(self.message, **known)


class ExecutionCancelled(RunEnded):
    """An operator cancelled this run; clean up in `finally` and let it end."""

    code = "execution_cancelled"


class StaleInstance(RunEnded):
    """Another instance took this run over; nothing this one does is written any more. Let it end."""

    code = "stale_instance"


class StepMismatch(RunEnded):
    """The code does other steps than this run did before; put it back, or start a new execution.

    The run is reported as failed, with the reason step_mismatch. It is no Exception, so that code which goes on after
    any error does not go on with results that belong to other steps.
    """

    code = "step_mismatch"
    fails_as = "step_mismatch"

    @classmethod
    def between(cls, place: str, *, expected: str, got: str) -> "StepMismatch":
        """The error of a call that names another step than the one stored.

        Args:
            place: where in the run, "" at its beginning.
            expected: the name that is stored there.
            got: the name that the code asks for.
        """
        where = f"behind {place}" if place else "at the beginning"
        told = f"{where} this run did the step {expected!r}, and its code now asks for {got!r}"
        advice = "names and order must stay the same while runs are open: put the code back, or start a new execution"
        return cls(f"{told}; {advice}", details={"expected": expected, "got": got, "place": place})

    @property
    def expected(self) -> str | None:
        """The name of the step that is stored."""
        return self.details.get("expected")

    @property
    def got(self) -> str | None:
        """The name that the code asked for."""
        return self.details.get("got")


class HandedBack(RunEnded):
    """This process stops while the run waits; the run goes on when it is started again under its execution id."""

    code = "handed_back"


class AccessLost(HandedBack):
    """The control plane refuses this program's key since the run began to wait. This is never a decision.

    The run waits without this process. Start the program again with a good key: under its execution id the run finds
    its question, and its answer.
    """

    code = "access_lost"


@contextmanager
def one_end() -> Iterator[None]:
    """Let a RunEnded out of the group that a TaskGroup puts around it: it ends the run, whatever else went wrong."""
    try:
        yield
    except BaseExceptionGroup as group:
        ends = group.subgroup(RunEnded)
        if ends is None:
            raise
        end: BaseException = ends
        while isinstance(end, BaseExceptionGroup):
            end = end.exceptions[0]
        raise end from group
