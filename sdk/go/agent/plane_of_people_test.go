package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/holdshort/holdshort/sdk/go/client"
)

// pending waits until somebody asks under an id, and returns the newest round of it.
func (p *plane) pending(requestID string) approval {
	p.t.Helper()
	var found approval
	p.until("a question "+requestID, func() bool {
		for _, known := range p.approvals {
			if known.RequestID == requestID && known.Status == "pending" {
				found = *known
				return true
			}
		}
		return false
	})
	return found
}

// decide answers a question, and pushes that where it is to be pushed.
func (p *plane) decide(requestID, decision, feedback string, data any) {
	p.t.Helper()
	p.pending(requestID)
	p.mu.Lock()
	var meant *approval
	for _, known := range p.approvals {
		if known.RequestID == requestID && known.Status == "pending" {
			meant = known
		}
	}
	meant.Status = decision
	meant.Response = map[string]any{"decision": decision, "feedback": feedback, "data": data}
	run := p.executions[meant.Execution]
	run.Status = "running"
	if decision == "rejected" {
		run.Status, run.Reason = "cancelled", "approval_rejected"
	}
	told, push := *meant, !p.noPush
	p.change()
	p.mu.Unlock()
	if push && told.callbackURL != "" {
		p.push(told)
	}
}

// push calls an agent back, and returns what it answered.
func (p *plane) push(told approval) map[string]any {
	p.t.Helper()
	body, _ := json.Marshal(map[string]any{
		"execution_id": told.Execution, "approval_request_id": told.RequestID, "round": told.Round,
		"approval_id": told.ApprovalID, "decision": told.Status, "feedback": told.Response["feedback"],
		"data": told.Response["data"],
	})
	header, err := client.SignWebhook(told.secret, body, client.SignOptions{WebhookID: "dlv_1"})
	if err != nil {
		p.t.Fatal(err)
	}
	status, answer := p.post(told.callbackURL, header, body)
	if status != 200 {
		p.t.Errorf("a callback was answered %d: %v", status, answer)
	}
	return answer
}

// post sends to an agent; 0 where nobody is there.
func (p *plane) post(url string, header http.Header, body []byte) (int, map[string]any) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Close = true
	for name, values := range header {
		request.Header[name] = values
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil
	}
	defer answer.Body.Close()
	found := map[string]any{}
	_ = json.NewDecoder(answer.Body).Decode(&found)
	found["retry-after"] = answer.Header.Get("Retry-After")
	return answer.StatusCode, found
}
