package errs

// Kind is one kind of error. A Kind is what errors.Is is asked about; what calls return is an *Error of a Kind.
type Kind struct {
	name   string
	code   string
	parent *Kind
	says   string
	advice string
}

// Name is the name that the kind has in every language's SDK, such as "RoundNotOpen".
func (k *Kind) Name() string { return k.name }

// Code is what an error of this kind has as its code when the control plane gave none.
func (k *Kind) Code() string { return k.code }

// Error is what the kind says of itself.
func (k *Kind) Error() string { return "holdshort: " + k.says + " (" + k.code + ")" }

// Is reports whether this kind is a case of target, which is a kind: errors.Is(ErrRoundNotOpen, ErrConflict).
func (k *Kind) Is(target error) bool {
	wanted, ok := target.(*Kind)
	return ok && k.within(wanted)
}

func (k *Kind) within(wanted *Kind) bool {
	for at := k; at != nil; at = at.parent {
		if at == wanted {
			return true
		}
	}
	return false
}

// New makes an error of this kind. message says what happened and what to do; "" for what the kind says of itself.
func (k *Kind) New(message string) *Error {
	if message == "" {
		message = k.says
	}
	return &Error{Kind: k.name, Code: k.code, Message: message, kind: k}
}

// The roots. An end of a run is no case of ErrHoldshort: code that goes on after any error must not go on after an end.
var (
	ErrHoldshort = &Kind{name: "HoldshortError", code: "error", says: "the SDK could not do what it was asked"}
	ErrRunEnded  = &Kind{name: "RunEnded", code: "run_ended", says: "this run must stop; let its function return"}
)

// What the SDK itself says.
var (
	ErrConnectionFailed = under(ErrHoldshort, "ConnectionFailed", "connection_failed",
		"the control plane could not be reached in the time the caller gave; check HOLDSHORT_URL and that it runs")
	ErrWaitTimeout = under(ErrHoldshort, "WaitTimeout", "wait_timeout",
		"no decision came in the caller's time; a pending approval stays so, and can be waited for again")
	ErrNoExecution = under(ErrHoldshort, "NoExecution", "no_execution",
		"there is no run here; call this with the context of a run, or name an execution id")
	ErrCallbackUnknown = under(ErrHoldshort, "CallbackUnknown", "callback_unknown",
		`callback "push" needs an address: give a callback URL, set HOLDSHORT_CALLBACK_URL, or use "auto" or "pull"`)
	ErrInvalidSignature = under(ErrHoldshort, "InvalidSignature", "invalid_signature",
		"no signature matches the body as received; verify the raw bytes, with the secret the sender signs with")
	ErrStaleSignature = under(ErrInvalidSignature, "StaleSignature", "stale_signature",
		"the signature holds but its time is more than 300 s from now; check both clocks, or refuse it as a replay")
	ErrInvalidInput = under(ErrHoldshort, "InvalidInput", "invalid_input",
		"a reasoner's input does not fit its type; correct the field that is named and call again")
	ErrUnreadableAnswer = under(ErrHoldshort, "UnreadableAnswer", "unreadable_answer",
		"the answer was not sealed to this question, so it cannot be opened; nothing was answered: ask anew")
	ErrValuesInvalid = under(ErrHoldshort, "ValuesInvalid", "values_invalid",
		"an approval's values do not fit the form that was asked with, so they are not handed over; ask anew")
	ErrStepsSideBySide = under(ErrHoldshort, "StepsSideBySide", "steps_side_by_side",
		"two steps of one name at once could be taken for each other after a restart; put what tells them apart into"+
			" the name, or use a branch")
	ErrRefused = under(ErrHoldshort, "Refused", "refused", "the control plane answered with an error")
)

// What the control plane says of a request.
var (
	ErrBadRequest = under(ErrRefused, "BadRequest", "bad_request",
		"the control plane could not take the request as it is")
	ErrInvalidField = under(ErrBadRequest, "InvalidField", "invalid_field",
		"a field breaks a rule; correct it and call again")
	ErrInvalidAnswer = under(ErrInvalidField, "InvalidAnswer", "invalid_answer",
		"what a person gave is no answer to what was asked; the question stays open")
	ErrStepTooLarge = under(ErrBadRequest, "StepTooLarge", "step_too_large",
		"a step's result is over 1 MiB of JSON; store it elsewhere and return where it is")
	ErrNotAuthorised = under(ErrRefused, "NotAuthorised", "not_authorised",
		"the key, the node or the sender may not do this")
	ErrKeyRefused = advised(under(ErrNotAuthorised, "KeyRefused", "invalid_key",
		"no API key was sent, or it is wrong, past its time or revoked"),
		"This program sends Options.APIKey or HOLDSHORT_API_KEY; `holdshort keys create` makes a key.")
	ErrWrongScope = advised(under(ErrNotAuthorised, "WrongScope", "not_allowed",
		"the key is for something else: agents need one of scope agent, people who decide one of scope review"),
		"This program sends Options.APIKey or HOLDSHORT_API_KEY.")
	ErrNodeOwned = advised(under(ErrNotAuthorised, "NodeOwned", "node_owned", "the node belongs to another key"),
		"`holdshort nodes move NODE --to KEY_ID` does that.")
	ErrNotFound    = under(ErrRefused, "NotFound", "not_found", "nothing has this id")
	ErrUnavailable = under(ErrRefused, "Unavailable", "unavailable",
		"the control plane or its database is away, or asks for fewer calls; retried already, so try again later")
)

