package agent_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdshort/holdshort/sdk/go/agent"
	"github.com/holdshort/holdshort/sdk/go/client"
)

// replies lets a plane answer calls of one path otherwise.
func (p *plane) replies(path string, answer func(w http.ResponseWriter, r *http.Request)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		meant := strings.HasSuffix(r.URL.Path, path)
		if meant {
			answer(w, r)
		}
		return meant
	}
}

func TestAKeyThatIsRefusedWhileARunWaitsIsNeverADecision(t *testing.T) {
	p := newPlane(t)
	p.replies("/approvals/wait", func(w http.ResponseWriter, _ *http.Request) { refuse(w, 401, "invalid_key", nil) })
	a := made(t, p, agent.Pull)
	lost := make(chan error, 1)
	agent.Handle(a, "asks", func(ctx context.Context, _ struct{}) (bool, error) {
		result, err := a.Pause(ctx, agent.Question{ApprovalRequestID: "x"})
		lost <- err
		return result.Approved(), err
	})
	serve(t, p, a)
	p.start("run-1", "asks", "{}")
	if err := <-lost; !errors.Is(err, client.ErrAccessLost) || !errors.Is(err, client.ErrHandedBack) {
		t.Errorf("the pause: %v", err)
	}
	p.until("the run to be handed back", func() bool { return len(p.handedBack) == 1 })
	if run := p.run("run-1"); run.Status != "waiting" || len(run.reported) != 0 {
		t.Errorf("the run is %s, reported %v", run.Status, run.reported)
	}
}

func TestAnAnswerDoesNotWakeARunWhoseProcessWasTakenForGone(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Push)
	asking(p, a)
	serve(t, p, a)
	p.start("run-1", "asks", `{"ID":"x"}`)
	asked := p.pending("x")
	p.mu.Lock()
	first := p.instances[0]
	first.status = "gone"
	p.executions["run-1"].fence++
	p.mu.Unlock()
	asked.Status, asked.Response = "approved", map[string]any{"feedback": "", "data": nil}
	// Whichever is first: that it counts as gone, or the answer to who is not there any more.
	p.push(asked)
	p.until("it to register again", func() bool { return p.live() != nil && p.live() != first })
	eventually(t, "the code to end", func() bool {
		status, _ := p.tellCancel("run-1", "x", 99)
		return status == http.StatusNotFound
	})
	if run := p.run("run-1"); len(run.reported) != 0 {
		t.Errorf("reported %v", run.reported)
	}
}

func TestAProcessThatStoodStillAsksWhetherItHoldsItsRunsBeforeAnAnswerWakesThem(t *testing.T) {
	p := newPlane(t)
	p.lease, p.beat = 0.15, 3600
	a := made(t, p, agent.Push)
	woken := make(chan error, 1)
	agent.Handle(a, "asks", func(ctx context.Context, _ struct{}) (bool, error) {
		result, err := a.Pause(ctx, agent.Question{ApprovalRequestID: "x"})
		woken <- err
		return result.Approved(), err
	})
	serve(t, p, a)
	p.start("run-1", "asks", "{}")
	p.pending("x")
	p.mu.Lock()
	p.instances[0].status = "gone"
	p.mu.Unlock()
	lapsed := time.After(200 * time.Millisecond)
	<-lapsed
	p.decide("x", "approved", "", nil)
	if err := <-woken; !errors.Is(err, client.ErrHandedBack) {
		t.Errorf("the pause: %v", err)
	}
	if run := p.run("run-1"); len(run.reported) != 0 {
		t.Errorf("reported %v", run.reported)
	}
}

func TestAStepThatStandsElsewhereFailsTheRun(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	agent.Handle(a, "works", func(ctx context.Context, _ struct{}) (string, error) {
		_, err := agent.Step(ctx, "one", func(context.Context) (int, error) { return 1, nil })
		if !errors.Is(err, client.ErrStepMismatch) || !errors.Is(context.Cause(ctx), client.ErrStepMismatch) {
			t.Errorf("the step: %v", err)
		}
		return "swallowed", nil
	})
	serve(t, p, a)
	p.queue("run-1", "works", "{}")
	p.mu.Lock()
	p.executions["run-1"].steps = []map[string]any{{"name": "one", "occurrence": 1.0, "previous": "elsewhere", "result": 1}}
	p.mu.Unlock()
	// It believes that nothing is stored, as another process stored it meanwhile.
	p.give("run-1", "X-Holdshort-Steps", "0")
	run := p.ended("run-1")
	if run.Status != "failed" || run.Reason != "step_mismatch" || run.Result != nil {
		t.Errorf("%s (%s) with %s", run.Status, run.Reason, run.Result)
	}
}

func TestAResultThatIsNotTakenFailsTheRun(t *testing.T) {
	p := newPlane(t)
	first := true
	p.replies("/run-1/status", func(w http.ResponseWriter, r *http.Request) {
		if first {
			first = false
			refuse(w, 413, "body_too_large", nil)
			return
		}
		p.held(p.report)(w, withID(r, "run-1"))
	})
	a := made(t, p, agent.Auto)
	agent.Handle(a, "works", func(context.Context, struct{}) (string, error) { return "large", nil })
	serve(t, p, a)
	p.start("run-1", "works", "{}")
	if run := p.ended("run-1"); run.Status != "failed" || run.Result != nil || !strings.Contains(run.Error, "body_too_large") {
		t.Errorf("%s with %s: %s", run.Status, run.Result, run.Error)
	}
}

