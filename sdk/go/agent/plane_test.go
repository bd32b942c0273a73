package agent_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

const bound = 20 * time.Second

type execution struct {
	ID            string          `json:"execution_id"`
	Status        string          `json:"status"`
	Reason        string          `json:"status_reason"`
	Result        json.RawMessage `json:"result"`
	Error         string          `json:"error"`
	reasoner      string
	input         json.RawMessage
	fence         int64
	steps         []map[string]any
	notes         []string
	reported      []string
	outcomeIsTold bool
}

type approval struct {
	ApprovalID string         `json:"approval_id"`
	RequestID  string         `json:"approval_request_id"`
	Execution  string         `json:"execution_id"`
	Round      int            `json:"round"`
	Status     string         `json:"status"`
	Response   map[string]any `json:"response"`

	callbackURL, secret string
	asked               map[string]any
}

type instance struct {
	node, id, base, status string
	told                   map[string]any
}

// plane is a control plane on loopback, as far as an agent sees one.
type plane struct {
	t      *testing.T
	server *httptest.Server

	mu         sync.Mutex
	changed    chan struct{}
	executions map[string]*execution
	approvals  []*approval
	instances  []*instance
	handedBack []string
	calls      []string
	noPush     bool
	// lease and beat are what an instance is told, in seconds.
	lease, beat float64
	// intercept answers a call in the place of the plane when it returns true.
	intercept func(w http.ResponseWriter, r *http.Request) bool
}

func newPlane(t *testing.T) *plane {
	t.Helper()
	p := &plane{t: t, executions: map[string]*execution{}, changed: make(chan struct{}), lease: 15, beat: 0.05}
	mux := http.NewServeMux()
	for pattern, serve := range p.routes() {
		mux.HandleFunc(pattern, serve)
	}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.calls = append(p.calls, r.Method+" "+r.URL.Path)
		intercept := p.intercept
		p.mu.Unlock()
		if intercept == nil || !intercept(w, r) {
			mux.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

func (p *plane) routes() map[string]http.HandlerFunc {
	const run = "/api/v1/executions/{id}"
	return map[string]http.HandlerFunc{
		"POST /api/v1/executions":              p.create,
		"GET " + run:                           p.get,
		"POST " + run + "/status":              p.held(p.report),
		"POST " + run + "/notes":               p.held(p.note),
		"POST " + run + "/steps":               p.held(p.keepStep),
		"GET " + run + "/steps":                p.listSteps,
		"POST " + run + "/request-approval":    p.held(p.ask),
		"GET " + run + "/approval-status":      p.status,
		"GET /api/v1/approvals":                p.list,
		"POST /api/v1/approvals/wait":          p.wait,
		"POST /api/v1/approvals/{id}/expire":   p.expire,
		"POST /api/v1/approvals/{id}/callback": p.setCallback,
		"POST /api/v1/nodes/register":          p.register,
		"POST /api/v1/nodes/{node}/heartbeat":  p.takeBeat,
		"POST /api/v1/nodes/{node}/hand-back":  p.takeBack,
		"POST /api/v1/nodes/{node}/shutdown":   p.shutdown,
	}
}

func members(r *http.Request) map[string]any {
	found := map[string]any{}
	raw, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(raw, &found)
	return found
}

func say(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, status int, code string, more map[string]any) {
	body := map[string]any{"error": code, "message": code, "status": status}
	for name, value := range more {
		body[name] = value
	}
	say(w, status, body)
}

// change lets whoever waits for a change look again; the caller holds the lock.
func (p *plane) change() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// until waits for a condition, which is asked under the lock.
func (p *plane) until(what string, is func() bool) {
	p.t.Helper()
	over := time.After(bound)
	for {
		p.mu.Lock()
		holds, changed := is(), p.changed
		p.mu.Unlock()
		if holds {
			return
		}
		select {
		case <-changed:
		case <-over:
			p.t.Fatalf("in vain: %s; calls: %v", what, p.called())
		}
	}
}

func (p *plane) called() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

func (p *plane) create(w http.ResponseWriter, r *http.Request) {
	told := members(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	id := told["execution_id"].(string)
	run := p.executions[id]
	if run == nil {
		input, _ := json.Marshal(told["input"])
		name, _ := told["reasoner"].(string)
		run = &execution{ID: id, Status: "running", reasoner: name, input: input}
		p.executions[id] = run
	}
	p.change()
	say(w, 200, run)
}

func (p *plane) get(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	say(w, 200, p.executions[r.PathValue("id")])
}

// held refuses calls of whoever does not have the run.
func (p *plane) held(serve func(w http.ResponseWriter, told map[string]any, run *execution)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		told := members(r)
		p.mu.Lock()
		defer p.mu.Unlock()
		run := p.executions[r.PathValue("id")]
		if run == nil {
			refuse(w, 404, "execution_not_found", nil)
			return
		}
		fence, err := strconv.ParseInt(r.Header.Get("X-Holdshort-Fence"), 10, 64)
		if run.fence > 0 && (err != nil || fence < run.fence) {
			refuse(w, 409, "stale_instance", nil)
			return
		}
		serve(w, told, run)
		p.change()
	}
}

func (p *plane) report(w http.ResponseWriter, told map[string]any, run *execution) {
	status, _ := told["status"].(string)
	run.reported = append(run.reported, status)
	run.outcomeIsTold = true
	if run.Status == "running" || run.Status == "waiting" {
		run.Status = status
		run.Reason, _ = told["reason"].(string)
	}
	if result, there := told["result"]; there && run.Result == nil {
		run.Result, _ = json.Marshal(result)
	}
	if run.Error == "" {
		run.Error, _ = told["error"].(string)
	}
	say(w, 200, run)
}

func (p *plane) note(w http.ResponseWriter, told map[string]any, run *execution) {
	run.notes = append(run.notes, told["message"].(string))
	say(w, 201, map[string]any{})
}

func (p *plane) keepStep(w http.ResponseWriter, told map[string]any, run *execution) {
	if run.Status == "succeeded" || run.Status == "cancelled" {
		refuse(w, 409, "invalid_state", map[string]any{"execution_status": run.Status, "status_reason": run.Reason})
		return
	}
	for _, kept := range run.steps {
		if kept["name"] != told["name"] || kept["occurrence"] != told["occurrence"] {
			continue
		}
		if kept["previous"] != told["previous"] {
			refuse(w, 409, "step_mismatch", nil)
			return
		}
		say(w, 200, kept)
		return
	}
	told["position"] = len(run.steps) + 1
	run.steps = append(run.steps, told)
	say(w, 201, told)
}

func (p *plane) listSteps(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// Pages of two, so that there are some.
	after, _ := strconv.Atoi(r.URL.Query().Get("after"))
	found := p.executions[r.PathValue("id")].steps
	page := found[min(after, len(found)):min(after+2, len(found))]
	var next any
	if after+2 < len(found) {
		next = after + 2
	}
	say(w, 200, map[string]any{"steps": append([]map[string]any{}, page...), "next_after": next})
}