// What stands does not allow it.
var (
	ErrConflict = under(ErrRefused, "Conflict", "conflict",
		"what stands does not allow this; read it again and decide anew")
	ErrExecutionFinished = under(ErrConflict, "ExecutionFinished", "invalid_state",
		"the execution is over, so nothing new can be asked; this is never a decision")
	ErrRoundNotOpen = under(ErrConflict, "RoundNotOpen", "round_not_open",
		"the round before this one is still pending or ended for good; ask under another approval request id")
	ErrRequestConflict = under(ErrConflict, "RequestConflict", "approval_request_conflict",
		"the id was asked with another payload or expiry rule; use a new id")
	ErrAmbiguousRequestID = under(ErrConflict, "AmbiguousRequestId", "ambiguous_request_id",
		"several approvals could be meant; name the execution id")
	ErrApprovalChanged = under(ErrConflict, "ApprovalChanged", "approval_changed",
		"another round or payload stands than the one decided on; read the approval again before deciding")
	ErrAlreadyDecided = under(ErrConflict, "AlreadyDecided", "already_decided",
		"another decision was first and stands; nothing was changed")
	ErrExecutionExists = under(ErrConflict, "ExecutionExists", "execution_exists",
		"another node owns an execution with this id; choose another execution id")
	ErrIdempotencyConflict = under(ErrConflict, "IdempotencyConflict", "idempotency_conflict",
		"the idempotency key was used for another reasoner or another input; take a new key for a new call")
	ErrDuplicateRequest = under(ErrConflict, "DuplicateRequest", "duplicate_request",
		"another call asks under this unique id now, and its answer goes to that one alone; use an id of your own")
	ErrRequestIDUsed = under(ErrConflict, "RequestIdUsed", "request_id_used",
		"a question under this unique id ended within the last hour; use a new one")
	ErrAlreadyAnswered = under(ErrConflict, "AlreadyAnswered", "already_answered",
		"another answer to the short-lived question was first and stands; nothing was changed")
)

// A short-lived question is over without an answer, which is never an approval and never a no.
var (
	ErrFeedbackEnded = under(ErrRefused, "FeedbackEnded", "request_ended",
		"a short-lived question is over, and there is no answer to be had")
	ErrFeedbackExpired = under(ErrFeedbackEnded, "FeedbackExpired", "request_expired",
		"the question's time passed, and nobody answered in it; ask anew if it matters")
	ErrFeedbackCancelled = under(ErrFeedbackEnded, "FeedbackCancelled", "request_cancelled",
		"the question was withdrawn, or nobody waited for its answer; ask anew under a new unique id")
	ErrAnswerTaken = under(ErrFeedbackEnded, "AnswerTaken", "answer_taken",
		"the answer was read once and is gone, as answers are; ask anew under a new unique id")
)

// The ends of a run.
var (
	ErrExecutionCancelled = under(ErrRunEnded, "ExecutionCancelled", "execution_cancelled",
		"an operator cancelled this run; clean up and let it end")
	ErrStaleInstance = under(ErrRunEnded, "StaleInstance", "stale_instance",
		"another instance took this run over; nothing this one does is written any more")
	ErrStepMismatch = under(ErrRunEnded, "StepMismatch", "step_mismatch",
		"the code does other steps than this run did before; put it back, or start a new execution")
	ErrHandedBack = under(ErrRunEnded, "HandedBack", "handed_back",
		"this process stops while the run waits; the run goes on when it is started again under its execution id")
	ErrAccessLost = under(ErrHandedBack, "AccessLost", "access_lost",
		"the control plane refuses this program's key since the run began to wait; this is never a decision")
)

func under(parent *Kind, name, code, says string) *Kind {
	return &Kind{name: name, code: code, parent: parent, says: says}
}

// advised adds what the control plane's message cannot know: how this program is told otherwise.
func advised(kind *Kind, advice string) *Kind {
	kind.advice = advice
	return kind
}
