package agent

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/holdshort/holdshort/sdk/go/client"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/pauses"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/wire"
	"github.com/holdshort/holdshort/sdk/go/internal/core"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

const (
	lastWord  = 30 * time.Second
	notCalled = "callback_url_refused"
)

// asker is who asks: the run itself, or an outsider.
type asker interface {
	// Send sends a call that is the run's own.
	Send(ctx context.Context, call core.Call, patience time.Duration, into any) error
	// Sure returns once an answer may wake the code that waits.
	Sure(ctx context.Context) error
}

// outsider asks and waits for a run whose code is elsewhere, and knows no fence of it.
type outsider struct{ agent *Agent }

func (o outsider) Send(ctx context.Context, call core.Call, patience time.Duration, into any) error {
	err := o.agent.sender.Send(ctx, call, patience, into)
	var stale *client.Error
	if errors.Is(err, client.ErrStaleInstance) && errors.As(err, &stale) {
		held := *stale.Into(errs.ErrConflict)
		held.Message = "only the process that was given this run may do that, from the run's own code"
		return &held
	}
	return err
}

func (outsider) Sure(context.Context) error { return nil }

// pause asks one round of a question and waits for what becomes of it. target is where the decision is to be pushed, ""
// for pull only.
func (a *Agent) pause(
	ctx context.Context, asks asker, key pauses.Key, question Question, target string,
) (client.ApprovalResult, error) {
	result, err := a.registered(ctx, asks, key, question, target)
	if err != nil {
		return client.ApprovalResult{}, err
	}
	return result, a.stopIfCancelled(ctx, result)
}

func (a *Agent) registered(
	ctx context.Context, asks asker, key pauses.Key, question Question, target string,
) (client.ApprovalResult, error) {
	until := until(question.Timeout)
	// Before it asks, so that no answer is too early.
	entry := a.registry.Register(key)
	defer a.registry.Release(key, entry)
	asked, err := a.ask(ctx, asks, wanted(key, question, target, entry.Secret), key.ExecutionID, question.Timeout)
	if err != nil {
		return client.ApprovalResult{}, err
	}
	result, err := a.outcome(ctx, asks, key, entry, asked, until)
	if err == nil {
		a.registry.Resolve(result)
	}
	return result, err
}

func (a *Agent) outcome(
	ctx context.Context, asks asker, key pauses.Key, entry *pauses.Pause, asked *client.Asked, until time.Time,
) (client.ApprovalResult, error) {
	if asked.Final() {
		return asked.Result(key.ExecutionID)
	}
	a.registry.Named(entry, asked.ApprovalID)
	result, answered, err := a.answer(ctx, asks, entry, asked.ApprovalID, until)
	if answered || err != nil {
		return result, err
	}
	// End the question's time on the server; what it says stands is the result, an answer at the last moment too.
	var stands client.Approval
	if err := asks.Send(ctx, wire.Expire(asked.ApprovalID), lastWord, &stands); err != nil {
		return client.ApprovalResult{}, err
	}
	return stands.Result()
}

func wanted(key pauses.Key, question Question, target, secret string) client.RequestApprovalRequest {
	request := client.RequestApprovalRequest{
		ApprovalRequestID: key.ApprovalRequestID, ApprovalRequestURL: question.ApprovalRequestURL,
		ExpiresInHours: question.ExpiresInHours, Title: question.Title, Description: question.Description,
		Payload: question.Payload, OnExpiry: question.OnExpiry, DecidedBy: question.DecidedBy, Form: question.Form,
		Round: key.Round, CallbackURL: target,
	}
	if target != "" {
		request.CallbackSecret = secret
	}
	return request
}

// ask asks; where this agent may not be called back, it asks without an address and waits by the held call alone.
func (a *Agent) ask(
	ctx context.Context, asks asker, request client.RequestApprovalRequest, executionID string, timeout time.Duration,
) (*client.Asked, error) {
	asked, err := a.askOnce(ctx, asks, request, executionID, timeout)
	if !refusesCalls(err) || !a.pulls() {
		return asked, err
	}
	a.log.Warn("the answer is waited for without callbacks", "error", err)
	request.CallbackURL, request.CallbackSecret = "", ""
	return a.askOnce(ctx, asks, request, executionID, timeout)
}

func (a *Agent) askOnce(
	ctx context.Context, asks asker, request client.RequestApprovalRequest, executionID string, timeout time.Duration,
) (*client.Asked, error) {
	body, err := bodyOf(request)
	if err != nil {
		return nil, err
	}
	patience := core.Endless
	if timeout > 0 {
		patience = timeout
	}
	call := core.Call{
		Method: http.MethodPost, Path: core.APIPath("executions", executionID, "request-approval"), Body: body,
	}
	var asked client.Asked
	if err := asks.Send(ctx, call, patience, &asked); err != nil {
		return nil, err
	}
	return &asked, nil
}

