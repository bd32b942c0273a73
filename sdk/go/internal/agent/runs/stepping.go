package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/agent/steps"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/wire"
	"github.com/holdshort/holdshort/sdk/go/internal/core"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

// lastKeep is how long the result of a step whose caller has gone is still being stored.
const lastKeep = 5 * time.Second

// Step is the stored result of a step, after doing it if there is none.
func (r *Run) Step(ctx context.Context, branch, name string, perform Code) (json.RawMessage, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	ticket, err := r.book.Call(branch, name)
	if err != nil {
		return nil, err
	}
	stored := false
	// Also when the code panics or ends its goroutine: its call must not stay one that goes on.
	defer func() {
		if stored {
			r.book.Done(ticket)
		} else {
			r.book.Failed(ticket)
		}
	}()
	result, err := r.done(ctx, ticket, perform)
	stored = err == nil
	return result, r.Failed(err)
}

func (r *Run) done(ctx context.Context, ticket steps.Ticket, perform Code) (json.RawMessage, error) {
	if err := r.Sure(ctx); err != nil {
		return nil, err
	}
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	if step, there := r.book.Find(ticket); there {
		return step.Result, nil
	}
	wanted := r.book.New(ticket)
	result, err := perform(With(ctx, Place{Run: r, Branch: ticket.Branch, InStep: true}))
	if err != nil {
		return nil, err
	}
	if len(result) > steps.Largest {
		return nil, tooLarge(ticket.Name, len(result))
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	wanted.Result = result
	return r.keep(ctx, wanted)
}

// keep stores a result before anybody sees it; of two results the first stands.
func (r *Run) keep(ctx context.Context, wanted steps.Step) (json.RawMessage, error) {
	if ctx.Err() != nil {
		// It is done, so it should be kept, though its caller waits no more.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastKeep)
		defer cancel()
	}
	var kept steps.Step
	err := r.Send(ctx, wire.KeepStep(r.ExecutionID, wanted), core.Endless, &kept)
	var refused *errs.Error
	if !errors.As(err, &refused) {
		return kept.Result, err
	}
	if errors.Is(refused, errs.ErrStepMismatch) {
		r.Interrupt(refused)
	}
	if errors.Is(refused, errs.ErrExecutionFinished) && endedByApproval(refused) {
		r.Log.Warn("a step was done but not kept", "step", wanted.Name, "error", refused)
		return wanted.Result, nil
	}
	return nil, refused
}

func endedByApproval(refused *errs.Error) bool {
	status, _ := refused.Details["execution_status"].(string)
	reason, _ := refused.Details["status_reason"].(string)
	return wire.EndedByApproval(status, reason)
}

// open reads what is stored: once, and only when there may be some.
func (r *Run) open(ctx context.Context) error {
	select {
	case r.opening <- struct{}{}:
	case <-ctx.Done():
		return core.Ended(ctx)
	}
	defer func() { <-r.opening }()
	if r.opened || (r.StoredSteps != nil && *r.StoredSteps == 0) {
		return nil
	}
	stored, err := r.stored(ctx)
	if err == nil {
		r.book.Open(stored)
		r.opened = true
	}
	return err
}

func (r *Run) stored(ctx context.Context) ([]steps.Step, error) {
	var found []steps.Step
	after := new(int64)
	for after != nil {
		var page struct {
			Steps     []steps.Step `json:"steps"`
			NextAfter *int64       `json:"next_after"`
		}
		if err := r.Send(ctx, wire.ListSteps(r.ExecutionID, *after), core.Endless, &page); err != nil {
			return nil, err
		}
		found = append(found, page.Steps...)
		after = page.NextAfter
	}
	return found, nil
}

func tooLarge(name string, size int) error {
	refused := errs.ErrStepTooLarge.New(fmt.Sprintf("the result of step %q is %d bytes of JSON, and %d is the most; store"+
		" it elsewhere and return where it is", name, size, steps.Largest))
	refused.Details = map[string]any{"size_bytes": size, "limit_bytes": steps.Largest}
	return refused
}
