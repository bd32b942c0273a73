package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdshort/holdshort/sdk/go/agent"
	"github.com/holdshort/holdshort/sdk/go/client"
)

// ledger notes what was done, in a text that other processes may be in.
type ledger struct {
	mu   sync.Mutex
	done []string
}

func (l *ledger) add(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = append(l.done, what)
}

func (l *ledger) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	sorted := slices.Clone(l.done)
	slices.Sort(sorted)
	return strings.Join(sorted, " ")
}

// branching does a step before a pause and three beside each other, each with a step of the same name.
func branching(a *agent.Agent, does func(what string)) {
	agent.Handle(a, "works", func(ctx context.Context, _ struct{}) ([]string, error) {
		one := func(ctx context.Context, what string) (string, error) {
			return agent.Step(ctx, "fetch", func(context.Context) (string, error) {
				does(what)
				return "did " + what, nil
			})
		}
		first, err := one(ctx, "first")
		if err != nil {
			return nil, err
		}
		results := make([]string, 3)
		failures := make([]error, 3)
		var beside sync.WaitGroup
		for i := range results {
			beside.Add(1)
			go func() {
				defer beside.Done()
				results[i], failures[i] = one(agent.Branch(ctx, fmt.Sprint(i)), fmt.Sprint("branch", i))
			}()
		}
		beside.Wait()
		if err := errors.Join(failures...); err != nil {
			return nil, err
		}
		if _, err := a.Pause(ctx, agent.Question{ApprovalRequestID: "x"}); err != nil {
			return nil, err
		}
		last, err := one(ctx, "last")
		return append(append([]string{first}, results...), last), err
	})
}

const allResults = `["did first","did branch0","did branch1","did branch2","did last"]`

func TestStepsAreDoneOnceWhenTheProcessIsKilled(t *testing.T) {
	if url := os.Getenv("STEPS_PLANE"); url != "" {
		killed(url)
		return
	}
	p := newPlane(t)
	child := exec.Command(os.Args[0], "-test.run=^TestStepsAreDoneOnceWhenTheProcessIsKilled$")
	child.Env = append(os.Environ(), "STEPS_PLANE="+p.server.URL)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
	p.start("run-1", "works", "{}")
	p.pending("x")
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	p.mu.Lock()
	p.instances = nil
	p.mu.Unlock()

	book := &ledger{}
	a := made(t, p, agent.Auto)
	branching(a, book.add)
	serve(t, p, a)
	p.give("run-1")
	p.moved()
	p.decide("x", "approved", "", nil)
	if run := p.ended("run-1"); string(run.Result) != allResults {
		t.Errorf("%s with %s: %s", run.Status, run.Result, run.Error)
	}
	if book.all() != "last" {
		t.Errorf("done again: %s", book.all())
	}
	keptAt(t, p.stepsOf("run-1"), " at 0:1", " at 1:1", " at 2:1", " at :1", " at :2")
}

func keptAt(t *testing.T, kept []string, want ...string) {
	t.Helper()
	places := []string{}
	for _, each := range kept {
		places = append(places, each[strings.Index(each, " at "):])
	}
	slices.Sort(places)
	if !slices.Equal(places, want) {
		t.Errorf("kept at %v", kept)
	}
}

// killed is the process that will be killed.
func killed(url string) {
	a, err := agent.New(agent.Config{NodeID: "reviewer", Version: "1", ControlPlaneURL: url})
	if err != nil {
		os.Exit(1)
	}
	branching(a, func(string) {})
	_ = a.Serve(context.Background(), "127.0.0.1:0")
}

func TestTwoOfOneNameAtOnceAreRefused(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	agent.Handle(a, "races", func(ctx context.Context, _ struct{}) (string, error) {
		_, err := agent.Step(ctx, "outer", func(inStep context.Context) (int, error) {
			// The context of the run, not that of the step, which the inner one would be a part of.
			_, err := agent.Step(ctx, "outer", func(context.Context) (int, error) { return 2, nil })
			if !errors.Is(err, client.ErrStepsSideBySide) {
				t.Errorf("the second one: %v", err)
			}
			return agent.Step(inStep, "outer", func(context.Context) (int, error) { return 3, nil })
		})
		return "done", err
	})
	serve(t, p, a)
	p.start("run-1", "races", "{}")
	p.ended("run-1")
	if kept := p.stepsOf("run-1"); !slices.Equal(kept, []string{"outer#1 at :1"}) {
		t.Errorf("kept: %v", kept)
	}
}

