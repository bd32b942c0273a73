package client

import (
	"context"
	"encoding/json"
	"math"
	"net/url"
	"strconv"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/core"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

// RequestApprovalRequest is what is asked of a person. Only ApprovalRequestID is required.
type RequestApprovalRequest struct {
	// ApprovalRequestID is the caller's own: 1-256 characters, unique per execution and round.
	ApprovalRequestID string `json:"approval_request_id"`
	// ApprovalRequestURL is the http(s) page where the person decides; without one, the control plane's own.
	ApprovalRequestURL string `json:"approval_request_url,omitempty"`
	// CallbackURL is where the decision is pushed, signed with CallbackSecret (16-256 characters).
	CallbackURL    string `json:"callback_url,omitempty"`
	CallbackSecret string `json:"callback_secret,omitempty"`
	// ExpiresInHours is 1 s to 8760 h, fractions allowed; the control plane's default (72) when 0.
	ExpiresInHours float64 `json:"expires_in_hours,omitempty"`
	// Title has at most 200 characters, Description at most 20,000.
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// Payload is the exact action: anything that JSON can hold, up to 256 KiB. A json.RawMessage is sent as it is.
	Payload any `json:"payload,omitempty"`
	// OnExpiry is "cancel" (the default), which ends the run at the deadline, or "resume", which lets it go on.
	OnExpiry string `json:"on_expiry,omitempty"`
	// DecidedBy names the only webhook sender whose answer counts.
	DecidedBy string `json:"decided_by,omitempty"`
	// Round is the how-many-eth ask under the id, from 1 on; 0 lets the control plane say.
	Round int `json:"round,omitempty"`
	// Form is what the person fills in; the values come with an approval.
	Form *Form `json:"form,omitempty"`
}

// RequestApproval asks a person, and the execution waits from then on. Asking the same again is safe: what stands under
// the id and round is returned, with its answer when it is final already.
//
// nodeID says whose execution it must be; "" for any that the key may use. Errors: ErrExecutionFinished when it would
// open something new on a run that is over; ErrRoundNotOpen when the round before is still pending or ended for good;
// ErrRequestConflict when the id and round stand for another payload, form or expiry rule; ErrInvalidField when a field
// breaks a rule; ErrNotFound when there is no such execution.
func (c *Client) RequestApproval(
	ctx context.Context, nodeID, executionID string, request RequestApprovalRequest,
) (*Asked, error) {
	members, err := request.members()
	if err != nil {
		return nil, err
	}
	return posted[Asked](ctx, c, ofExecution(nodeID, executionID, "request-approval"), members)
}

type requestPlain RequestApprovalRequest

// requestMembers has the caller's own values as JSON, made one by one so that an error names the field.
type requestMembers struct {
	requestPlain
	Payload json.RawMessage `json:"payload,omitempty"`
	Form    json.RawMessage `json:"form,omitempty"`
}

func (r RequestApprovalRequest) members() (*requestMembers, error) {
	if math.IsNaN(r.ExpiresInHours) || math.IsInf(r.ExpiresInHours, 0) {
		return nil, errs.Invalid("expires_in_hours", "must be a number; NaN and infinity are no JSON")
	}
	payload, err := optional("payload", r.Payload)
	if err != nil {
		return nil, err
	}
	members := &requestMembers{requestPlain: requestPlain(r), Payload: payload}
	if r.Form != nil {
		members.Form, err = core.JSON("form", r.Form)
	}
	return members, err
}

// StatusOptions say which approval of an execution is looked at, and whether to wait for it.
type StatusOptions struct {
	// ApprovalRequestID picks one of the execution's questions; "" for the newest.
	ApprovalRequestID string
	// Wait is how long the control plane holds the call until the approval is final: 0 to 60 s.
	Wait time.Duration
}

// GetApprovalStatus is the newest approval of an execution (under an id, when named) as it stands. options may be nil.
//
// It fails with ErrNotFound when the execution has not asked that.
func (c *Client) GetApprovalStatus(
	ctx context.Context, nodeID, executionID string, options *StatusOptions,
) (*ApprovalStatus, error) {
	if options == nil {
		options = &StatusOptions{}
	}
	return answered[ApprovalStatus](ctx, c, statusCall(nodeID, executionID, *options))
}

func statusCall(nodeID, executionID string, options StatusOptions) core.Call {
	call := get(ofExecution(nodeID, executionID, "approval-status"))
	call.Query = query("approval_request_id", options.ApprovalRequestID)
	if options.Wait != 0 {
		call.Query.Set("wait", inSeconds(options.Wait))
		call.Hold = max(0, options.Wait)
	}
	return call
}

// ApprovalFilter says which approvals are listed: those that fit all that is set.
type ApprovalFilter struct {
	// Status is pending or one of the decisions.
	Status            string
	NodeID            string
	ExecutionID       string
	ApprovalRequestID string
	// Query searches titles and ids.
	Query string
	// Order is "requested" or "deadline".
	Order string
	// Limit is at most 200; the control plane's own when 0.
	Limit int
	// Cursor is NextCursor of the page before; "" for the first.
	Cursor string
}

// ListApprovals is a page of approvals, of all that the key may see when filter is nil.
func (c *Client) ListApprovals(ctx context.Context, filter *ApprovalFilter) (*ApprovalPage, error) {
	if filter == nil {
		filter = &ApprovalFilter{}
	}
	call := get(core.APIPath("approvals"))
	call.Query = query("status", filter.Status, "node_id", filter.NodeID, "execution_id", filter.ExecutionID,
		"approval_request_id", filter.ApprovalRequestID, "q", filter.Query, "order", filter.Order,
		"cursor", filter.Cursor)
	if filter.Limit != 0 {
		call.Query.Set("limit", strconv.Itoa(filter.Limit))
	}
	return answered[ApprovalPage](ctx, c, call)
}

// GetApproval is one approval with its history. It fails with ErrNotFound when no approval has this id.
func (c *Client) GetApproval(ctx context.Context, approvalID string) (*Approval, error) {
	return answered[Approval](ctx, c, get(core.APIPath("approvals", approvalID)))
}

// Verdict is what a person or operator decides.
type Verdict struct {
	// Decision is approved, rejected or request_changes (or an alias: approve, reject, deny, ...).
	Decision Decision `json:"decision"`
	// Feedback is the comment for the agent; Reason is taken as feedback when there is none.
	Feedback string `json:"feedback,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Response is any JSON, handed to the agent as its result's Data.
	Response any `json:"response,omitempty"`
	// PayloadDigest and Round are what was seen; the decision is refused when another one stands.
	PayloadDigest string `json:"payload_digest,omitempty"`
	Round         int    `json:"round,omitempty"`
	// Values is what was filled in, where it is approved and was asked with a form.
	Values any `json:"values,omitempty"`
}

type verdictMembers struct {
	verdictPlain
	Response json.RawMessage `json:"response,omitempty"`
	Values   json.RawMessage `json:"values,omitempty"`
}

type verdictPlain Verdict

// Decide decides an approval as a person or operator; the key needs the scope review.
//
// Errors: ErrAlreadyDecided when another decision was first; ErrApprovalChanged when another digest or round stands
// than the one named; ErrBadRequest when the decision is no known word; ErrInvalidAnswer when the values do not fit
// the form.
func (c *Client) Decide(ctx context.Context, approvalID string, verdict Verdict) (*Decided, error) {
	response, err := optional("response", verdict.Response)
	if err != nil {
		return nil, err
	}
	values, err := optional("values", verdict.Values)
	if err != nil {
		return nil, err
	}
	members := verdictMembers{verdictPlain: verdictPlain(verdict), Response: response, Values: values}
	return posted[Decided](ctx, c, core.APIPath("approvals", approvalID, "decision"), members)
}

// Withdraw takes a question back. It returns what stands: on a final approval the answer that it has.
func (c *Client) Withdraw(ctx context.Context, approvalID string) (*Approval, error) {
	return posted[Approval](ctx, c, core.APIPath("approvals", approvalID, "withdraw"), struct{}{})
}

// Expire ends a question's time now, as the node that asked. It returns what stands, as Withdraw does.
func (c *Client) Expire(ctx context.Context, approvalID string) (*Approval, error) {
	return posted[Approval](ctx, c, core.APIPath("approvals", approvalID, "expire"), struct{}{})
}

func ofExecution(nodeID, executionID, route string) string {
	if nodeID == "" {
		return core.APIPath("executions", executionID, route)
	}
	return core.APIPath("agents", nodeID, "executions", executionID, route)
}

// query is parameters by name and value, without those that are "".
func query(pairs ...string) url.Values {
	values := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	return values
}

func inSeconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'g', -1, 64) }
