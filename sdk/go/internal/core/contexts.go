package core

import (
	"context"
	"errors"
	"time"
)

// Sleep pauses for d, any length of it; it returns ctx's error at once when ctx ends, and leaves no timer behind.
func Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return Ended(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return Ended(ctx)
	}
}

// Ended is the error of a context that has ended: its own, which errors.Is finds together with its cause.
func Ended(ctx context.Context) error { return endedAfter(ctx, "") }

// endedAfter names what went wrong last as well, which is why the time was not enough.
func endedAfter(ctx context.Context, last string) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if last == "" && (cause == nil || errors.Is(err, cause)) {
		return err
	}
	return &ended{err: err, cause: cause, last: last}
}

type ended struct {
	err   error
	cause error
	last  string
}

func (e *ended) Error() string {
	said := e.err.Error()
	if e.cause != nil && !errors.Is(e.err, e.cause) {
		said += ": " + e.cause.Error()
	}
	if e.last != "" {
		said += " (" + e.last + ")"
	}
	return said
}

// Unwrap is both, so that errors.Is finds the end of the context and why it ended.
func (e *ended) Unwrap() []error {
	if e.cause == nil {
		return []error{e.err}
	}
	return []error{e.err, e.cause}
}
