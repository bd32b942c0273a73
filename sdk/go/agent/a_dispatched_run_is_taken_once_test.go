package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdshort/holdshort/sdk/go/agent"
	"github.com/holdshort/holdshort/sdk/go/client"
)

// working counts how often its code began, and lets it go on when the channel is closed.
func working(a *agent.Agent) (started *atomic.Int32, goOn chan struct{}) {
	started, goOn = &atomic.Int32{}, make(chan struct{})
	agent.Handle(a, "works", func(ctx context.Context, in struct{ Document string }) (string, error) {
		started.Add(1)
		select {
		case <-goOn:
			a.Note(ctx, "done", "tag")
			return in.Document, nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	})
	return started, goOn
}

func TestADispatchIsAnsweredAtOnceAndReportsByItself(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	_, goOn := working(a)
	serve(t, p, a)
	p.start("run-1", "works", `{"Document":"d"}`)
	close(goOn)
	run := p.ended("run-1")
	if string(run.Result) != `"d"` || len(run.notes) != 1 || run.notes[0] != "done" {
		t.Errorf("%s with %s and %v", run.Status, run.Result, run.notes)
	}
}

func TestADispatchThatIsRepeatedIsTakenOnce(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	started, goOn := working(a)
	serve(t, p, a)
	p.start("run-1", "works", `{"Document":"d"}`)
	for _, fence := range []string{"1", "0", "1"} {
		if status, answer := p.again("run-1", fence); status != http.StatusAccepted {
			t.Errorf("again under %s: %d %v", fence, status, answer)
		}
	}
	close(goOn)
	p.ended("run-1")
	if status, _ := p.again("run-1", "1"); status != http.StatusAccepted {
		t.Errorf("again when it was over: %d", status)
	}
	if started.Load() != 1 || len(p.run("run-1").reported) != 1 {
		t.Errorf("began %d times, reported %v", started.Load(), p.run("run-1").reported)
	}
}

// again sends a dispatch once more, under a fence that is named.
func (p *plane) again(id, fence string) (int, map[string]any) {
	header := http.Header{"X-Execution-Id": {id}, "X-Holdshort-Fence": {fence}}
	return p.post(p.registered().base+"/reasoners/works", header, []byte(`{"Document":"d"}`))
}

func TestARunThatComesAgainGoesOnUnderTheNewFence(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	started, goOn := working(a)
	serve(t, p, a)
	p.start("run-1", "works", `{"Document":"d"}`)
	if status, _ := p.give("run-1"); status != http.StatusAccepted {
		t.Fatalf("not taken: %d", status)
	}
	close(goOn)
	if run := p.ended("run-1"); run.Status != "succeeded" || started.Load() != 1 || len(run.notes) != 1 {
		t.Errorf("%s, began %d times, notes %v", run.Status, started.Load(), run.notes)
	}
}

func TestAnEndThatIsBeingToldWhileTheRunComesAgainIsToldUnderTheNewFence(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	started, goOn := working(a)
	var tries atomic.Int32
	p.replies("/run-1/status", func(w http.ResponseWriter, r *http.Request) {
		if tries.Add(1) == 1 {
			if status, _ := p.give("run-1"); status != http.StatusAccepted {
				t.Errorf("not taken: %d", status)
			}
		}
		p.held(p.report)(w, withID(r, "run-1"))
	})
	serve(t, p, a)
	p.start("run-1", "works", `{"Document":"d"}`)
	close(goOn)
	if run := p.ended("run-1"); run.Status != "succeeded" || started.Load() != 1 || tries.Load() != 2 {
		t.Errorf("%s, began %d times, told %d times", run.Status, started.Load(), tries.Load())
	}
}

func TestWhatCannotBeRunIsRefused(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	started, _ := working(a)
	serve(t, p, a)
	for _, each := range []struct {
		name, reasoner, input string
		more                  []string
		status                int
		code                  string
	}{
		{"a wrong input", "works", `{"Document":3}`, nil, 422, "invalid_input"},
		{"an unknown member", "works", `{"Other":3}`, nil, 422, "invalid_input"},
		{"a list", "works", `[]`, nil, 422, "invalid_input"},
		{"null", "works", `null`, nil, 422, "invalid_input"},
		{"no JSON", "works", `{`, nil, 400, "invalid_body"},
		{"no UTF-8", "works", "{\"Document\":\"\xff\"}", nil, 400, "invalid_body"},
		{"no such reasoner", "other", `{}`, nil, 404, "reasoner_not_found"},
		{"another instance", "works", `{}`, []string{"X-Holdshort-Instance", "x"}, 503, "other_instance"},
		{"no number as fence", "works", `{}`, []string{"X-Holdshort-Fence", "first"}, 422, "invalid_input"},
		{"no number of steps", "works", `{}`, []string{"X-Holdshort-Steps", "many"}, 422, "invalid_input"},
		{"no time that is left", "works", `{}`, []string{"X-Holdshort-Time-Left", "nan"}, 422, "invalid_input"},
		{"no id", "works", `{}`, []string{"X-Execution-ID", "a run"}, 422, "invalid_input"},
		{"an empty id", "works", `{}`, []string{"X-Execution-ID", ""}, 422, "invalid_input"},
		{"over 8 MiB", "works", `{"Document":"` + strings.Repeat("d", 9_000_000) + `"}`, nil, 413, "body_too_large"},
	} {
		p.queue("run-1", each.reasoner, each.input)
		status, answer := p.give("run-1", each.more...)
		if status != each.status || answer["error"] != each.code {
			t.Errorf("%s: %d %v", each.name, status, answer)
		}
	}
	if started.Load() != 0 {
		t.Error("something was begun")
	}
}

func TestAnInputMayBeAsLargeAsTheControlPlaneTakes(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	_, goOn := working(a)
	close(goOn)
	serve(t, p, a)
	p.start("run-1", "works", `{"Document":"`+strings.Repeat("d", 3_000_000)+`"}`)
	if run := p.ended("run-1"); len(run.Result) != 3_000_002 {
		t.Errorf("%s with %d bytes", run.Status, len(run.Result))
	}
}

func TestACallWithoutAFenceDoesNotJoinIt(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	_, goOn := working(a)
	defer close(goOn)
	serve(t, p, a)
	p.start("run-1", "works", `{"Document":"d"}`)
	header := http.Header{"X-Execution-Id": {"run-1"}}
	status, answer := p.post(p.registered().base+"/reasoners/works", header, nil)
	if status != 409 || answer["error"] != "execution_exists" {
		t.Errorf("%d %v", status, answer)
	}
}

func TestARunThatWasTakenOverEndsAndWritesNothing(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	goOn, ended := make(chan struct{}), make(chan struct{})
	agent.Handle(a, "works", func(ctx context.Context, _ struct{}) (string, error) {
		<-goOn
		_, err := agent.Step(ctx, "one", func(context.Context) (int, error) { return 1, nil })
		if !errors.Is(err, client.ErrStaleInstance) || !errors.Is(context.Cause(ctx), client.ErrStaleInstance) {
			t.Errorf("the step: %v, the context: %v", err, context.Cause(ctx))
		}
		if _, err := a.Pause(ctx, agent.Question{}); !errors.Is(err, client.ErrStaleInstance) {
			t.Errorf("the pause: %v", err)
		}
		close(ended)
		return "swallowed", nil
	})
	stop := serve(t, p, a)
	p.start("run-1", "works", "{}")
	p.takeOver("run-1")
	close(goOn)
	within(t, "the end of the code", ended)
	stop()
	run := p.run("run-1")
	if len(run.reported) != 0 || len(run.steps) != 0 || len(p.handedBack) != 0 {
		t.Errorf("reported %v, steps %v, handed back %v", run.reported, run.steps, p.handedBack)
	}
}

func TestARunThatComesBackAfterItWasTakenOverBeginsAnew(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	var started atomic.Int32
	goOn := make(chan struct{})
	agent.Handle(a, "works", func(ctx context.Context, _ struct{}) (int32, error) {
		began := started.Add(1)
		if began == 1 {
			<-goOn
		}
		return agent.Step(ctx, "one", func(context.Context) (int32, error) { return began, nil })
	})
	serve(t, p, a)
	p.start("run-1", "works", "{}")
	p.takeOver("run-1")
	close(goOn)
	eventually(t, "the first try to end", func() bool {
		status, _ := p.tellCancel("run-1", "x", 99)
		return status == http.StatusNotFound
	})
	p.give("run-1")
	if run := p.ended("run-1"); string(run.Result) != "2" {
		t.Errorf("%s with %s", run.Status, run.Result)
	}
}

func TestAPanicIsTheRunsFailureAndNeverTheProcesss(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	agent.Handle(a, "breaks", func(context.Context, json.RawMessage) (int, error) { panic("no such file\x00\xff") })
	agent.Handle(a, "unstorable", func(context.Context, any) (any, error) { return make(chan int), nil })
	serve(t, p, a)
	p.start("run-1", "breaks", "{}")
	if run := p.ended("run-1"); run.Status != "failed" || run.Error != "panic: no such file??" {
		t.Errorf("%s with %q", run.Status, run.Error)
	}
	p.start("run-2", "unstorable", "{}")
	if run := p.ended("run-2"); run.Status != "failed" {
		t.Errorf("%s with %s", run.Status, run.Result)
	}
}
