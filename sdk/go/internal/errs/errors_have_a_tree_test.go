package errs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

var everyKind = []*errs.Kind{
	errs.ErrHoldshort, errs.ErrRunEnded, errs.ErrConnectionFailed, errs.ErrWaitTimeout, errs.ErrNoExecution,
	errs.ErrCallbackUnknown, errs.ErrInvalidSignature, errs.ErrStaleSignature, errs.ErrInvalidInput,
	errs.ErrUnreadableAnswer, errs.ErrValuesInvalid, errs.ErrStepsSideBySide, errs.ErrRefused, errs.ErrBadRequest,
	errs.ErrInvalidField, errs.ErrInvalidAnswer, errs.ErrStepTooLarge, errs.ErrNotAuthorised, errs.ErrKeyRefused,
	errs.ErrWrongScope, errs.ErrNodeOwned, errs.ErrNotFound, errs.ErrUnavailable, errs.ErrConflict,
	errs.ErrExecutionFinished, errs.ErrRoundNotOpen, errs.ErrRequestConflict, errs.ErrAmbiguousRequestID,
	errs.ErrApprovalChanged, errs.ErrAlreadyDecided, errs.ErrExecutionExists, errs.ErrIdempotencyConflict,
	errs.ErrDuplicateRequest, errs.ErrRequestIDUsed, errs.ErrAlreadyAnswered, errs.ErrFeedbackEnded,
	errs.ErrFeedbackExpired, errs.ErrFeedbackCancelled, errs.ErrAnswerTaken, errs.ErrExecutionCancelled,
	errs.ErrStaleInstance, errs.ErrStepMismatch, errs.ErrHandedBack, errs.ErrAccessLost,
}

func TestAnErrorIsItsKindAndAllAboveItAndNothingElse(t *testing.T) {
	for _, kind := range everyKind {
		made := fmt.Errorf("wrapped: %w", kind.New(""))
		var found *errs.Error
		if !errors.As(made, &found) || found.Kind != kind.Name() || found.Code != kind.Code() || found.Message == "" {
			t.Fatalf("%s became %+v", kind.Name(), found)
		}
		above := map[string]bool{kind.Name(): true}
		for _, name := range found.CaseOf() {
			above[name] = true
		}
		for _, other := range everyKind {
			if errors.Is(made, other) != above[other.Name()] || errors.Is(kind, other) != above[other.Name()] {
				t.Errorf("%s and %s", kind.Name(), other.Name())
			}
		}
	}
}

func TestNoEndOfARunIsAnErrorThatCodeGoesOnAfter(t *testing.T) {
	ends := []*errs.Kind{
		errs.ErrExecutionCancelled, errs.ErrStaleInstance, errs.ErrStepMismatch, errs.ErrHandedBack, errs.ErrAccessLost,
	}
	for _, end := range ends {
		if !errors.Is(end.New(""), errs.ErrRunEnded) || errors.Is(end.New(""), errs.ErrHoldshort) {
			t.Errorf("%s", end.Name())
		}
	}
}

func TestTimeThatIsUpIsADeadlineThatHasPassed(t *testing.T) {
	if !errors.Is(errs.ErrWaitTimeout.New(""), context.DeadlineExceeded) || !os.IsTimeout(context.DeadlineExceeded) {
		t.Error("a WaitTimeout is no deadline")
	}
	if errors.Is(errs.ErrConnectionFailed.New(""), context.DeadlineExceeded) {
		t.Error("a failed connection is a deadline")
	}
}

func TestTheReasonBehindAnErrorIsFound(t *testing.T) {
	behind := errors.New("the line is cut")
	plain := errs.ErrConnectionFailed.New("not reached")
	because := plain.Because(behind)
	if !errors.Is(because, behind) || !errors.Is(because, errs.ErrConnectionFailed) || errors.Is(plain, behind) {
		t.Error("the reason is not found, or in the wrong error")
	}
	lost := errs.ErrKeyRefused.New("revoked").Into(errs.ErrAccessLost)
	if lost.Kind != "AccessLost" || lost.Code != "invalid_key" || !errors.Is(lost, errs.ErrHandedBack) {
		t.Errorf("it became %+v", lost)
	}
}

func TestNumbersInDetailsKeepTheirValue(t *testing.T) {
	got := errs.Refusal(409, []byte(`{"error": "approval_changed", "large": 9007199254740993}`), "")
	if number, ok := got.Details["large"].(json.Number); !ok || number.String() != "9007199254740993" {
		t.Errorf("it became %v", got.Details["large"])
	}
}

func TestAnErrorThatIsMadeByHandIsOfNoKind(t *testing.T) {
	byHand := &errs.Error{Kind: "Conflict", Code: "conflict"}
	if errors.Is(byHand, errs.ErrConflict) || len(byHand.CaseOf()) != 0 {
		t.Error("a literal is taken for an answer of the control plane")
	}
}
