package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdshort/holdshort/sdk/go/agent"
	"github.com/holdshort/holdshort/sdk/go/client"
)

func called(p *plane, reasoner, id, body string) (int, map[string]any) {
	header := http.Header{}
	if id != "" {
		header.Set("X-Execution-ID", id)
	}
	return p.post(p.registered().base+"/reasoners/"+reasoner, header, []byte(body))
}

func TestTheResultAndItsExecutionAreAnswered(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	agent.Handle(a, "adds", func(_ context.Context, in struct{ A, B int }) (int, error) { return in.A + in.B, nil })
	serve(t, p, a)
	status, answer := called(p, "adds", "", `{"A":1,"B":2}`)
	if status != 200 || answer["status"] != "succeeded" || answer["result"] != 3.0 {
		t.Fatalf("%d %v", status, answer)
	}
	run := p.run(answer["execution_id"].(string))
	if run.Status != "succeeded" || run.reasoner != "adds" || string(run.input) != `{"A":1,"B":2}` {
		t.Errorf("kept: %+v", run)
	}
	if _, answer := called(p, "adds", "", ""); answer["result"] != 0.0 {
		t.Errorf("without a body: %v", answer)
	}
}

// notServed is what an agent refuses, and as what.
var notServed = []struct {
	method, path, id, body string
	status                 int
	code, allow            string
}{
	{"GET", "/nothing", "", "", 404, "not_found", ""},
	{"POST", "/reasoners/unknown", "", "", 404, "reasoner_not_found", ""},
	{"GET", "/reasoners/works", "", "", 405, "method_not_allowed", "POST"},
	{"POST", "/health", "", "", 405, "method_not_allowed", "GET"},
	{"GET", "/webhooks/approval/", "", "", 405, "method_not_allowed", "POST"},
	{"POST", "/reasoners/works", "", "{", 400, "invalid_body", ""},
	{"POST", "/reasoners/works", "", "{} {}", 400, "invalid_body", ""},
	{"POST", "/reasoners/works", "", `{"Document":3}`, 422, "invalid_input", ""},
	{"POST", "/reasoners/works", "", strings.Repeat("x", 1_100_000), 413, "body_too_large", ""},
	{"POST", "/webhooks/approval", "", strings.Repeat("x", 1_100_000), 413, "body_too_large", ""},
	{"POST", "/webhooks/approval", "", "x", 400, "invalid_body", ""},
	{"POST", "/reasoners/works", "a b", "", 422, "invalid_input", ""},
	{"POST", "/reasoners/works", strings.Repeat("x", 129), "", 422, "invalid_input", ""},
	{"POST", "/reasoners/works", "\u00e9", "", 422, "invalid_input", ""},
}

func TestWhatTheAgentDoesNotServeIsSaid(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	var began atomic.Int32
	agent.Handle(a, "works", func(context.Context, struct{ Document string }) (int, error) {
		began.Add(1)
		return 0, nil
	})
	serve(t, p, a)
	base := p.registered().base
	for _, each := range notServed {
		request, _ := http.NewRequest(each.method, base+each.path, strings.NewReader(each.body))
		request.Close = true
		if each.id != "" {
			request.Header.Set("X-Execution-ID", each.id)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Errorf("%s %s: %v", each.method, each.path, err)
			continue
		}
		told := map[string]any{}
		_ = json.NewDecoder(answer.Body).Decode(&told)
		answer.Body.Close()
		kind := answer.Header.Get("Content-Type")
		right := answer.StatusCode == each.status && told["error"] == each.code && answer.Header.Get("Allow") == each.allow
		if !right || kind != "application/problem+json" {
			t.Errorf("%s %s: %d %s %v", each.method, each.path, answer.StatusCode, kind, told)
		}
	}
	if began.Load() != 0 {
		t.Error("something was begun")
	}
}

func TestAnAgentSaysHowItIs(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	agent.Handle(a, "works", func(context.Context, struct{}) (int, error) { return 0, nil },
		agent.Timeout(5*time.Second), agent.ResumeAtStart())
	serve(t, p, a)
	base := p.registered().base
	answer, err := http.Get(base + "/health")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	told := map[string]any{}
	_ = json.NewDecoder(answer.Body).Decode(&told)
	want := "map[node_id:reviewer reasoners:[map[name:works resume:at_start timeout_seconds:5]] registered:true status:ok version:1]"
	if fmt.Sprint(told) != want {
		t.Errorf("the agent is %v", told)
	}
}

func TestTheSameIDJoinsTheCallThatRuns(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	started, goOn := working(a)
	agent.Handle(a, "other", func(context.Context, struct{}) (int, error) { return 0, nil })
	serve(t, p, a)
	answers := make(chan map[string]any, 3)
	for range 3 {
		go func() {
			_, answer := called(p, "works", "run-1", `{"Document":"d"}`)
			answers <- answer
		}()
	}
	eventually(t, "the run to begin", func() bool { return started.Load() > 0 })
	if status, answer := called(p, "other", "run-1", ""); status != 409 || answer["error"] != "execution_exists" {
		t.Errorf("another reasoner under the id: %d %v", status, answer)
	}
	close(goOn)
	for range 3 {
		if answer := <-answers; answer["result"] != "d" && answer["error"] == nil {
			t.Errorf("a caller was told %v", answer)
		}
	}
	if started.Load() != 1 {
		t.Errorf("it began %d times", started.Load())
	}
	if _, answer := called(p, "works", "run-1", ""); answer["result"] != "d" || started.Load() != 1 {
		t.Errorf("when it was over: %v", answer)
	}
}

