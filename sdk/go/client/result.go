package client

import (
	"encoding/json"
	"fmt"

	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

// Decision is how an approval ended.
type Decision string

// The decisions. A value that is none of them is never a yes.
const (
	Approved         Decision = "approved"
	Rejected         Decision = "rejected"
	ChangesRequested Decision = "request_changes"
	Expired          Decision = "expired"
	Withdrawn        Decision = "withdrawn"
)

// ApprovalResult is what a person, or the deadline, said. The zero value is no decision, and so not approved.
type ApprovalResult struct {
	Decision Decision `json:"decision"`
	// Feedback is the comment, "" when there was none.
	Feedback          string `json:"feedback"`
	ExecutionID       string `json:"execution_id"`
	ApprovalRequestID string `json:"approval_request_id"`
	ApprovalID        string `json:"approval_id"`
	// Round is the how-many-eth ask under the request id.
	Round int `json:"round"`
	// Data is exactly what the sender put into its response, byte for byte a JSON value; nil when there was none.
	Data json.RawMessage `json:"data"`
	// Values is what was filled in, where it was asked with a form; nil unless it was approved.
	Values json.RawMessage `json:"values"`
	// Original is the payload as it was asked about, where it was editable; nil otherwise.
	Original json.RawMessage `json:"original"`
}

// Approved is true only where a person said yes.
func (r ApprovalResult) Approved() bool { return r.Decision == Approved }

// Rejected is true where a person said no; the execution is cancelled, and the code may clean up.
func (r ApprovalResult) Rejected() bool { return r.Decision == Rejected }

// ChangesRequested is true where changes are wanted; Feedback says which, and asking again opens the next round.
func (r ApprovalResult) ChangesRequested() bool { return r.Decision == ChangesRequested }

// Expired is true where the deadline passed unanswered; that is nobody's no, and never a yes.
func (r ApprovalResult) Expired() bool { return r.Decision == Expired }

// Withdrawn is true where the question was taken back before anybody answered.
func (r ApprovalResult) Withdrawn() bool { return r.Decision == Withdrawn }

// UnmarshalJSON reads a null as nothing, so that a result which was written down is read again as it was.
func (r *ApprovalResult) UnmarshalJSON(raw []byte) error {
	type plain ApprovalResult
	if err := json.Unmarshal(raw, (*plain)(r)); err != nil {
		return err
	}
	r.Data, r.Values, r.Original = orNil(r.Data), orNil(r.Values), orNil(r.Original)
	return nil
}

// Result is what a final approval means. It fails with ErrRefused (code unexpected_reply) where the approval is pending
// or its status is none of the known words; neither is ever a decision.
func (s ApprovalStatus) Result() (ApprovalResult, error) {
	return resultOf(s.Status, s.Response, ApprovalResult{
		ExecutionID: s.ExecutionID, ApprovalRequestID: s.ApprovalRequestID, ApprovalID: s.ApprovalID, Round: s.Round,
	})
}

// Result is as ApprovalStatus.Result, for an ask that found a final approval; executionID is the execution that asked.
func (a Asked) Result(executionID string) (ApprovalResult, error) {
	return resultOf(a.Status, a.Response, ApprovalResult{
		ExecutionID: executionID, ApprovalRequestID: a.ApprovalRequestID, ApprovalID: a.ApprovalID, Round: a.Round,
	})
}

func resultOf(status string, answer *Answer, result ApprovalResult) (ApprovalResult, error) {
	if !isFinal(status) {
		unclear := errs.ErrRefused.New(fmt.Sprintf("the approval's status is %q, which is no decision", status))
		unclear.Code = "unexpected_reply"
		return ApprovalResult{}, unclear
	}
	result.Decision = Decision(status)
	if answer == nil {
		return result, nil
	}
	result.Feedback, result.Data = answer.Feedback, answer.Data
	if result.Approved() {
		result.Values, result.Original = filledIn(answer.Data)
	}
	return result, nil
}

// filledIn is the form's part of an answer's data.
func filledIn(data json.RawMessage) (values, original json.RawMessage) {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return nil, nil
	}
	if _, filled := members["values"]; !filled {
		return nil, nil
	}
	return orNil(members["values"]), orNil(members["original"])
}

func isFinal(status string) bool {
	switch Decision(status) {
	case Approved, Rejected, ChangesRequested, Expired, Withdrawn:
		return true
	}
	return false
}

// orNil is nil where there is nothing, also where that is written as null.
func orNil(value json.RawMessage) json.RawMessage {
	if string(value) == "null" {
		return nil
	}
	return value
}
