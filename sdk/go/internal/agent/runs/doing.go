package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/agent/wire"
	"github.com/holdshort/holdshort/sdk/go/internal/core"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

const (
	longestError = 65_536
	// cleaningUp is how long code may go on after its time limit; then its end is told without it.
	cleaningUp = 5 * time.Second
)

// Code is what a run does; what it returns is JSON.
type Code func(ctx context.Context) (json.RawMessage, error)

// Outcome is how a run ended.
type Outcome struct {
	// Status and Reason are what the control plane says stands.
	Status string
	Reason string
	Result json.RawMessage
	// Err is the end of the run, or what its code returned; nil where it succeeded.
	Err error
	// Told is true when the control plane knows how it ended, or need not be told.
	Told bool
}

type returned struct {
	result json.RawMessage
	err    error
}

// Do lets code be this run's, and reports how it ends. parent is the context that the code's is made from; limit is how
// long it may work, nil for any time.
func (r *Run) Do(parent context.Context, limit *time.Duration, code Code) Outcome {
	defer close(r.ended)
	ctx, cancel := context.WithCancelCause(With(parent, Place{Run: r}))
	defer cancel(errs.ErrNoExecution.New("this run is over"))
	r.mu.Lock()
	r.cancel = cancel
	begun := r.end == nil
	r.mu.Unlock()
	back := returned{err: r.Check()}
	if begun {
		r.clock.start(limit)
		back = r.called(ctx, code)
	}
	r.clock.stop()
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	cancel(errs.ErrNoExecution.New("this run is over"))
	outcome := r.tell(parent, back)
	r.mu.Lock()
	r.told = true
	r.mu.Unlock()
	return outcome
}

// called runs code to its end, or until nobody waits for it any more.
func (r *Run) called(ctx context.Context, code Code) returned {
	done := make(chan returned, 1)
	go func() { done <- r.safely(ctx, code) }()
	select {
	case back := <-done:
		return back
	case <-r.Life.Done():
	case <-ctx.Done():
		if !r.OutOfTime() {
			return r.untilLifeEnds(done)
		}
		if back, ended := within(done, cleaningUp); ended {
			return back
		}
	}
	r.Log.Warn("the run's code went on after its end, and is not waited for")
	return returned{err: r.Failed(errs.ErrHandedBack.New(""))}
}

// untilLifeEnds lets code that was told its end clean up.
func (r *Run) untilLifeEnds(done <-chan returned) returned {
	select {
	case back := <-done:
		return back
	case <-r.Life.Done():
	}
	return returned{err: r.Failed(errs.ErrHandedBack.New(""))}
}

func within(done <-chan returned, long time.Duration) (returned, bool) {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case back := <-done:
		return back, true
	case <-timer.C:
		return returned{}, false
	}
}

// safely calls code; what it panics with is the run's failure and never the process's.
func (r *Run) safely(ctx context.Context, code Code) (back returned) {
	finished := false
	defer func() {
		if finished {
			return
		}
		if fault := recover(); fault != nil {
			r.Log.Error("a reasoner panicked", "panic", fault, "stack", string(debug.Stack()))
			back = returned{err: fmt.Errorf("panic: %v", fault)}
			return
		}
		back = returned{err: errors.New("the function ended its goroutine without returning")}
	}()
	result, err := code(ctx)
	finished = true
	return returned{result, err}
}

// tell reports how the code ended. What is no end of the run, only of this process, is not reported.
func (r *Run) tell(parent context.Context, back returned) Outcome {
	end := r.End()
	switch {
	case end == nil && back.err == nil:
		return r.succeeded(back)
	case end == nil && parent.Err() != nil:
		return Outcome{Status: r.Status, Err: back.err, Told: true}
	case end == nil:
		return r.report(wire.Report{Status: "failed", Error: said(back.err)}, back.err)
	case errors.Is(end, errs.ErrHandedBack), errors.Is(end, errs.ErrStaleInstance):
		return Outcome{Status: r.Status, Err: end, Told: errors.Is(end, errs.ErrStaleInstance)}
	case errors.Is(end, errs.ErrExecutionCancelled):
		return r.report(wire.Report{Status: "cancelled", Error: end.Message, Result: back.result}, end)
	case errors.Is(end, errs.ErrStepMismatch):
		return r.report(wire.Report{Status: "failed", Error: said(end), Reason: end.Code}, end)
	case r.OutOfTime():
		return r.report(wire.Report{Status: "timeout", Error: end.Message, Result: back.result}, end)
	}
	return r.report(wire.Report{Status: "failed", Error: said(end)}, end)
}

func (r *Run) succeeded(back returned) Outcome {
	if left := r.book.NotAsked(); len(left) > 0 {
		r.Log.Warn("steps are stored that this run's code did not ask for; was it changed?", "steps", left)
	}
	outcome := r.report(wire.Report{Status: "succeeded", Result: back.result}, nil)
	if errors.Is(outcome.Err, errs.ErrBadRequest) {
		// A result that the control plane will not store: a run that can never report would stay running for ever.
		refused := outcome.Err
		outcome = r.report(wire.Report{Status: "failed", Error: said(refused)}, refused)
	}
	return outcome
}

// report tells the control plane how the run ended, after its notes. why is what the run ended with, nil for nothing.
func (r *Run) report(told wire.Report, why error) Outcome {
	r.notes.flush()
	var stands wire.Execution
	err := r.Send(r.Life, wire.ReportStatus(r.ExecutionID, told), core.Endless, &stands)
	if errors.Is(err, errs.ErrBadRequest) && told.Result != nil && told.Status != "succeeded" {
		// Why it ended matters more than what it had so far.
		told.Result = nil
		err = r.Send(r.Life, wire.ReportStatus(r.ExecutionID, told), core.Endless, &stands)
	}
	if err != nil {
		ended := r.Life.Err() != nil && !errors.Is(err, errs.ErrStaleInstance)
		return Outcome{Status: r.Status, Err: err, Told: !ended}
	}
	outcome := Outcome{Status: stands.Status, Reason: stands.StatusReason, Err: why, Told: true}
	if why == nil {
		outcome.Result = told.Result
	}
	return outcome
}

// said is an error as text that can be stored: a run must be able to say why it failed, whatever its words are.
func said(err error) string {
	text := strings.ToValidUTF8(err.Error(), "?")
	if len(text) > longestError {
		text = strings.ToValidUTF8(text[:longestError], "")
	}
	return strings.ReplaceAll(text, "\x00", "?")
}
