package client

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/core"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

// Execution is one run of an agent's function as it stands.
type Execution struct {
	ExecutionID string `json:"execution_id"`
	NodeID      string `json:"node_id"`
	// Status is queued, running, waiting, succeeded, failed, cancelled or timeout; the last four are final.
	Status            string `json:"status"`
	StatusReason      string `json:"status_reason"`
	RunID             string `json:"run_id"`
	ParentExecutionID string `json:"parent_execution_id"`
	Reasoner          string `json:"reasoner"`
	PendingApprovals  int    `json:"pending_approvals"`
	// Input and Result are any JSON as it was given; nil where there is none.
	Input  json.RawMessage `json:"input"`
	Result json.RawMessage `json:"result"`
	// Error is what a run that failed said, a JSON text; nil where there is none.
	Error     json.RawMessage `json:"error"`
	CreatedAt time.Time       `json:"created_at"`
	StartedAt time.Time       `json:"started_at"`
	UpdatedAt time.Time       `json:"updated_at"`
	// EndedAt is the zero time until the run is over.
	EndedAt time.Time `json:"ended_at"`
	// Dispatched is true for a run that the control plane gave to an agent. Fence counts how often, InstanceID is who
	// has it, Attempts and LastError are those of giving it away now, and OutcomePending says that its code has not
	// seen yet how it ended.
	Dispatched     bool   `json:"dispatched"`
	Fence          int    `json:"fence"`
	InstanceID     string `json:"instance_id"`
	OutcomePending bool   `json:"outcome_pending"`
	Attempts       int    `json:"attempts"`
	LastError      string `json:"last_error"`
}

// Final is true when the status will not change any more.
func (e Execution) Final() bool { return isOver(e.Status) }

// UnmarshalJSON refuses what names no execution.
func (e *Execution) UnmarshalJSON(raw []byte) error {
	type plain Execution
	if err := json.Unmarshal(raw, (*plain)(e)); err != nil {
		return err
	}
	e.Input, e.Result, e.Error = orNil(e.Input), orNil(e.Result), orNil(e.Error)
	return needed(1, "execution_id", e.ExecutionID, "node_id", e.NodeID, "status", e.Status)
}

// CreateExecutionRequest says which run is started by the program itself.
type CreateExecutionRequest struct {
	// ExecutionID is 1-128 of `A-Z a-z 0-9 . _ ~ : -`, chosen by the caller, so that a retry cannot start two.
	ExecutionID string `json:"execution_id,omitempty"`
	// NodeID is the agent that it belongs to; Options.NodeID when empty.
	NodeID string `json:"node_id"`
	// Reasoner names the function that it runs.
	Reasoner string `json:"reasoner,omitempty"`
	// Input is what it was called with: anything that JSON can hold.
	Input any `json:"input,omitempty"`
	// RunID groups executions.
	RunID string `json:"run_id,omitempty"`
}

type createPlain CreateExecutionRequest

type createMembers struct {
	createPlain
	Input json.RawMessage `json:"input,omitempty"`
}

// CreateExecution starts an execution, or finds it: the same id again returns it as it stands.
//
// It fails with ErrInvalidField when the id is empty, as a try that is sent again would start a second run, and with
// ErrExecutionExists when another node owns the id.
func (c *Client) CreateExecution(ctx context.Context, request CreateExecutionRequest) (*Execution, error) {
	if request.ExecutionID == "" {
		return nil, errs.Invalid("execution_id", "must be chosen by the caller, so that a retry cannot start two")
	}
	if request.NodeID == "" {
		request.NodeID = c.nodeID
	}
	input, err := optional("input", request.Input)
	if err != nil {
		return nil, err
	}
	members := createMembers{createPlain: createPlain(request), Input: input}
	return posted[Execution](ctx, c, core.APIPath("executions"), members)
}

// GetExecution is one execution as it stands. It fails with ErrNotFound when no execution has this id.
func (c *Client) GetExecution(ctx context.Context, executionID string) (*Execution, error) {
	return answered[Execution](ctx, c, get(core.APIPath("executions", executionID)))
}

// CancelExecution cancels a run as an operator; what it asked is withdrawn. reason may be "".
func (c *Client) CancelExecution(ctx context.Context, executionID, reason string) (*Execution, error) {
	members := struct {
		Reason string `json:"reason,omitempty"`
	}{reason}
	return posted[Execution](ctx, c, core.APIPath("executions", executionID, "cancel"), members)
}

func isOver(status string) bool {
	switch status {
	case "succeeded", "failed", "cancelled", "timeout":
		return true
	}
	return false
}
