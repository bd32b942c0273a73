package agent_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/holdshort/holdshort/sdk/go/agent"
	"github.com/holdshort/holdshort/sdk/go/client"
)

func TestCancellingReachesTheContextWithItsCause(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	began := make(chan struct{})
	agent.Handle(a, "waits", func(ctx context.Context, _ struct{}) (string, error) {
		close(began)
		<-ctx.Done()
		var end *client.Error
		if !errors.As(context.Cause(ctx), &end) || !errors.Is(end, client.ErrExecutionCancelled) {
			t.Errorf("the cause is %v", context.Cause(ctx))
		} else if end.Message != "execution run-1 was cancelled: no longer wanted" {
			t.Errorf("it says %q", end.Message)
		}
		if _, err := agent.Step(ctx, "one", func(context.Context) (int, error) { return 1, nil }); err != end {
			t.Errorf("a step after it: %v", err)
		}
		return "half done", nil
	})
	serve(t, p, a)
	p.start("run-1", "waits", "{}")
	within(t, "the code", began)
	if status, _ := p.cancel("run-1", "no longer wanted"); status != http.StatusAccepted {
		t.Errorf("answered %d", status)
	}
	run := p.ended("run-1")
	if run.Status != "cancelled" || string(run.Result) != `"half done"` || run.reported[0] != "cancelled" {
		t.Errorf("%s with %s, reported %v", run.Status, run.Result, run.reported)
	}
}

func TestAPauseOfACancelledRunEnds(t *testing.T) {
	for _, told := range []bool{true, false} {
		p := newPlane(t)
		a := made(t, p, agent.Auto)
		agent.Handle(a, "asks", func(ctx context.Context, _ struct{}) (string, error) {
			_, err := a.Pause(ctx, agent.Question{ApprovalRequestID: "x"})
			if !errors.Is(err, client.ErrExecutionCancelled) || ctx.Err() == nil {
				t.Errorf("the pause: %v, the context: %v", err, ctx.Err())
			}
			return "", err
		})
		serve(t, p, a)
		p.start("run-1", "asks", "{}")
		p.pending("x")
		if told {
			p.cancel("run-1", "enough")
		} else {
			// Its question is withdrawn, and nobody says more.
			p.mu.Lock()
			p.approvals[0].Status = "withdrawn"
			p.executions["run-1"].Status, p.executions["run-1"].Reason = "cancelled", "enough"
			p.change()
			p.mu.Unlock()
		}
		if run := p.ended("run-1"); run.reported[0] != "cancelled" {
			t.Errorf("reported %v", run.reported)
		}
	}
}

func TestOnlyWhoeverHasTheRunIsCancelled(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	_, goOn := working(a)
	defer close(goOn)
	serve(t, p, a)
	p.start("run-1", "works", "{}")
	p.give("run-1")
	status, answer := p.tellCancel("run-1", "late", 1)
	if status != 409 || answer["error"] != "stale_instance" || answer["fence"] != 2.0 {
		t.Errorf("%d %v", status, answer)
	}
	if status, answer := p.tellCancel("another", "late", 1); status != 404 || answer["error"] != "execution_not_found" {
		t.Errorf("%d %v", status, answer)
	}
	url := p.registered().base + "/_internal/executions/run-1/cancel"
	for name, each := range map[string]struct {
		header http.Header
		body   string
	}{
		"no fence": {nil, ""}, "no number": {http.Header{"X-Holdshort-Fence": {"x"}}, ""},
		"no object": {http.Header{"X-Holdshort-Fence": {"2"}}, "["}, "null": {http.Header{"X-Holdshort-Fence": {"2"}}, "null"},
	} {
		if status, _ := p.post(url, each.header, []byte(each.body)); status != 422 {
			t.Errorf("%s: %d", name, status)
		}
	}
}

func TestATimeLimitEndsWorkAndStandsStillWhileTheRunWaits(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	agent.Handle(a, "limited", func(ctx context.Context, _ struct{}) (string, error) {
		if _, err := a.Pause(ctx, agent.Question{ApprovalRequestID: "x"}); err != nil {
			return "", err
		}
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			t.Errorf("the cause is %v", context.Cause(ctx))
		}
		return "too late", nil
	}, agent.Timeout(100*time.Millisecond))
	serve(t, p, a)
	p.start("run-1", "limited", "{}")
	p.pending("x")
	waited := time.After(250 * time.Millisecond)
	<-waited
	if run := p.run("run-1"); run.Status != "waiting" {
		t.Errorf("while it waits it is %s", run.Status)
	}
	p.decide("x", "approved", "", nil)
	if run := p.ended("run-1"); run.Status != "timeout" || run.reported[0] != "timeout" {
		t.Errorf("%s, reported %v", run.Status, run.reported)
	}
}

func TestALimitThatPassedOnTheServerEndsItAsItsOwn(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	agent.Handle(a, "asks", func(ctx context.Context, _ struct{}) (string, error) {
		_, err := a.Pause(ctx, agent.Question{ApprovalRequestID: "x"})
		return "", err
	})
	serve(t, p, a)
	p.start("run-1", "asks", "{}")
	p.pending("x")
	p.cancel("run-1", "execution_timeout")
	if run := p.ended("run-1"); run.Status != "timeout" {
		t.Errorf("%s, reported %v", run.Status, run.reported)
	}
}

func TestTheTimeThatIsLeftIsTheLimit(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	working(a)
	serve(t, p, a)
	p.queue("run-1", "works", "{}")
	p.give("run-1", "X-Holdshort-Time-Left", "0.02")
	if run := p.ended("run-1"); run.Status != "timeout" {
		t.Errorf("%s, reported %v", run.Status, run.reported)
	}
}