func TestCodeThatDoesNotLookAtItsContextIsNotWaitedFor(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes the five seconds that code has to clean up")
	}
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	goOn := make(chan struct{})
	agent.Handle(a, "stubborn", func(context.Context, struct{}) (string, error) {
		<-goOn
		return "too late", nil
	}, agent.Timeout(time.Millisecond))
	serve(t, p, a)
	p.start("run-1", "stubborn", "{}")
	if run := p.ended("run-1"); run.Status != "timeout" || run.Result != nil {
		t.Errorf("%s with %s", run.Status, run.Result)
	}
	close(goOn)
}

func TestAnotherProcessMayAskAndWaitForARunByItsID(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Pull)
	ctx := context.Background()
	p.queue("run-1", "elsewhere", "{}")
	p.queue("run-2", "elsewhere", "{}")
	ask := func(id string) {
		if _, err := a.Pause(ctx, agent.Question{
			ApprovalRequestID: "x", ExecutionID: id, Timeout: 10 * time.Millisecond, OnExpiry: "resume",
		}); err != nil {
			t.Errorf("asked for another run: %v", err)
		}
	}
	ask("run-1")
	if result, err := a.WaitForResume(ctx, "x", nil); err != nil || !result.Expired() {
		t.Errorf("what is over: %+v, %v", result, err)
	}
	ask("run-2")
	if _, err := a.WaitForResume(ctx, "x", nil); !errors.Is(err, client.ErrAmbiguousRequestID) {
		t.Errorf("what two runs asked: %v", err)
	}
	if result, err := a.WaitForResume(ctx, "x", &agent.ResumeOptions{ExecutionID: "run-2"}); err != nil || !result.Expired() {
		t.Errorf("what is named: %+v, %v", result, err)
	}
	p.queue("run-4", "elsewhere", "{}")
	p.takeOver("run-4")
	if _, err := a.Pause(ctx, agent.Question{ExecutionID: "run-4"}); !errors.Is(err, client.ErrConflict) {
		t.Errorf("asked for a run that another process has: %v", err)
	}
	eventually(t, "nothing to be left", func() bool { return ofTheSDK() == 0 })
}

func TestAWaitThatIsUpLeavesTheQuestionPending(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Pull)
	ctx := context.Background()
	p.queue("run-3", "elsewhere", "{}")
	asked := make(chan client.ApprovalResult, 1)
	go func() {
		result, err := a.Pause(ctx, agent.Question{ApprovalRequestID: "y", ExecutionID: "run-3"})
		if err != nil {
			t.Error(err)
		}
		asked <- result
	}()
	p.pending("y")
	_, err := a.WaitForResume(ctx, "y", &agent.ResumeOptions{Timeout: 10 * time.Millisecond})
	if !errors.Is(err, client.ErrWaitTimeout) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("what is still pending: %v", err)
	}
	p.decide("y", "approved", "", nil)
	if result := <-asked; !result.Approved() {
		t.Errorf("answered with %+v", result)
	}
	pusher := made(t, p, agent.Push)
	if _, err := pusher.Pause(ctx, agent.Question{ExecutionID: "run-3"}); !errors.Is(err, client.ErrCallbackUnknown) {
		t.Errorf("a push without an address: %v", err)
	}
}

func TestALongQuestionIsShownBelowItsBeginning(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Pull)
	for _, question := range []string{"Short?", strings.Repeat("l", 250) + "?", "First\nSecond"} {
		p.queue("run-1", "elsewhere", "{}")
		_, err := a.Ask(context.Background(), question, agent.AskOptions{
			ExecutionID: "run-1", Description: "more", Timeout: 10 * time.Millisecond, Kind: "yes_no", OnExpiry: "resume",
		})
		if err != nil {
			t.Fatal(err)
		}
		p.mu.Lock()
		asked := p.approvals[len(p.approvals)-1].asked
		p.mu.Unlock()
		title, description := asked["title"].(string), asked["description"].(string)
		whole := title + "\nmore"
		if question != "Short?" {
			whole = question + "\n\nmore"
		}
		if len([]rune(title)) > 200 || !strings.HasPrefix(question, title[:5]) || !strings.HasSuffix(whole, description) {
			t.Errorf("%.20q became %.30q with %.30q", question, title, description)
		}
	}
	_, err := a.Ask(context.Background(), "Which?", agent.AskOptions{ExecutionID: "run-1", Kind: "multiple_choice"})
	if !errors.Is(err, client.ErrInvalidField) {
		t.Errorf("a choice without options: %v", err)
	}
}

func TestNotesNeverFailAndKeepTheirOrder(t *testing.T) {
	p := newPlane(t)
	refused := 0
	p.replies("/run-1/notes", func(w http.ResponseWriter, r *http.Request) {
		if refused++; refused == 1 {
			refuse(w, 422, "invalid_field", nil)
			return
		}
		p.held(p.note)(w, withID(r, "run-1"))
	})
	a := made(t, p, agent.Auto)
	agent.Handle(a, "notes", func(ctx context.Context, _ struct{}) (int, error) {
		for _, word := range []string{"refused", "one", "two", "three"} {
			a.Note(ctx, word)
		}
		return 0, nil
	})
	serve(t, p, a)
	a.Note(context.Background(), "outside")
	p.start("run-1", "notes", "{}")
	if run := p.ended("run-1"); strings.Join(run.notes, " ") != "one two three" || run.Status != "succeeded" {
		t.Errorf("%s with %v", run.Status, run.notes)
	}
}
