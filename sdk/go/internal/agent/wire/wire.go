// Package wire holds what the control plane says to an agent, and the calls that an agent makes beside the client's.
package wire

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/holdshort/holdshort/sdk/go/internal/core"
)

// Execution is one run as the control plane has it.
type Execution struct {
	ExecutionID  string          `json:"execution_id"`
	Status       string          `json:"status"`
	StatusReason string          `json:"status_reason"`
	Result       json.RawMessage `json:"result"`
	Error        json.RawMessage `json:"error"`
}

// Final is true when the status will not change any more.
func (e Execution) Final() bool {
	switch e.Status {
	case "succeeded", "failed", "cancelled", "timeout":
		return true
	}
	return false
}

// EndedByApproval is true when a rejection or an expiry cancelled it: its code may still clean up and report.
func (e Execution) EndedByApproval() bool { return EndedByApproval(e.Status, e.StatusReason) }

// EndedByApproval is true when this is how a rejection or an expiry ends an execution.
func EndedByApproval(status, reason string) bool {
	return status == "cancelled" &&
		(strings.HasPrefix(reason, "approval_rejected") || strings.HasPrefix(reason, "approval_expired"))
}

// CreateExecution starts an execution, or finds it.
func CreateExecution(nodeID, executionID, reasoner string, input json.RawMessage) core.Call {
	members := map[string]any{"node_id": nodeID, "execution_id": executionID}
	if reasoner != "" {
		members["reasoner"] = reasoner
	}
	if input != nil {
		members["input"] = input
	}
	return post(core.APIPath("executions"), members)
}

// GetExecution is one execution as it stands.
func GetExecution(executionID string) core.Call {
	return core.Call{Method: http.MethodGet, Path: core.APIPath("executions", executionID)}
}

// Report is how a run ended.
type Report struct {
	Status string          `json:"status"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
	Reason string          `json:"reason,omitempty"`
}

// ReportStatus tells how a run ended.
func ReportStatus(executionID string, told Report) core.Call {
	return post(core.APIPath("executions", executionID, "status"), told)
}

// AddNote keeps a note with the execution; the same note id again writes nothing.
func AddNote(executionID, message, noteID string, tags []string) core.Call {
	if tags == nil {
		tags = []string{}
	}
	members := map[string]any{"note_id": noteID, "message": message, "tags": tags}
	return post(core.APIPath("executions", executionID, "notes"), members)
}

// KeepStep keeps what a run did; step is anything that has the members of a stored step.
func KeepStep(executionID string, step any) core.Call {
	return post(core.APIPath("executions", executionID, "steps"), step)
}

// ListSteps is a page of a run's steps, behind after.
func ListSteps(executionID string, after int64) core.Call {
	query := url.Values{"after": {strconv.FormatInt(after, 10)}}
	return core.Call{Method: http.MethodGet, Path: core.APIPath("executions", executionID, "steps"), Query: query}
}

// ApprovalStatus is the newest approval of an execution under an id.
func ApprovalStatus(executionID, approvalRequestID string) core.Call {
	query := url.Values{"approval_request_id": {approvalRequestID}}
	return core.Call{
		Method: http.MethodGet, Path: core.APIPath("executions", executionID, "approval-status"), Query: query,
	}
}

// ListApprovals is a page of a node's approvals under an id; status and cursor may be "".
func ListApprovals(nodeID, approvalRequestID, status, cursor string) core.Call {
	query := url.Values{"node_id": {nodeID}, "approval_request_id": {approvalRequestID}, "limit": {"200"}}
	if status != "" {
		query.Set("status", status)
	}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	return core.Call{Method: http.MethodGet, Path: core.APIPath("approvals"), Query: query}
}

// Expire ends a question's time now, as the asking node; what stands is returned.
func Expire(approvalID string) core.Call {
	return post(core.APIPath("approvals", approvalID, "expire"), map[string]any{})
}

// SetCallback moves an approval's callback to another address.
func SetCallback(approvalID, callbackURL, secret string) core.Call {
	members := map[string]any{"callback_url": callbackURL, "callback_secret": secret}
	return post(core.APIPath("approvals", approvalID, "callback"), members)
}

func post(path string, members any) core.Call {
	// Texts, numbers and JSON that was made before: nothing that JSON does not have.
	body, _ := core.JSON("body", members)
	return core.Call{Method: http.MethodPost, Path: path, Body: body}
}
