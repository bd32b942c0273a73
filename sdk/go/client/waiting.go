package client

import (
	"context"
	"errors"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/core"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

const (
	// heldFor is how long one call of a wait is held: what stands between often cuts a call that is silent for a
	// minute.
	heldFor = 50 * time.Second
	pace    = time.Second
)

// WaitForApprovalOptions say which approval is waited for.
type WaitForApprovalOptions struct {
	// ApprovalRequestID picks one of the execution's questions; "" for the newest when the wait begins.
	ApprovalRequestID string
	// PollInterval, MaxInterval and BackoffFactor are accepted and have no effect: the control plane holds the call and
	// answers as soon as there is a decision.
	PollInterval  time.Duration
	MaxInterval   time.Duration
	BackoffFactor float64
}

// WaitForApproval waits until the approval is final, through restarts of the control plane, for as long as ctx, be
// that hours or weeks. options may be nil.
//
// The approval that stands when the wait begins is the one that is waited for; an answer to a later round is never
// taken for it. Errors: ctx's own when ctx is cancelled; ErrWaitTimeout, which is a context.DeadlineExceeded, when
// its deadline has passed: the approval is still pending then and can be waited for again; ErrNotFound when the
// execution has not asked that; ErrRefused (code unexpected_reply) when the status is none of the known words, which
// is never a decision.
func (c *Client) WaitForApproval(
	ctx context.Context, nodeID, executionID string, options *WaitForApprovalOptions,
) (ApprovalResult, error) {
	if options == nil {
		options = &WaitForApprovalOptions{}
	}
	look := StatusOptions{ApprovalRequestID: options.ApprovalRequestID, Wait: heldFor}
	approvalID := ""
	for {
		asked := time.Now()
		status, err := c.held(ctx, statusCall(nodeID, executionID, look), approvalID)
		if err != nil {
			return ApprovalResult{}, timeUp(ctx, err)
		}
		if status.Status != "pending" {
			return status.Result()
		}
		look.ApprovalRequestID, approvalID = status.ApprovalRequestID, status.ApprovalID
		// A control plane that stops, or has too many waits, answers at once; that must not become a busy loop.
		if err := core.Sleep(ctx, pace-time.Since(asked)); err != nil {
			return ApprovalResult{}, timeUp(ctx, err)
		}
	}
}

// held is how the approval stands that is waited for: another one that is the newest by now is not it.
func (c *Client) held(ctx context.Context, call core.Call, approvalID string) (*ApprovalStatus, error) {
	status, err := waited[ApprovalStatus](ctx, c, call, core.Endless)
	if err != nil || approvalID == "" || status.ApprovalID == approvalID {
		return status, err
	}
	meant, err := waited[Approval](ctx, c, get(core.APIPath("approvals", approvalID)), core.Endless)
	if err != nil {
		return nil, err
	}
	return &meant.ApprovalStatus, nil
}

// timeUp says what a deadline that has passed means here, with the reason why nothing was heard where there is one.
func timeUp(ctx context.Context, err error) error {
	if ctx.Err() != context.DeadlineExceeded || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	up := errs.ErrWaitTimeout.New("")
	if err != ctx.Err() {
		up.Message += "; " + err.Error()
	}
	return up.Because(err)
}
