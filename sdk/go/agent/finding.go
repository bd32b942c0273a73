package agent

import (
	"context"
	"strconv"
	"time"

	"github.com/holdshort/holdshort/sdk/go/client"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/wire"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

// find is the approval that is meant: the execution's newest under the id, else the node's.
func (a *Agent) find(
	ctx context.Context, approvalRequestID, executionID string, until time.Time,
) (client.ApprovalStatus, error) {
	if executionID != "" {
		var found client.ApprovalStatus
		err := a.sender.Send(ctx, wire.ApprovalStatus(executionID, approvalRequestID), left(until), &found)
		return found, err
	}
	// An id may stand for a million runs that are over; those that wait are few.
	found, err := a.listed(ctx, approvalRequestID, "pending", until)
	if err == nil && len(found) == 0 {
		found, err = a.listed(ctx, approvalRequestID, "", until)
	}
	if err != nil {
		return client.ApprovalStatus{}, err
	}
	return meant(found, approvalRequestID, a.config.NodeID)
}

func meant(found []client.Approval, approvalRequestID, nodeID string) (client.ApprovalStatus, error) {
	if len(found) == 0 {
		none := errs.ErrNotFound.New("no approval was asked under " + strconv.Quote(approvalRequestID) + " by " + nodeID)
		none.Code = "no_approval_request"
		return client.ApprovalStatus{}, none
	}
	var pending []client.Approval
	newest := found[0]
	for _, approval := range found {
		if !approval.Final() {
			pending = append(pending, approval)
		}
		if approval.Round > newest.Round {
			newest = approval
		}
	}
	if len(pending) == 1 {
		return pending[0].ApprovalStatus, nil
	}
	if len(pending) == 0 && !several(found) {
		return newest.ApprovalStatus, nil
	}
	listed := make([]map[string]any, 0, len(found))
	for _, approval := range found {
		listed = append(listed, map[string]any{
			"approval_id": approval.ApprovalID, "execution_id": approval.ExecutionID, "round": approval.Round,
			"status": approval.Status,
		})
	}
	unclear := errs.ErrAmbiguousRequestID.New("")
	unclear.Details = map[string]any{"approvals": listed}
	return client.ApprovalStatus{}, unclear
}

// listed are those that match, page by page until it is clear whether one or several executions asked.
func (a *Agent) listed(
	ctx context.Context, approvalRequestID, status string, until time.Time,
) ([]client.Approval, error) {
	var found []client.Approval
	for cursor := ""; ; {
		var page client.ApprovalPage
		call := wire.ListApprovals(a.config.NodeID, approvalRequestID, status, cursor)
		if err := a.sender.Send(ctx, call, left(until), &page); err != nil {
			return nil, err
		}
		found = append(found, page.Approvals...)
		cursor = page.NextCursor
		if cursor == "" || several(found) {
			return found, nil
		}
	}
}

func several(found []client.Approval) bool {
	for _, approval := range found {
		if approval.ExecutionID != found[0].ExecutionID {
			return true
		}
	}
	return false
}