func TestAFailedStepIsTriedAgainUnderItsNumber(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	var tries atomic.Int32
	agent.Handle(a, "tries", func(ctx context.Context, _ struct{}) (int, error) {
		for {
			number, err := agent.Step(ctx, "flaky", func(context.Context) (int, error) {
				if tries.Add(1) < 3 {
					return 0, errors.New("not yet")
				}
				return int(tries.Load()), nil
			})
			if err == nil {
				second, err := agent.Step(ctx, "flaky", func(context.Context) (int, error) { return 10, nil })
				return number + second, err
			}
		}
	})
	serve(t, p, a)
	p.start("run-1", "tries", "{}")
	if run := p.ended("run-1"); string(run.Result) != "13" {
		t.Errorf("%s with %s", run.Status, run.Result)
	}
	if kept := p.stepsOf("run-1"); !slices.Equal(kept, []string{"flaky#1 at :1", "flaky#2 at :2"}) {
		t.Errorf("kept: %v", kept)
	}
}

func TestAStepThatPanicsMayBeCalledAgain(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	agent.Handle(a, "recovers", func(ctx context.Context, _ struct{}) (int, error) {
		func() {
			defer func() { _ = recover() }()
			_, _ = agent.Step(ctx, "one", func(context.Context) (int, error) { panic("no") })
		}()
		return agent.Step(ctx, "one", func(context.Context) (int, error) { return 1, nil })
	})
	serve(t, p, a)
	p.start("run-1", "recovers", "{}")
	if run := p.ended("run-1"); string(run.Result) != "1" {
		t.Errorf("%s with %s: %s", run.Status, run.Result, run.Error)
	}
}

func TestAResultIsWhatJSONMadeOfItTheFirstTimeToo(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	type kept struct {
		Shown  string
		hidden string
	}
	agent.Handle(a, "works", func(ctx context.Context, _ struct{}) (string, error) {
		found, err := agent.Step(ctx, "one", func(context.Context) (kept, error) { return kept{"shown", "hidden"}, nil })
		if err != nil {
			return "", err
		}
		_, err = agent.Step(ctx, "no JSON", func(context.Context) (any, error) { return make(chan int), nil })
		if !errors.Is(err, client.ErrInvalidField) {
			t.Errorf("what is no JSON: %v", err)
		}
		_, err = agent.Step(ctx, "large", func(context.Context) (string, error) { return strings.Repeat("x", 1<<20), nil })
		if !errors.Is(err, client.ErrStepTooLarge) {
			t.Errorf("what is too large: %v", err)
		}
		_, err = agent.Step(ctx, "a\nb", func(context.Context) (int, error) { t.Error("it was done"); return 0, nil })
		if !errors.Is(err, client.ErrInvalidField) {
			t.Errorf("a name that is none: %v", err)
		}
		return found.Shown + found.hidden, nil
	})
	serve(t, p, a)
	p.start("run-1", "works", "{}")
	if run := p.ended("run-1"); string(run.Result) != `"shown"` {
		t.Errorf("%s with %s: %s", run.Status, run.Result, run.Error)
	}
}

func TestAStepAfterARejectionIsDoneAndNotKept(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	agent.Handle(a, "cleans_up", func(ctx context.Context, _ struct{}) (json.RawMessage, error) {
		if _, err := a.Pause(ctx, agent.Question{ApprovalRequestID: "x"}); err != nil {
			return nil, err
		}
		cleaned, err := agent.Step(ctx, "clean", func(context.Context) (json.RawMessage, error) {
			return json.RawMessage(`{"cleaned":1.50}`), nil
		})
		if _, asked := a.Pause(ctx, agent.Question{ApprovalRequestID: "y"}); !errors.Is(asked, client.ErrExecutionFinished) {
			t.Errorf("something new was asked: %v", asked)
		}
		return cleaned, err
	})
	serve(t, p, a)
	p.start("run-1", "cleans_up", "{}")
	p.decide("x", "rejected", "no", nil)
	run := p.ended("run-1")
	if run.Status != "cancelled" || !strings.Contains(string(run.Result), "cleaned") || len(run.steps) != 0 {
		t.Errorf("%s with %s and %v", run.Status, run.Result, run.steps)
	}
}

func TestOutsideARunThereAreNoSteps(t *testing.T) {
	_, err := agent.Step(context.Background(), "one", func(context.Context) (int, error) { return 1, nil })
	if !errors.Is(err, client.ErrNoExecution) {
		t.Error(err)
	}
	if agent.Branch(context.Background(), "b") != context.Background() || agent.ExecutionID(context.Background()) != "" {
		t.Error("there is a run outside one")
	}
}
