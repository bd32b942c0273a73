// Package errs holds every way the SDK says no: the kinds, their tree, and what an answer of the control plane becomes.
package errs

import "context"

// Error is what every call of the SDK returns when it fails otherwise than by the end of its context.
//
// Ask errors.Is about one of the kinds (ErrConflict is true for all that it contains), or take an *Error with errors.As
// to read what is known. The API key is in none of its fields.
type Error struct {
	// Kind is the name of the error's kind, the same in every language's SDK: "RoundNotOpen".
	Kind string
	// Code is stable and in snake_case: "round_not_open".
	Code string
	// Message says what happened and what to do.
	Message string
	// Status is the HTTP status of the answer, 0 where there was none.
	Status int
	// RequestID is how the control plane's log names the request, "" where there was none.
	RequestID string
	// Details are the other members of the answer. Numbers are json.Number, so that they keep their value.
	Details map[string]any

	kind  *Kind
	cause error
}

// Error is the message with the code behind it.
func (e *Error) Error() string { return "holdshort: " + e.Message + " (" + e.Code + ")" }

// Is reports whether the error is of the kind target or of one below it.
//
// A WaitTimeout is a context.DeadlineExceeded as well: both say that the caller's time is up.
func (e *Error) Is(target error) bool {
	if target == context.DeadlineExceeded {
		return e.kind == ErrWaitTimeout
	}
	wanted, ok := target.(*Kind)
	return ok && e.kind != nil && e.kind.within(wanted)
}

// Unwrap is the error that this one came from, nil where there is none.
func (e *Error) Unwrap() error { return e.cause }

// Because returns the same error, with what it came from: errors.Is and errors.As find that as well.
func (e *Error) Because(cause error) *Error {
	with := *e
	with.cause = cause
	return &with
}

// Into returns the same reason as an error of another kind, with the code that it has.
func (e *Error) Into(kind *Kind) *Error {
	with := *e
	with.kind, with.Kind = kind, kind.name
	return &with
}

// CaseOf names the kinds that this error is a case of, nearest first, without its own.
func (e *Error) CaseOf() []string {
	var names []string
	if e.kind == nil {
		return names
	}
	for at := e.kind.parent; at != nil; at = at.parent {
		names = append(names, at.name)
	}
	return names
}

// Invalid is the error of a field that breaks a rule, as the control plane's own.
func Invalid(field, rule string) *Error {
	refused := ErrInvalidField.New(field + " " + rule)
	refused.Details = map[string]any{"errors": []any{map[string]any{"field": field, "rule": rule}}}
	return refused
}
