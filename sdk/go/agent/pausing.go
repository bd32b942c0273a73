package agent

import (
	"context"
	"errors"
	"time"

	"github.com/holdshort/holdshort/sdk/go/client"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/forms"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/pauses"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/runs"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

// Question is what Pause asks a person.
type Question struct {
	// ApprovalRequestID is 1-256 characters, unique in the execution. When empty it is made of the reasoner's name, the
	// branch and a counter in start order; give one when pauses start in an order that may change.
	ApprovalRequestID string
	// ApprovalRequestURL is the page where the person decides; the control plane's own when empty.
	ApprovalRequestURL string
	// Title has at most 200 characters, Description at most 20,000.
	Title       string
	Description string
	// Payload is the exact action: anything that JSON can hold, up to 256 KiB.
	Payload any
	// ExpiresInHours is 1 s to 8760 h, fractions allowed; the control plane's default (72) when 0.
	ExpiresInHours float64
	// OnExpiry is "cancel" (the default), which ends the run at the deadline though its code still sees the result and may
	// clean up, or "resume", which lets it go on.
	OnExpiry string
	// DecidedBy names the only webhook sender whose answer counts.
	DecidedBy string
	// Form is what the person fills in; the values come with an approval. Values of a JSON Schema are checked by the
	// control plane, not here once more.
	Form *client.Form
	// Timeout is after how long the server is asked to expire the question; the result is what the server says stands.
	// Without end when 0.
	Timeout time.Duration
	// ExecutionID is the run that asks; the current one when empty.
	ExecutionID string
}

// Pause asks a person and waits, for days if need be.
//
// A run that is started again under its execution id finds its question, and its answer, again. The n-th Pause under an
// id asks its n-th round; one that failed, or that the caller gave up, does not count, so that trying again finds the same
// question. Restarts of the control plane are not noticed. The end of ctx ends the wait; the question stays pending.
//
// A rejection is a result too: the code goes on, but can ask nothing new.
//
// Errors: client.ErrNoExecution outside a run without ExecutionID; client.ErrExecutionFinished when the run is over;
// client.ErrRequestConflict when the id stands for another payload, form or expiry rule; client.ErrValuesInvalid when it is
// approved with values that do not fit the form, which are not handed over; client.ErrConnectionFailed when Timeout passed
// without the control plane, and nothing was decided; the end of the run (client.ErrRunEnded): an operator cancelled it, it
// was taken over, or this process stops. Return then.
func (a *Agent) Pause(ctx context.Context, question Question) (client.ApprovalResult, error) {
	place, inRun := a.here(ctx)
	own := inRun && (question.ExecutionID == "" || question.ExecutionID == place.Run.ExecutionID)
	if !own && question.ExecutionID == "" {
		return client.ApprovalResult{}, errs.ErrNoExecution.New("")
	}
	if err := forms.Check(question.Form); err != nil {
		return client.ApprovalResult{}, err
	}
	if own {
		if err := place.Run.Check(); err != nil {
			return client.ApprovalResult{}, err
		}
		question.ExecutionID = place.Run.ExecutionID
		return a.counted(ctx, place.Run, place.Run.Rounds, place.Named(), question)
	}
	named := a.config.NodeID
	if inRun {
		named = place.Named()
	}
	return a.counted(ctx, nil, a.roundsOf(question.ExecutionID), named, question)
}

// counted takes the id and the round of a question, and gives the round back where there was no answer.
func (a *Agent) counted(
	ctx context.Context, run *runs.Run, rounds *pauses.Rounds, named string, question Question,
) (result client.ApprovalResult, err error) {
	if question.ApprovalRequestID == "" {
		question.ApprovalRequestID = rounds.MadeID(named)
	}
	key := rounds.Next(question.ExecutionID, question.ApprovalRequestID)
	answered := false
	defer func() {
		if !answered && rounds.GiveBack(key) && run == nil {
			a.forget(question.ExecutionID, rounds)
		}
	}()
	result, err = a.asked(ctx, run, key, question)
	if err == nil {
		err = forms.Fitting(question.Form, result)
	}
	answered = err == nil
	if err != nil {
		return client.ApprovalResult{}, err
	}
	return result, nil
}

func (a *Agent) asked(
	ctx context.Context, run *runs.Run, key pauses.Key, question Question,
) (client.ApprovalResult, error) {
	target, err := a.callbackTarget()
	if err != nil {
		return client.ApprovalResult{}, err
	}
	if run == nil {
		a.session.enter()
		defer a.session.leave()
		return a.pause(ctx, outsider{a}, key, question, target)
	}
	return a.waiting(run, func() (client.ApprovalResult, error) { return a.pause(ctx, run, key, question, target) })
}

// waiting lets a run wait: its clock stands still, and an end that the wait comes to is the run's.
func (a *Agent) waiting(
	run *runs.Run, wait func() (client.ApprovalResult, error),
) (client.ApprovalResult, error) {
	waited, err := run.Wait()
	if err != nil {
		return client.ApprovalResult{}, err
	}
	defer waited()
	result, err := wait()
	var end *client.Error
	if errors.Is(err, client.ErrRunEnded) && errors.As(err, &end) {
		run.Interrupt(end)
	}
	if err != nil {
		return client.ApprovalResult{}, run.Failed(err)
	}
	return result, nil
}

// ResumeOptions say more of a wait for a question that was asked before.
type ResumeOptions struct {
	// ExecutionID is who asked; the current run when empty.
	ExecutionID string
	// Timeout is how long to wait; without end when 0.
	Timeout time.Duration
	// Form is what it was asked with; the values are held against it as in Pause.
	Form *client.Form
}

// WaitForResume waits for a question asked before, perhaps by a process that is gone; a decision made meanwhile is
// returned. options may be nil.
//
// Without an execution (the context's, or by name) the node's approvals under the id are looked up: the one that is
// pending, else the newest when one execution asked.
//
// Errors: client.ErrNotFound when nobody asked under this id; client.ErrAmbiguousRequestID when several could be meant,
// which Details["approvals"] lists; client.ErrWaitTimeout when it is still pending, and can be waited for again;
// client.ErrConnectionFailed when Timeout passed before the control plane could say how it stands; client.ErrValuesInvalid;
// the end of the run.
func (a *Agent) WaitForResume(
	ctx context.Context, approvalRequestID string, options *ResumeOptions,
) (client.ApprovalResult, error) {
	known := ResumeOptions{}
	if options != nil {
		known = *options
	}
	if err := forms.Check(known.Form); err != nil {
		return client.ApprovalResult{}, err
	}
	result, err := a.resumed(ctx, approvalRequestID, known)
	if err == nil {
		err = forms.Fitting(known.Form, result)
	}
	if err != nil {
		return client.ApprovalResult{}, err
	}
	return result, nil
}

func (a *Agent) resumed(
	ctx context.Context, approvalRequestID string, options ResumeOptions,
) (client.ApprovalResult, error) {
	a.session.enter()
	defer a.session.leave()
	until := until(options.Timeout)
	place, inRun := a.here(ctx)
	if inRun && options.ExecutionID == "" {
		options.ExecutionID = place.Run.ExecutionID
	}
	standing, err := a.find(ctx, approvalRequestID, options.ExecutionID, until)
	if err != nil {
		return client.ApprovalResult{}, err
	}
	target, err := a.callbackTarget()
	if err != nil {
		return client.ApprovalResult{}, err
	}
	if !inRun || place.Run.ExecutionID != standing.ExecutionID {
		return a.resume(ctx, outsider{a}, standing, target, until)
	}
	return a.waiting(place.Run, func() (client.ApprovalResult, error) {
		result, err := a.resume(ctx, place.Run, standing, target, until)
		if err != nil {
			return result, err
		}
		return result, a.stopIfCancelled(ctx, result)
	})
}

func (a *Agent) roundsOf(executionID string) *pauses.Rounds {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.rounds[executionID] == nil {
		a.rounds[executionID] = pauses.NewRounds()
	}
	return a.rounds[executionID]
}

// forget lets go of counters that stand at nothing.
func (a *Agent) forget(executionID string, rounds *pauses.Rounds) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.rounds[executionID] == rounds {
		delete(a.rounds, executionID)
	}
}
