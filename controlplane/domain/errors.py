"""Every way the control plane says no: one tree, a stable code each, the docstring as the default message.

The domain knows no HTTP: `controlplane.edge.errors` holds the one table that gives each code its status.
"""

from typing import ClassVar


class HoldshortError(Exception):
    """Base of every error that a caller may see; carries a stable code, a sentence and extra members.

    Args:
        message: what went wrong and what to do next; the class's docstring when absent.
        extra: further members of the problem document, JSON-ready.
    """

    code: ClassVar[str] = "error"

    def __init__(self, message: str | None = None, **extra: object) -> None:
        """Keep the message (the docstring when none is given) and the extra members."""
        self.message = message or " ".join((type(self).__doc__ or "").split())
        self.extra = extra
        super().__init__(self.message)


class FieldFault(HoldshortError):
    """A field breaks a rule; correct the field named in `errors` and send the request again."""

    code = "invalid_field"

    def __init__(self, field: str, rule: str) -> None:
        """Name one field and the rule it breaks."""
        super().__init__(f"{field}: {rule}", errors=[{"field": field, "rule": rule}])
        self.field = field
        self.rule = rule


class CallbackUrlRefused(HoldshortError):
    """This server may not call that address; give another one, or have it allowed by the setting that is named."""

    code = "callback_url_refused"


class NotFound(HoldshortError):
    """There is nothing at this address; look at the path and the method."""

    code = "not_found"


class MethodNotAllowed(HoldshortError):
    """This address takes another method; see the Allow header."""

    code = "method_not_allowed"


class ExecutionNotFound(HoldshortError):
    """No execution has this id; create it with POST /api/v1/executions, or correct the id."""

    code = "execution_not_found"


class ApprovalNotFound(HoldshortError):
    """No approval has this approval_id; take the one that request-approval returned."""

    code = "approval_not_found"


class NoApprovalRequest(HoldshortError):
    """This execution has not asked for such an approval; ask with request-approval first."""

    code = "no_approval_request"


class DeliveryNotFound(HoldshortError):
    """No delivery has this id; list them with GET /api/v1/deliveries."""

    code = "delivery_not_found"


class OwnershipMismatch(HoldshortError):
    """The execution belongs to another node; call under the node that started it."""

    code = "execution_ownership_mismatch"


class SenderNotAllowed(HoldshortError):
    """This approval takes its answer from another webhook sender (decided_by); sign with that sender's secret."""

    code = "sender_not_allowed"


class InvalidState(HoldshortError):
    """The execution is over or was never started, so nothing new can be asked; start a new execution."""

    code = "invalid_state"


class RoundNotOpen(HoldshortError):
    """This round cannot be opened or answered yet; see `newest_round` for the one that stands."""

    code = "round_not_open"


class ApprovalRequestConflict(HoldshortError):
    """The same id and round was asked with another payload or on_expiry; ask under a new approval_request_id."""

    code = "approval_request_conflict"


class AmbiguousRequestId(HoldshortError):
    """More than one approval could be meant; name executionId (and round), or use ids that are unique."""

    code = "ambiguous_request_id"


class ApprovalChanged(HoldshortError):
    """Another payload or round stands than the one that was seen; load the approval again and decide on that."""

    code = "approval_changed"


class InvalidAnswer(HoldshortError):
    """This is no answer to what was asked; correct it and send it again, the question stays open."""

    code = "invalid_answer"


class DuplicateRequest(HoldshortError):
    """Another question is pending under this unique_id; ask under a new one."""

    code = "duplicate_request"


class RequestIdUsed(HoldshortError):
    """A question under this unique_id has ended within the last hour; ask under a new one."""

    code = "request_id_used"


class AlreadyAnswered(HoldshortError):
    """The question has its answer, which was not replaced; nothing is left to do."""

    code = "already_answered"


class RequestExpired(HoldshortError):
    """The question's time is up, and nobody answered in it; ask anew if it still matters."""

    code = "request_expired"


class RequestCancelled(HoldshortError):
    """The question was withdrawn, or who asked it has gone, so an answer would reach nobody; ask anew if it matters."""

    code = "request_cancelled"


class AnswerTaken(HoldshortError):
    """The answer was read once and is gone, as answers are; ask anew under a new unique_id."""

    code = "answer_taken"


class RequestNotFound(HoldshortError):
    """No question has this unique_id, or it ended more than an hour ago; look at those that are pending."""

    code = "request_not_found"


class TooManyQuestions(HoldshortError):
    """As many questions of this key wait for people as may; send it again once some have ended."""

    code = "too_many_questions"


class AlreadyDecided(HoldshortError):
    """The approval already has another decision, which stands; nothing was changed."""

    code = "already_decided"


class ExecutionExists(HoldshortError):
    """Another node owns an execution with this id; choose another execution_id."""

    code = "execution_exists"


