package errs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"
)

// Refusal is the error that an answer of the control plane becomes: by its code first, by its status where that is not
// ours to know.
//
// status is the HTTP status, 300 or above; body the answer's, which may be no problem document at all, as what stands
// between may answer in a form of its own; requestID its X-Request-ID.
func Refusal(status int, body []byte, requestID string) *Error {
	problem := problemOf(body)
	code := text(problem, "error")
	kind := kindOf(code, status)
	refused := kind.New(sentence(problem, status))
	if kind.advice != "" {
		refused.Message += " " + kind.advice
	}
	if code != "" {
		refused.Code = code
	}
	refused.Status, refused.RequestID, refused.Details = status, requestID, others(problem)
	return refused
}

var byCode = withCodes(
	ErrExecutionFinished, ErrRoundNotOpen, ErrRequestConflict, ErrAmbiguousRequestID, ErrApprovalChanged,
	ErrAlreadyDecided, ErrExecutionExists, ErrIdempotencyConflict, ErrStepTooLarge, ErrKeyRefused, ErrWrongScope,
	ErrNodeOwned, ErrFeedbackExpired, ErrFeedbackCancelled, ErrAnswerTaken, ErrDuplicateRequest, ErrRequestIDUsed,
	ErrAlreadyAnswered, ErrInvalidAnswer, ErrStaleInstance, ErrStepMismatch,
)

var byStatus = map[int]*Kind{
	400: ErrBadRequest,
	401: ErrNotAuthorised,
	403: ErrNotAuthorised,
	404: ErrNotFound,
	409: ErrConflict,
	410: ErrFeedbackEnded,
	413: ErrBadRequest,
	415: ErrBadRequest,
	422: ErrInvalidField,
	429: ErrUnavailable,
}

func withCodes(kinds ...*Kind) map[string]*Kind {
	known := map[string]*Kind{"not_authenticated": ErrKeyRefused}
	for _, kind := range kinds {
		known[kind.code] = kind
	}
	return known
}

func kindOf(code string, status int) *Kind {
	if kind, ok := byCode[code]; ok {
		return kind
	}
	if kind, ok := byStatus[status]; ok {
		return kind
	}
	if status >= 500 {
		return ErrUnavailable
	}
	return ErrRefused
}

func problemOf(body []byte) map[string]any {
	if !utf8.Valid(body) {
		return nil
	}
	reader := json.NewDecoder(bytes.NewReader(body))
	reader.UseNumber()
	var problem map[string]any
	if reader.Decode(&problem) != nil {
		return nil
	}
	if _, err := reader.Token(); err != io.EOF {
		return nil
	}
	return problem
}

func others(problem map[string]any) map[string]any {
	details := map[string]any{}
	for name, value := range problem {
		switch name {
		case "type", "title", "status", "detail", "error", "message":
		default:
			details[name] = value
		}
	}
	return details
}

func sentence(problem map[string]any, status int) string {
	for _, member := range []string{"message", "detail"} {
		if said := text(problem, member); said != "" {
			return said
		}
	}
	if status < 400 {
		return fmt.Sprintf("the control plane answered %d, which is not followed: the key goes nowhere else;"+
			" set HOLDSHORT_URL", status)
	}
	return fmt.Sprintf("the control plane answered %d", status)
}

func text(problem map[string]any, member string) string {
	value, _ := problem[member].(string)
	return value
}
