package pauses

import (
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"github.com/holdshort/holdshort/sdk/go/client"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/answers"
	"github.com/holdshort/holdshort/sdk/go/internal/webhooks"
)

// Receive takes one callback: its signature is proven with the secret of that one request.
//
// The timestamp is not compared with a clock: the secret lives for one request, and an agent whose clock is wrong must
// resume all the same. The answer is 200 with whether a pause waits or waited for it, 401 for a wrong signature, 400 for
// a body that is none.
func (r *Registry) Receive(header http.Header, body []byte) answers.Answer {
	told, readable := read(body)
	if !readable {
		return refused(http.StatusBadRequest, "invalid_body", "this is no approval callback")
	}
	secret, known := r.Secret(Key{told.ExecutionID, told.ApprovalRequestID, told.Round})
	if !known {
		return resolved(false)
	}
	if !webhooks.StandardHolds(header, body, secret) {
		return refused(http.StatusUnauthorized, "invalid_signature",
			"the signature does not match this request's secret")
	}
	return resolved(r.Resolve(told))
}

func resolved(is bool) answers.Answer {
	return answers.Answer{Status: http.StatusOK, Body: map[string]any{"resolved": is}}
}

func refused(status int, code, message string) answers.Answer {
	return answers.Answer{Status: status, Body: map[string]any{"error": code, "message": message}}
}

// read is what a callback says; false where a member is missing or of another kind than it must be.
func read(body []byte) (client.ApprovalResult, bool) {
	var members map[string]json.RawMessage
	if !utf8.Valid(body) || json.Unmarshal(body, &members) != nil {
		return client.ApprovalResult{}, false
	}
	status := client.ApprovalStatus{Response: &client.Answer{}}
	if _, sent := members["feedback"]; sent && !take(members["feedback"], &status.Response.Feedback) {
		return client.ApprovalResult{}, false
	}
	for name, into := range map[string]any{
		"execution_id": &status.ExecutionID, "approval_request_id": &status.ApprovalRequestID,
		"approval_id": &status.ApprovalID, "round": &status.Round, "decision": &status.Status,
	} {
		if !take(members[name], into) {
			return client.ApprovalResult{}, false
		}
	}
	if data := members["data"]; string(data) != "null" {
		status.Response.Data = data
	}
	// A word that is none of the decisions is no result.
	result, err := status.Result()
	return result, err == nil
}

// take reads one member; null is no value of any kind.
func take(raw json.RawMessage, into any) bool {
	return raw != nil && string(raw) != "null" && json.Unmarshal(raw, into) == nil
}
