package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Answer is the answer inside an approval's status: decision, comment and the sender's own data.
type Answer struct {
	Decision string `json:"decision"`
	Feedback string `json:"feedback"`
	// Data is any JSON value as the sender wrote it; nil when there was none.
	Data json.RawMessage `json:"data"`
}

// ApprovalStatus is an approval as it stands. Members that the control plane may add later are ignored.
type ApprovalStatus struct {
	ApprovalID        string `json:"approval_id"`
	ApprovalRequestID string `json:"approval_request_id"`
	ExecutionID       string `json:"execution_id"`
	// Round is the how-many-eth ask under the request id, from 1 on.
	Round int `json:"round"`
	// Status is pending, approved, rejected, request_changes, expired or withdrawn.
	Status string `json:"status"`
	// Response is nil while the approval is pending.
	Response    *Answer   `json:"response"`
	RequestURL  string    `json:"request_url"`
	RequestedAt time.Time `json:"requested_at"`
	// RespondedAt is the zero time while the approval is pending.
	RespondedAt     time.Time `json:"responded_at"`
	ExpiresAt       time.Time `json:"expires_at"`
	ExecutionStatus string    `json:"execution_status"`
}

// Final is true when the approval will not change any more.
func (s ApprovalStatus) Final() bool { return isFinal(s.Status) }

// Approval is an approval with what its reviewer sees.
type Approval struct {
	ApprovalStatus
	ReviewerView
}

// ReviewerView is what the reviewer of an approval sees of it.
type ReviewerView struct {
	NodeID      string `json:"node_id"`
	Title       string `json:"title"`
	Description string `json:"description"`
	// Payload is the exact action that was asked about; nil when there was none.
	Payload       json.RawMessage `json:"payload"`
	PayloadDigest string          `json:"payload_digest"`
	OnExpiry      string          `json:"on_expiry"`
	DecidedBy     string          `json:"decided_by"`
	// Form is nil where nothing is filled in.
	Form *Form `json:"form"`
	// History is there only where one approval was asked for.
	History []json.RawMessage `json:"history"`
}

// Form is what a person fills in while deciding.
type Form struct {
	// Kind is text, yes_no, multiple_choice or form.
	Kind string `json:"kind"`
	// Options go with multiple_choice: 1-20 distinct texts of 1-200 characters.
	Options []string `json:"options,omitempty"`
	// YesLabel and NoLabel go with yes_no.
	YesLabel string `json:"yes_label,omitempty"`
	NoLabel  string `json:"no_label,omitempty"`
	// Schema goes with form: the JSON Schema of an object, checked by the control plane.
	Schema any `json:"schema,omitempty"`
	// Editable is true where the payload is what is filled in already, and may be changed.
	Editable bool `json:"editable,omitempty"`
}

// Asked is the answer to an ask: the approval that stands, with Response when it is final already.
type Asked struct {
	ApprovalID         string    `json:"approval_id"`
	ApprovalRequestID  string    `json:"approval_request_id"`
	Round              int       `json:"round"`
	Status             string    `json:"status"`
	ApprovalRequestURL string    `json:"approval_request_url"`
	RequestedAt        time.Time `json:"requested_at"`
	ExpiresAt          time.Time `json:"expires_at"`
	// PayloadDigest is the SHA-256 of the payload's canonical form, "" where there was no payload.
	PayloadDigest string  `json:"payload_digest"`
	Response      *Answer `json:"response"`
}

// Final is true when the approval is decided, expired or withdrawn already.
func (a Asked) Final() bool { return isFinal(a.Status) }

// Decided is the answer to a decision. Status is processed, or already_processed with what stands in ApprovalStatus,
// Decision and CurrentStatus.
type Decided struct {
	Status            string `json:"status"`
	ExecutionID       string `json:"execution_id"`
	ApprovalRequestID string `json:"approval_request_id"`
	ApprovalID        string `json:"approval_id"`
	Round             int    `json:"round"`
	Decision          string `json:"decision"`
	NewStatus         string `json:"new_status"`
	CurrentStatus     string `json:"current_status"`
	ApprovalStatus    string `json:"approval_status"`
	Replayed          bool   `json:"replayed"`
}

// ApprovalPage is one page of approvals; NextCursor is "" on the last one.
type ApprovalPage struct {
	Approvals  []Approval `json:"approvals"`
	NextCursor string     `json:"next_cursor"`
}

// UnmarshalJSON refuses what names no approval.
func (s *ApprovalStatus) UnmarshalJSON(raw []byte) error {
	type plain ApprovalStatus
	if err := json.Unmarshal(raw, (*plain)(s)); err != nil {
		return err
	}
	return needed(s.Round, "approval_id", s.ApprovalID, "approval_request_id", s.ApprovalRequestID,
		"execution_id", s.ExecutionID, "status", s.Status)
}

// UnmarshalJSON refuses what names no approval.
func (a *Approval) UnmarshalJSON(raw []byte) error {
	if err := json.Unmarshal(raw, &a.ApprovalStatus); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &a.ReviewerView); err != nil {
		return err
	}
	a.Payload = orNil(a.Payload)
	return nil
}

// UnmarshalJSON refuses what names no approval.
func (a *Asked) UnmarshalJSON(raw []byte) error {
	type plain Asked
	if err := json.Unmarshal(raw, (*plain)(a)); err != nil {
		return err
	}
	return needed(a.Round, "approval_id", a.ApprovalID, "approval_request_id", a.ApprovalRequestID, "status", a.Status)
}

// UnmarshalJSON refuses what lists nothing, not even nothing.
func (p *ApprovalPage) UnmarshalJSON(raw []byte) error {
	type plain ApprovalPage
	if err := json.Unmarshal(raw, (*plain)(p)); err != nil {
		return err
	}
	if p.Approvals == nil {
		return errors.New("approvals is missing")
	}
	return nil
}

// UnmarshalJSON reads a null for the data as no data.
func (a *Answer) UnmarshalJSON(raw []byte) error {
	type plain Answer
	if err := json.Unmarshal(raw, (*plain)(a)); err != nil {
		return err
	}
	a.Data = orNil(a.Data)
	return needed(1, "decision", a.Decision)
}

// UnmarshalJSON refuses what says nothing of what became of the decision.
func (d *Decided) UnmarshalJSON(raw []byte) error {
	type plain Decided
	if err := json.Unmarshal(raw, (*plain)(d)); err != nil {
		return err
	}
	return needed(1, "status", d.Status)
}

// needed refuses an answer without a round or without one of the members; encoding/json takes any object for any
// struct.
func needed(round int, members ...string) error {
	if round < 1 {
		return errors.New("round is missing")
	}
	for i := 0; i < len(members); i += 2 {
		if members[i+1] == "" {
			return fmt.Errorf("%s is missing", members[i])
		}
	}
	return nil
}