func TestEveryEndIsAnsweredAsWhatItIs(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	agent.Handle(a, "breaks", func(context.Context, struct{}) (int, error) { return 0, errors.New("no such file") })
	agent.Handle(a, "panics", func(context.Context, struct{}) (int, error) { panic("no") })
	agent.Handle(a, "slow", func(ctx context.Context, _ struct{}) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}, agent.Timeout(time.Millisecond))
	serve(t, p, a)
	for _, each := range []struct {
		reasoner, code, status string
	}{{"breaks", "run_failed", "failed"}, {"panics", "run_failed", "failed"}, {"slow", "execution_timeout", "timeout"}} {
		for range 2 {
			status, answer := called(p, each.reasoner, each.reasoner, "")
			if status != 500 || answer["error"] != each.code || answer["execution_status"] != each.status {
				t.Errorf("%s: %d %v", each.reasoner, status, answer)
			}
		}
	}
}

func TestTheEndOfARunThatAskedIsAnsweredAsWhatItIs(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	asking(p, a)
	stop := serve(t, p, a)
	answers := make(chan map[string]any, 1)
	call := func(id, asks string) {
		go func() {
			status, answer := called(p, "asks", id, `{"ID":"`+asks+`"}`)
			answer["http"] = status
			answers <- answer
		}()
		p.pending(asks)
	}
	call("rejected", "x")
	p.decide("x", "rejected", "no", nil)
	if answer := <-answers; answer["http"] != 200 || answer["status"] != "cancelled" {
		t.Errorf("a rejected run: %v", answer)
	}
	call("cancelled", "y")
	p.mu.Lock()
	p.approvals[1].Status = "withdrawn"
	p.executions["cancelled"].Status, p.executions["cancelled"].Reason = "cancelled", "stop it"
	p.change()
	p.mu.Unlock()
	if answer := <-answers; answer["http"] != 409 || answer["error"] != "execution_cancelled" {
		t.Errorf("a cancelled run: %v", answer)
	}
	call("waits", "z")
	stop()
	answer := <-answers
	if answer["http"] != 503 || answer["error"] != "handed_back" || answer["execution_id"] != "waits" {
		t.Errorf("a run of an agent that stops: %v", answer)
	}
}

func TestAProgramMayStartARunItself(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Pull)
	ctx := context.Background()
	err := a.Execution(ctx, "run-1", map[string]int{"a": 1}, func(ctx context.Context) (any, error) {
		if agent.ExecutionID(ctx) != "run-1" {
			t.Errorf("the run is %q", agent.ExecutionID(ctx))
		}
		a.Note(ctx, "begun")
		go p.decide("pause:reviewer:1", "approved", "", nil)
		result, err := a.Pause(ctx, agent.Question{})
		return result.Approved(), err
	})
	run := p.run("run-1")
	if err != nil || string(run.Result) != "true" || run.Status != "succeeded" || len(run.notes) != 1 {
		t.Errorf("%+v: %v", run, err)
	}
	err = a.Execution(ctx, "run-1", nil, func(context.Context) (any, error) { t.Error("it began"); return nil, nil })
	if !errors.Is(err, client.ErrExecutionFinished) {
		t.Errorf("a run that is over: %v", err)
	}
	failure := errors.New("no such file")
	err = a.Execution(ctx, "run-2", nil, func(context.Context) (any, error) { return nil, failure })
	if !errors.Is(err, failure) || p.run("run-2").Status != "failed" {
		t.Errorf("%s: %v", p.run("run-2").Status, err)
	}
	short, cancel := context.WithCancel(ctx)
	err = a.Execution(short, "run-3", nil, func(ctx context.Context) (any, error) {
		cancel()
		_, err := a.Pause(ctx, agent.Question{ApprovalRequestID: "x"})
		return nil, err
	})
	if !errors.Is(err, context.Canceled) || len(p.run("run-3").reported) != 0 {
		t.Errorf("a run that is left: %v, reported %v", err, p.run("run-3").reported)
	}
	if _, err := a.Pause(ctx, agent.Question{}); !errors.Is(err, client.ErrNoExecution) {
		t.Errorf("a pause outside a run: %v", err)
	}
	eventually(t, "nothing to be left", func() bool { return ofTheSDK() == 0 })
}

func TestTheNamesOfReasonersAreTheirOwn(t *testing.T) {
	a := made(t, newPlane(t), agent.Auto)
	nothing := func(context.Context, any) (any, error) { return nil, nil }
	agent.Handle(a, "taken", nothing)
	for _, name := range []string{"taken", "", "a name"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("the name %q was taken", name)
				}
			}()
			agent.Handle(a, name, nothing)
		}()
	}
	for _, config := range []agent.Config{
		{}, {NodeID: "a b"}, {NodeID: "n", Callback: "poll"}, {NodeID: "n", CallbackURL: "not an address"},
		{NodeID: "n", ControlPlaneURL: "ftp://x"}, {NodeID: "n", APIKey: "a key"},
	} {
		if _, err := agent.New(config); err == nil {
			t.Errorf("an agent was made of %+v", config)
		}
	}
}
