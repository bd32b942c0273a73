package agent_test

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

func (p *plane) ask(w http.ResponseWriter, told map[string]any, run *execution) {
	round := int(told["round"].(float64))
	for _, known := range p.approvals {
		if known.Execution == run.ID && known.RequestID == told["approval_request_id"] && known.Round == round {
			known.callbackURL, _ = told["callback_url"].(string)
			known.secret, _ = told["callback_secret"].(string)
			say(w, 200, known)
			return
		}
	}
	if run.Status != "running" && run.Status != "waiting" {
		refuse(w, 409, "invalid_state", map[string]any{"execution_status": run.Status, "status_reason": run.Reason})
		return
	}
	made := &approval{
		ApprovalID: fmt.Sprintf("apr_%d", len(p.approvals)+1), RequestID: told["approval_request_id"].(string),
		Execution: run.ID, Round: round, Status: "pending", asked: told,
	}
	made.callbackURL, _ = told["callback_url"].(string)
	made.secret, _ = told["callback_secret"].(string)
	p.approvals = append(p.approvals, made)
	run.Status = "waiting"
	say(w, 200, made)
}

func (p *plane) status(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.approvals {
		known := p.approvals[len(p.approvals)-1-i]
		if known.Execution == r.PathValue("id") && known.RequestID == r.URL.Query().Get("approval_request_id") {
			say(w, 200, known)
			return
		}
	}
	refuse(w, 404, "no_approval_request", nil)
}

func (p *plane) list(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := []*approval{}
	for _, known := range p.approvals {
		wanted := r.URL.Query().Get("status")
		if known.RequestID == r.URL.Query().Get("approval_request_id") && (wanted == "" || wanted == known.Status) {
			found = append(found, known)
		}
	}
	say(w, 200, map[string]any{"approvals": found, "next_cursor": nil})
}

func (p *plane) wait(w http.ResponseWriter, r *http.Request) {
	told := members(r)
	over := time.After(time.Duration(told["wait"].(float64) * float64(time.Second)))
	for {
		p.mu.Lock()
		found := []approval{}
		for _, known := range p.approvals {
			if slices.Contains(told["approval_ids"].([]any), any(known.ApprovalID)) && known.Status != "pending" {
				found = append(found, *known)
			}
		}
		changed := p.changed
		p.mu.Unlock()
		if len(found) > 0 {
			say(w, 200, map[string]any{"approvals": found})
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		case <-over:
			say(w, 200, map[string]any{"approvals": found})
			return
		}
	}
}

func (p *plane) byID(id string) *approval {
	for _, known := range p.approvals {
		if known.ApprovalID == id {
			return known
		}
	}
	return nil
}

func (p *plane) expire(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.byID(r.PathValue("id"))
	if known.Status == "pending" {
		known.Status = "expired"
		run := p.executions[known.Execution]
		run.Status = "running"
		if known.asked["on_expiry"] != "resume" {
			run.Status, run.Reason = "cancelled", "approval_expired"
		}
	}
	p.change()
	say(w, 200, known)
}

func (p *plane) setCallback(w http.ResponseWriter, r *http.Request) {
	told := members(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.byID(r.PathValue("id"))
	known.callbackURL, known.secret = told["callback_url"].(string), told["callback_secret"].(string)
	p.change()
	say(w, 200, known)
}
