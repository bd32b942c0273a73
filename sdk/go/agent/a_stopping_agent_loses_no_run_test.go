package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdshort/holdshort/sdk/go/agent"
	"github.com/holdshort/holdshort/sdk/go/client"
)

func TestTheEndHandsBackWhatWaitsAndLetsWhatRunsFinish(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	agent.Handle(a, "asks", func(ctx context.Context, _ struct{}) (string, error) {
		_, err := a.Pause(ctx, agent.Question{ApprovalRequestID: "x"})
		if !errors.Is(err, client.ErrHandedBack) || !errors.Is(context.Cause(ctx), client.ErrHandedBack) {
			t.Errorf("the pause: %v, the context: %v", err, context.Cause(ctx))
		}
		return "swallowed", nil
	})
	began := make(chan struct{})
	agent.Handle(a, "runs", func(ctx context.Context, _ struct{}) (string, error) {
		close(began)
		p.until("the draining", func() bool { return p.instances[0].status == "draining" })
		return "finished", ctx.Err()
	})
	stop := serve(t, p, a)
	p.start("run-1", "asks", "{}")
	p.start("run-2", "runs", "{}")
	p.pending("x")
	within(t, "the code", began)
	stop()
	if run := p.run("run-2"); run.Status != "succeeded" || string(run.Result) != `"finished"` {
		t.Errorf("what ran is %s with %s", run.Status, run.Result)
	}
	if run := p.run("run-1"); run.Status != "waiting" || len(run.reported) != 0 {
		t.Errorf("what waited is %s, reported %v", run.Status, run.reported)
	}
	if fmt.Sprint(p.handedBack) != "[run-1 under 1]" || p.instances[0].status != "gone" {
		t.Errorf("handed back %v, the instance is %s", p.handedBack, p.instances[0].status)
	}
}

func TestWhatDoesNotFinishIsHandedBack(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	began, goOn := make(chan struct{}), make(chan struct{})
	agent.Handle(a, "stubborn", func(context.Context, struct{}) (string, error) {
		close(began)
		<-goOn
		return "", nil
	})
	stop := serve(t, p, a)
	p.start("run-1", "stubborn", "{}")
	within(t, "the code", began)
	stop()
	close(goOn)
	if fmt.Sprint(p.handedBack) != "[run-1 under 1]" || len(p.run("run-1").reported) != 0 {
		t.Errorf("handed back %v, reported %v", p.handedBack, p.run("run-1").reported)
	}
}

