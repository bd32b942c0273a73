package agent_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/holdshort/holdshort/sdk/go/agent"
)

// made is an agent of a plane, which serves nothing yet.
func made(t *testing.T, p *plane, callback agent.Callback) *agent.Agent {
	t.Helper()
	return draining(t, p, callback, 200*time.Millisecond)
}

// draining is as made, with a time of its own for what works when it stops.
func draining(t *testing.T, p *plane, callback agent.Callback, drain time.Duration) *agent.Agent {
	t.Helper()
	t.Setenv("HOLDSHORT_API_KEY", "")
	t.Setenv("HOLDSHORT_CALLBACK_URL", "")
	a, err := agent.New(agent.Config{
		NodeID: "reviewer", Version: "1", ControlPlaneURL: p.server.URL, Callback: callback, Drain: drain,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// serve serves an agent until the test ends, or until what is returned is called.
func serve(t *testing.T, p *plane, a *agent.Agent) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- a.Serve(ctx, "127.0.0.1:0") }()
	stop = func() {
		cancel()
		select {
		case err := <-served:
			served <- nil
			if err != nil {
				t.Error(err)
			}
		case <-time.After(bound):
			t.Error("the agent does not stop")
		}
	}
	t.Cleanup(stop)
	p.registered()
	eventually(t, "the agent to hear that it is registered", a.Registered)
	return stop
}

// eventually asks until something holds.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	over := time.After(bound)
	for !is() {
		select {
		case <-look.C:
		case <-over:
			t.Fatalf("in vain: %s", what)
		}
	}
}

// within waits for a channel, with a bound.
func within(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(bound):
		t.Fatalf("in vain: %s", what)
	}
}
