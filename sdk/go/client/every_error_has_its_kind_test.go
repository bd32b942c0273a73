package client_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdshort/holdshort/sdk/go/client"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

var kinds = map[string]error{
	"HoldshortError": client.ErrHoldshort, "ConnectionFailed": client.ErrConnectionFailed,
	"WaitTimeout": client.ErrWaitTimeout, "NoExecution": client.ErrNoExecution,
	"CallbackUnknown": client.ErrCallbackUnknown, "InvalidSignature": client.ErrInvalidSignature,
	"StaleSignature": client.ErrStaleSignature, "InvalidInput": client.ErrInvalidInput,
	"UnreadableAnswer": client.ErrUnreadableAnswer, "ValuesInvalid": client.ErrValuesInvalid,
	"StepsSideBySide": client.ErrStepsSideBySide, "Refused": client.ErrRefused, "BadRequest": client.ErrBadRequest,
	"InvalidField": client.ErrInvalidField, "InvalidAnswer": client.ErrInvalidAnswer,
	"StepTooLarge": client.ErrStepTooLarge, "NotAuthorised": client.ErrNotAuthorised,
	"KeyRefused": client.ErrKeyRefused, "WrongScope": client.ErrWrongScope, "NodeOwned": client.ErrNodeOwned,
	"NotFound": client.ErrNotFound, "Unavailable": client.ErrUnavailable, "Conflict": client.ErrConflict,
	"ExecutionFinished": client.ErrExecutionFinished, "RoundNotOpen": client.ErrRoundNotOpen,
	"RequestConflict": client.ErrRequestConflict, "AmbiguousRequestId": client.ErrAmbiguousRequestID,
	"ApprovalChanged": client.ErrApprovalChanged, "AlreadyDecided": client.ErrAlreadyDecided,
	"ExecutionExists": client.ErrExecutionExists, "IdempotencyConflict": client.ErrIdempotencyConflict,
	"DuplicateRequest": client.ErrDuplicateRequest, "RequestIdUsed": client.ErrRequestIDUsed,
	"AlreadyAnswered": client.ErrAlreadyAnswered, "FeedbackEnded": client.ErrFeedbackEnded,
	"FeedbackExpired": client.ErrFeedbackExpired, "FeedbackCancelled": client.ErrFeedbackCancelled,
	"AnswerTaken": client.ErrAnswerTaken, "RunEnded": client.ErrRunEnded,
	"ExecutionCancelled": client.ErrExecutionCancelled, "StaleInstance": client.ErrStaleInstance,
	"StepMismatch": client.ErrStepMismatch, "HandedBack": client.ErrHandedBack, "AccessLost": client.ErrAccessLost,
}

func TestEveryKindIsNamedAsInAllLanguages(t *testing.T) {
	for name, sentinel := range kinds {
		var kind *errs.Kind
		if !errors.As(sentinel, &kind) || kind.Name() != name {
			t.Errorf("%s is %v", name, sentinel)
			continue
		}
		var found *client.Error
		if made := error(kind.New("")); !errors.Is(made, sentinel) || !errors.As(made, &found) || found.Kind != name {
			t.Errorf("%s becomes %v", name, made)
		}
	}
}

func TestWebhooksAreProvenHereToo(t *testing.T) {
	headers, err := client.SignWebhook("a secret", []byte("{}"), client.SignOptions{WebhookID: "msg_1"})
	if err != nil {
		t.Fatal(err)
	}
	verified, err := client.VerifyWebhook(headers, []byte("{}"), []string{"a secret"}, time.Time{})
	if err != nil || verified.WebhookID != "msg_1" {
		t.Errorf("%+v, %v", verified, err)
	}
	_, err = client.VerifyWebhook(headers, []byte("{ }"), []string{"a secret"}, time.Time{})
	if !errors.Is(err, client.ErrInvalidSignature) {
		t.Errorf("another body: %v", err)
	}
}