func TestAnAgentThatStopsTakesNothingNew(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	began, goOn := make(chan struct{}), make(chan struct{})
	agent.Handle(a, "runs", func(context.Context, struct{}) (string, error) {
		close(began)
		<-goOn
		return "", nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- a.Serve(ctx, "127.0.0.1:0") }()
	base := p.registered().base
	p.start("run-1", "runs", "{}")
	within(t, "the code", began)
	cancel()
	p.until("the draining", func() bool { return p.instances[0].status == "draining" })
	status, answer := p.post(base+"/reasoners/runs", http.Header{"X-Execution-Id": {"run-2"}, "X-Holdshort-Fence": {"1"}}, nil)
	if status != 503 || answer["error"] != "handed_back" || answer["retry-after"] != "1" {
		t.Errorf("%d %v", status, answer)
	}
	close(goOn)
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestAnAgentMayBeServedAgain(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	asking(p, a)
	serve(t, p, a)()
	serve(t, p, a)
	p.start("run-1", "asks", `{"ID":"x"}`)
	p.decide("x", "approved", "", nil)
	if run := p.ended("run-1"); run.Status != "succeeded" {
		t.Errorf("the run is %s", run.Status)
	}
}

func TestNothingOutlivesServe(t *testing.T) {
	p := newPlane(t)
	before := ofTheSDK()
	a := made(t, p, agent.Auto)
	asking(p, a)
	working(a)
	stop := serve(t, p, a)
	p.start("run-1", "asks", `{"ID":"x"}`)
	p.start("run-2", "asks", `{"ID":"y"}`)
	p.start("run-3", "works", "{}")
	p.decide("x", "approved", "", nil)
	p.pending("y")
	p.ended("run-1")
	stop()
	eventually(t, "all goroutines of the SDK to end", func() bool { return ofTheSDK() <= before })
}

// ofTheSDK counts the goroutines that the SDK began or waits in, and the connections that it holds.
func ofTheSDK() int {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	count := 0
	for _, each := range strings.Split(string(stacks), "\n\n") {
		of := strings.Contains(each, "holdshort/sdk/go/agent.") || strings.Contains(each, "holdshort/sdk/go/internal") ||
			strings.Contains(each, "net/http.(*persistConn)")
		if of {
			count++
		}
	}
	return count
}

func TestAnAgentRegistersAgainWhenItIsUnknown(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	asking(p, a)
	_, goOn := working(a)
	serve(t, p, a)
	told := p.registered().told
	features := fmt.Sprintf("%v %v %v %v", told["features"], told["lease_seconds"], told["version"], told["reasoners"])
	if features != "map[fence:true replay:true] 15 1 [map[name:asks resume:when_decided] map[name:works resume:when_decided]]" {
		t.Errorf("registered as %s", features)
	}
	p.start("run-1", "asks", `{"ID":"x"}`)
	p.start("run-2", "works", `{"Document":"d"}`)
	p.pending("x")
	p.mu.Lock()
	first := p.instances[0]
	first.status = "gone"
	p.mu.Unlock()
	p.until("it to register again", func() bool { return p.live() != nil && p.live() != first })
	p.until("what waited to be handed back", func() bool { return len(p.handedBack) == 1 })
	close(goOn)
	if run := p.ended("run-2"); run.Status != "succeeded" {
		t.Errorf("what ran is %s", run.Status)
	}
}

func TestTheHandlerWorksBelowAPath(t *testing.T) {
	for _, stripped := range []bool{true, false} {
		p := newPlane(t)
		mux := http.NewServeMux()
		host := httptest.NewServer(mux)
		t.Cleanup(host.Close)
		a, err := agent.New(agent.Config{
			NodeID: "reviewer", ControlPlaneURL: p.server.URL, CallbackURL: host.URL + "/agents/one/",
			Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		asking(p, a)
		handler := a.Handler()
		if stripped {
			handler = http.StripPrefix("/agents/one", handler)
		}
		mux.Handle("/agents/one/", handler)
		if err := a.Start(); err != nil {
			t.Fatal(err)
		}
		p.start("run-1", "asks", `{"ID":"x"}`)
		p.decide("x", "approved", "", nil)
		if run := p.ended("run-1"); run.Status != "succeeded" {
			t.Errorf("the run is %s", run.Status)
		}
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		a.Stop(ctx)
		cancel()
		if p.instances[0].status != "gone" {
			t.Error("the control plane was not told that it stops")
		}
	}
	nowhere := made(t, newPlane(t), agent.Auto)
	if err := nowhere.Start(); !errors.Is(err, client.ErrCallbackUnknown) {
		t.Errorf("an agent without an address: %v", err)
	}
}

func TestAnAgentIsServedWithoutTheControlPlaneAndRegistersWhenItIsThere(t *testing.T) {
	p := newPlane(t)
	away := true
	p.intercept = func(w http.ResponseWriter, _ *http.Request) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		if away {
			w.WriteHeader(503)
		}
		return away
	}
	a := made(t, p, agent.Auto)
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- a.Serve(ctx, "127.0.0.1:0") }()
	eventually(t, "a try", func() bool { return len(p.called()) > 1 })
	p.mu.Lock()
	away = false
	p.mu.Unlock()
	p.registered()
	began := time.Now()
	cancel()
	if err := <-served; err != nil || time.Since(began) > 5*time.Second {
		t.Errorf("stopping took %s: %v", time.Since(began), err)
	}
}

func TestARunThatAsksWhileTheAgentStopsIsHandedBackWithItsQuestionAsked(t *testing.T) {
	p := newPlane(t)
	// So long that the test fails when the end of it is what ends the pause.
	a := draining(t, p, agent.Auto, time.Hour)
	began := make(chan struct{})
	agent.Handle(a, "asks_late", func(ctx context.Context, _ struct{}) (string, error) {
		close(began)
		p.until("the draining", func() bool { return p.instances[0].status == "draining" })
		_, err := a.Pause(ctx, agent.Question{ApprovalRequestID: "x"})
		if !errors.Is(err, client.ErrHandedBack) {
			t.Errorf("the pause: %v", err)
		}
		return "", err
	})
	stop := serve(t, p, a)
	p.start("run-1", "asks_late", "{}")
	within(t, "the code", began)
	stop()
	if fmt.Sprint(p.handedBack) != "[run-1 under 1]" || len(p.approvals) != 1 || p.approvals[0].Status != "pending" {
		t.Errorf("handed back %v, asked %d", p.handedBack, len(p.approvals))
	}
}
