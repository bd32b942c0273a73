package client

import "github.com/holdshort/holdshort/sdk/go/internal/errs"

// Error is what every call returns when it fails otherwise than by the end of its context; errors.As finds it. Kind and
// Code are stable, Message says what to do, Details holds what else the control plane said.
type Error = errs.Error

// The kinds of errors, for errors.Is. A kind contains those that are indented below it:
//
//	ErrHoldshort
//	    ErrConnectionFailed          the control plane was not reached for as long as the caller would wait
//	    ErrWaitTimeout               the caller's time is up (also a context.DeadlineExceeded)
//	    ErrNoExecution               there is no run here
//	    ErrCallbackUnknown           callback "push" without an address
//	    ErrInvalidSignature          a webhook whose signature does not hold
//	        ErrStaleSignature        it holds, but its time is too far from now
//	    ErrInvalidInput              a reasoner's input does not fit its type
//	    ErrUnreadableAnswer          a short-lived question's answer was not sealed to it
//	    ErrValuesInvalid             an approval's values do not fit the form that was asked with
//	    ErrStepsSideBySide           two steps of one name at once in one branch of a run
//	    ErrRefused                   the control plane answered with an error
//	        ErrBadRequest            400, 413, 415
//	            ErrInvalidField      422: a field breaks a rule; Details["errors"] lists each
//	                ErrInvalidAnswer what a person gave is no answer to what was asked
//	            ErrStepTooLarge      a step's result is over 1 MiB
//	        ErrNotAuthorised         401, 403
//	            ErrKeyRefused        no key was sent, or it is wrong, ended or revoked
//	            ErrWrongScope        the key is for something else
//	            ErrNodeOwned         the node is another key's
//	        ErrNotFound              404
//	        ErrConflict              409
//	            ErrExecutionFinished nothing new can be asked; never a decision
//	            ErrRoundNotOpen      the round before is still pending or ended for good
//	            ErrRequestConflict   the id stands for another payload or expiry rule
//	            ErrAmbiguousRequestID several approvals could be meant
//	            ErrApprovalChanged   another round or payload stands than the one decided on
//	            ErrAlreadyDecided    another decision was first
//	            ErrExecutionExists   another node owns the execution
//	            ErrIdempotencyConflict the key stands for another call
//	            ErrDuplicateRequest  another call asks a short-lived question under this id
//	            ErrRequestIDUsed     one under this id ended within the last hour
//	            ErrAlreadyAnswered   another answer was first
//	        ErrFeedbackEnded         410: a short-lived question is over; never an approval and never a no
//	            ErrFeedbackExpired   nobody answered in its time
//	            ErrFeedbackCancelled it was withdrawn, or nobody waited for its answer
//	            ErrAnswerTaken       the answer was read once and is gone
//	        ErrUnavailable           429, 5xx, for longer than the caller would wait
//	ErrRunEnded                      a run must stop; let its function return
//	    ErrExecutionCancelled        an operator cancelled it
//	    ErrStaleInstance             another instance took it over
//	    ErrStepMismatch              the code does other steps than the run did before
//	    ErrHandedBack                the process stops; the run waits without it
//	        ErrAccessLost            the key is refused since the run began to wait
var (
	ErrHoldshort          error = errs.ErrHoldshort
	ErrConnectionFailed   error = errs.ErrConnectionFailed
	ErrWaitTimeout        error = errs.ErrWaitTimeout
	ErrNoExecution        error = errs.ErrNoExecution
	ErrCallbackUnknown    error = errs.ErrCallbackUnknown
	ErrInvalidSignature   error = errs.ErrInvalidSignature
	ErrStaleSignature     error = errs.ErrStaleSignature
	ErrInvalidInput       error = errs.ErrInvalidInput
	ErrUnreadableAnswer   error = errs.ErrUnreadableAnswer
	ErrValuesInvalid      error = errs.ErrValuesInvalid
	ErrStepsSideBySide    error = errs.ErrStepsSideBySide
	ErrRefused            error = errs.ErrRefused
	ErrBadRequest         error = errs.ErrBadRequest
	ErrInvalidField       error = errs.ErrInvalidField
	ErrInvalidAnswer      error = errs.ErrInvalidAnswer
	ErrStepTooLarge       error = errs.ErrStepTooLarge
	ErrNotAuthorised      error = errs.ErrNotAuthorised
	ErrKeyRefused         error = errs.ErrKeyRefused
	ErrWrongScope         error = errs.ErrWrongScope
	ErrNodeOwned          error = errs.ErrNodeOwned
	ErrNotFound           error = errs.ErrNotFound
	ErrUnavailable        error = errs.ErrUnavailable
	ErrConflict           error = errs.ErrConflict
	ErrExecutionFinished  error = errs.ErrExecutionFinished
	ErrRoundNotOpen       error = errs.ErrRoundNotOpen
	ErrRequestConflict    error = errs.ErrRequestConflict
	ErrAmbiguousRequestID error = errs.ErrAmbiguousRequestID
	ErrApprovalChanged    error = errs.ErrApprovalChanged
	ErrAlreadyDecided     error = errs.ErrAlreadyDecided
	ErrExecutionExists    error = errs.ErrExecutionExists

	ErrIdempotencyConflict error = errs.ErrIdempotencyConflict
	ErrDuplicateRequest    error = errs.ErrDuplicateRequest
	ErrRequestIDUsed       error = errs.ErrRequestIDUsed
	ErrAlreadyAnswered     error = errs.ErrAlreadyAnswered
	ErrFeedbackEnded       error = errs.ErrFeedbackEnded
	ErrFeedbackExpired     error = errs.ErrFeedbackExpired
	ErrFeedbackCancelled   error = errs.ErrFeedbackCancelled
	ErrAnswerTaken         error = errs.ErrAnswerTaken
	ErrRunEnded            error = errs.ErrRunEnded
	ErrExecutionCancelled  error = errs.ErrExecutionCancelled
	ErrStaleInstance       error = errs.ErrStaleInstance
	ErrStepMismatch        error = errs.ErrStepMismatch
	ErrHandedBack          error = errs.ErrHandedBack
	ErrAccessLost          error = errs.ErrAccessLost
)