// bodyOf is the request as it is sent; an error names the field that is no JSON.
func bodyOf(request client.RequestApprovalRequest) ([]byte, error) {
	if request.Payload != nil {
		payload, err := core.JSON("payload", request.Payload)
		if err != nil {
			return nil, err
		}
		request.Payload = payload
	}
	return core.JSON("question", request)
}

func refusesCalls(err error) bool {
	var refused *client.Error
	return errors.Is(err, client.ErrInvalidField) && errors.As(err, &refused) && refused.Code == notCalled
}

// resume waits for an approval that was asked before, perhaps by a process that is gone.
func (a *Agent) resume(
	ctx context.Context, asks asker, standing client.ApprovalStatus, target string, until time.Time,
) (client.ApprovalResult, error) {
	if standing.Final() {
		return standing.Result()
	}
	key := pauses.Key{
		ExecutionID: standing.ExecutionID, ApprovalRequestID: standing.ApprovalRequestID, Round: standing.Round,
	}
	entry := a.registry.Register(key)
	defer a.registry.Release(key, entry)
	a.registry.Named(entry, standing.ApprovalID)
	if target != "" {
		if err := a.move(ctx, asks, standing.ApprovalID, target, entry.Secret, until); err != nil {
			return client.ApprovalResult{}, err
		}
	}
	result, answered, err := a.answer(ctx, asks, entry, standing.ApprovalID, until)
	if err != nil || answered {
		return result, err
	}
	pending := errs.ErrWaitTimeout.New("")
	pending.Details = map[string]any{"approval_id": standing.ApprovalID}
	return client.ApprovalResult{}, pending
}

// move lets the decision be pushed here.
func (a *Agent) move(ctx context.Context, asks asker, approvalID, target, secret string, until time.Time) error {
	err := asks.Send(ctx, wire.SetCallback(approvalID, target, secret), left(until), nil)
	if refusesCalls(err) && a.pulls() {
		a.log.Warn("the answer is waited for without callbacks", "error", err)
		return nil
	}
	// Whoever holds the run is told there; a bystander is not, and hears of it by asking.
	if _, bystander := asks.(outsider); bystander && errors.Is(err, client.ErrConflict) {
		return nil
	}
	return err
}

// answer waits for the outcome; false when the time is up first.
func (a *Agent) answer(
	ctx context.Context, asks asker, entry *pauses.Pause, approvalID string, until time.Time,
) (client.ApprovalResult, bool, error) {
	if a.registry.Draining() {
		return client.ApprovalResult{}, false, errs.ErrHandedBack.New("")
	}
	a.session.waits.Add(approvalID)
	defer a.session.waits.Remove(approvalID)
	if err := settled(ctx, entry.Done, until); err != nil {
		return client.ApprovalResult{}, false, err
	}
	outcome, there := a.registry.Outcome(entry)
	if !there {
		return client.ApprovalResult{}, false, nil
	}
	if outcome.End != nil {
		return client.ApprovalResult{}, false, outcome.End
	}
	return outcome.Result, true, asks.Sure(ctx)
}

// settled returns when done is closed or the time is up; the error is ctx's own.
func settled(ctx context.Context, done <-chan struct{}, until time.Time) error {
	var up <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		up = timer.C
	}
	select {
	case <-done:
	case <-up:
	case <-ctx.Done():
		return core.Ended(ctx)
	}
	return nil
}

// stopIfCancelled: a question is withdrawn with its run's cancellation; only an operator's ends the code too.
func (a *Agent) stopIfCancelled(ctx context.Context, result client.ApprovalResult) error {
	if !result.Withdrawn() {
		return nil
	}
	var stands wire.Execution
	if err := a.sender.Send(ctx, wire.GetExecution(result.ExecutionID), core.Endless, &stands); err != nil {
		return err
	}
	if stands.Status != "cancelled" || stands.EndedByApproval() {
		return nil
	}
	return cancelled(result.ExecutionID, stands.StatusReason)
}

func cancelled(executionID, reason string) *client.Error {
	end := errs.ErrExecutionCancelled.New("execution " + executionID + " was cancelled: " + reason)
	end.Details = map[string]any{"status_reason": reason}
	return end
}

// until is so long from now; the zero time for never.
func until(timeout time.Duration) time.Time {
	if timeout <= 0 {
		return time.Time{}
	}
	return time.Now().Add(timeout)
}

func left(until time.Time) time.Duration {
	if until.IsZero() {
		return core.Endless
	}
	return max(0, time.Until(until))
}