class NotAuthenticated(HoldshortError):
    """This takes an API key; send it as X-API-Key or as Authorization: Bearer."""

    code = "not_authenticated"


class InvalidKey(HoldshortError):
    """This is no key of ours, or it was revoked or is past its time; use another one, or ask who manages the keys."""

    code = "invalid_key"


class TooManyFailures(HoldshortError):
    """Too many wrong keys or signatures came from here; correct yours, a right one is taken at any time."""

    code = "too_many_failures"


class KeyNotFound(HoldshortError):
    """No such key is in use; list them with `holdshort keys list`."""

    code = "key_not_found"


class SenderNotFound(HoldshortError):
    """No such sender is kept in the database; list them with `holdshort senders list`."""

    code = "sender_not_found"


class SenderExists(HoldshortError):
    """There is a sender of this name; give it a further secret with `holdshort senders rotate`."""

    code = "sender_exists"


class TooManySecrets(HoldshortError):
    """All senders together have as many secrets as a webhook is tried against; end those that nobody signs with."""

    code = "too_many_secrets"


class NotAllowed(HoldshortError):
    """The key is of another scope than this takes; use another key."""

    code = "not_allowed"


class NodeOwned(HoldshortError):
    """The node belongs to another key; use that one, or have an operator move it (`holdshort nodes move`)."""

    code = "node_owned"


class NodeNotFound(HoldshortError):
    """No live agent is registered under this name; start it, or take one of `registered`."""

    code = "node_not_found"


class ReasonerNotFound(HoldshortError):
    """The node has no such reasoner; take one of `registered`."""

    code = "reasoner_not_found"


class StaleInstance(HoldshortError):
    """This run was taken over by a later dispatch; stop working on it, nothing was written."""

    code = "stale_instance"


class StepMismatch(HoldshortError):
    """This step stands at another place in the run; the code changed the order of its steps, start a new execution."""

    code = "step_mismatch"


class StepTooLarge(HoldshortError):
    """A step's result is larger than 1 MiB; store it elsewhere and return where it is."""

    code = "step_too_large"


class QueueFull(HoldshortError):
    """As many runs wait for this node as may; send it again after Retry-After."""

    code = "queue_full"


class IdempotencyConflict(HoldshortError):
    """This Idempotency-Key stands for another call; use a new key for each new call."""

    code = "idempotency_conflict"


class DeliverySettled(HoldshortError):
    """The delivery has ended and cannot be sent again; only pending and dead ones can be re-driven."""

    code = "delivery_settled"


class EventsPruned(HoldshortError):
    """What followed that event was pruned from history; without Last-Event-ID the stream begins with what is kept."""

    code = "events_pruned"


class TooManyParked(HoldshortError):
    """This sender already has as many parked answers as may wait; send it again once the agents have asked."""

    code = "too_many_parked"


class InvalidBody(HoldshortError):
    """The body is not the JSON that this route takes; correct it and send it again."""

    code = "invalid_body"


class RequestIdMissing(HoldshortError):
    """The body names no approval; send requestId (or approval_id)."""

    code = "request_id_missing"


class DecisionMissing(HoldshortError):
    """The body holds no decision; send approved, rejected, request_changes or expired."""

    code = "decision_missing"


class InvalidDecision(HoldshortError):
    """The decision is none of the known words; send approved, rejected, request_changes or expired."""

    code = "invalid_decision"


class DecisionConflict(HoldshortError):
    """The body holds two decisions that disagree; send one."""

    code = "decision_conflict"


class BodyTooLarge(HoldshortError):
    """The body is larger than this route takes; send less."""

    code = "body_too_large"


class UnsupportedMediaType(HoldshortError):
    """This route takes JSON; send Content-Type: application/json."""

    code = "unsupported_media_type"


class SignatureMissing(HoldshortError):
    """The webhook carries no signature header; sign the body with the shared secret."""

    code = "missing_signature"


class SignatureInvalid(HoldshortError):
    """No signature matches the body as received; sign the exact bytes that are sent with a configured secret."""

    code = "invalid_signature"


class SignatureStale(HoldshortError):
    """The signature holds but its time is more than 300 s from now; sign again and check the sender's clock."""

    code = "stale_signature"


class WebhookNotConfigured(HoldshortError):
    """No webhook secret is configured; use `holdshort senders create`, or set HOLDSHORT_WEBHOOK_SECRETS and restart."""

    code = "webhook_not_configured"


class SenderUnreadable(HoldshortError):
    """A secret of some sender cannot be read, so the signature proves nothing; give the server its master key again."""

    code = "sender_unreadable"


class DatabaseUnavailable(HoldshortError):
    """The database cannot be reached now; nothing was half done, send the request again after Retry-After."""

    code = "database_unavailable"


class InternalError(HoldshortError):
    """Something went wrong that should not; the request id finds it in the log."""

    code = "internal_error"
