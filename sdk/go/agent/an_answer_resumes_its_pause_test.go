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

func asking(p *plane, a *agent.Agent) {
	agent.Handle(a, "asks", func(ctx context.Context, in struct{ ID string }) (client.ApprovalResult, error) {
		return a.Pause(ctx, agent.Question{ApprovalRequestID: in.ID, Payload: map[string]int{"amount": 5}})
	})
}

func TestAnAnswerResumesItsPauseByPushByPullAndByBoth(t *testing.T) {
	for _, callback := range []agent.Callback{agent.Push, agent.Pull, agent.Auto} {
		t.Run(string(callback), func(t *testing.T) {
			p := newPlane(t)
			a := made(t, p, callback)
			asking(p, a)
			serve(t, p, a)
			p.start("run-1", "asks", `{"ID":"x"}`)
			asked := p.pending("x")
			if pushes := asked.callbackURL != ""; pushes != (callback != agent.Pull) {
				t.Errorf("asked with the callback address %q", asked.callbackURL)
			}
			p.decide("x", "approved", "fine", map[string]any{"limit": 5})
			run := p.ended("run-1")
			want := `{"approval_id":"apr_1","approval_request_id":"x","data":{"limit":5},"decision":"approved",` +
				`"execution_id":"run-1","feedback":"fine","original":null,"round":1,"values":null}`
			if string(run.Result) != want || run.Status != "succeeded" {
				t.Errorf("%s with %s", run.Status, run.Result)
			}
		})
	}
}

func TestAPushThatNeverComesIsMadeUpForByTheHeldCall(t *testing.T) {
	p := newPlane(t)
	p.noPush = true
	a := made(t, p, agent.Auto)
	asking(p, a)
	serve(t, p, a)
	p.start("run-1", "asks", `{"ID":"x"}`)
	p.decide("x", "rejected", "no", nil)
	if run := p.ended("run-1"); run.Status != "cancelled" {
		t.Errorf("the run is %s", run.Status)
	}
}

func TestAnAnswerBeforeTheReplyToItsQuestionIsNotLost(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Push)
	asking(p, a)
	serve(t, p, a)
	answered := make(chan struct{})
	p.mu.Lock()
	p.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/executions/run-1/request-approval" {
			return false
		}
		held := httpRecorder{header: http.Header{}}
		p.held(p.ask)(&held, withID(r, "run-1"))
		p.decide("x", "approved", "early", nil)
		close(answered)
		_, _ = w.Write(held.body)
		return true
	}
	p.mu.Unlock()
	p.start("run-1", "asks", `{"ID":"x"}`)
	within(t, "the question", answered)
	if run := p.ended("run-1"); run.Status != "succeeded" {
		t.Errorf("the run is %s", run.Status)
	}
}

type httpRecorder struct {
	header http.Header
	body   []byte
}

func (h *httpRecorder) Header() http.Header { return h.header }
func (h *httpRecorder) WriteHeader(int)     {}
func (h *httpRecorder) Write(b []byte) (int, error) {
	h.body = append(h.body, b...)
	return len(b), nil
}

func withID(r *http.Request, id string) *http.Request {
	r.SetPathValue("id", id)
	return r
}

func TestACallbackThatIsRepeatedIsAnsweredAndOneThatIsForgedIsNot(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Push)
	asking(p, a)
	serve(t, p, a)
	p.start("run-1", "asks", `{"ID":"x"}`)
	asked := p.pending("x")
	forged := asked
	forged.secret, forged.Status = "another secret of 16", "approved"
	forged.Response = map[string]any{"feedback": "", "data": nil}
	header := http.Header{}
	if status, _ := p.post(asked.callbackURL, header, []byte(`{"execution_id":"run-1","approval_request_id":"x",`+
		`"approval_id":"apr_1","round":1,"decision":"approved"}`)); status != 401 {
		t.Errorf("an unsigned callback was answered %d", status)
	}
	p.decide("x", "approved", "", nil)
	p.ended("run-1")
	again := asked
	again.Status, again.Response = "approved", map[string]any{"feedback": "", "data": nil}
	if answer := p.push(again); answer["resolved"] != true {
		t.Errorf("the repeated callback was answered %v", answer)
	}
}

func TestWhereTheAgentMayNotBeCalledItPulls(t *testing.T) {
	p := newPlane(t)
	p.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/executions/run-1/request-approval" {
			return false
		}
		told := members(r)
		if told["callback_url"] != nil {
			refuse(w, 422, "callback_url_refused", nil)
			return true
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ask(w, told, p.executions["run-1"])
		p.change()
		return true
	}
	a := made(t, p, agent.Auto)
	asking(p, a)
	serve(t, p, a)
	p.start("run-1", "asks", `{"ID":"x"}`)
	p.decide("x", "approved", "", nil)
	if run := p.ended("run-1"); run.Status != "succeeded" {
		t.Errorf("the run is %s: %s", run.Status, run.Error)
	}
}

func TestATimeoutReturnsWhatTheServerSaysStands(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	agent.Handle(a, "gives_up", func(ctx context.Context, _ struct{}) (client.Decision, error) {
		result, err := a.Pause(ctx, agent.Question{
			ApprovalRequestID: "x", Timeout: 30 * time.Millisecond, OnExpiry: "resume",
		})
		return result.Decision, err
	})
	serve(t, p, a)
	p.start("run-1", "gives_up", "{}")
	if run := p.ended("run-1"); string(run.Result) != `"expired"` {
		t.Errorf("%s with %s: %s", run.Status, run.Result, run.Error)
	}
}

func TestARoundThatTheCallerGaveUpIsAskedAgainAndOneThatWasAnsweredIsNot(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Pull)
	gaveUp := make(chan struct{})
	agent.Handle(a, "tries", func(ctx context.Context, _ struct{}) ([]int, error) {
		short, cancel := context.WithCancel(ctx)
		stop := make(chan struct{})
		go func() {
			defer close(stop)
			p.pending("x")
			cancel()
		}()
		if _, err := a.Pause(short, agent.Question{ApprovalRequestID: "x"}); !errors.Is(err, context.Canceled) {
			t.Errorf("the pause that was given up returned %v", err)
		}
		<-stop
		close(gaveUp)
		rounds := []int{}
		for range 2 {
			result, err := a.Pause(ctx, agent.Question{ApprovalRequestID: "x"})
			if err != nil {
				return nil, err
			}
			rounds = append(rounds, result.Round)
		}
		return rounds, nil
	})
	serve(t, p, a)
	p.start("run-1", "tries", "{}")
	within(t, "the first try", gaveUp)
	p.decide("x", "request_changes", "again", nil)
	p.decide("x", "approved", "", nil)
	if run := p.ended("run-1"); string(run.Result) != "[1,2]" {
		t.Errorf("%s with %s: %s", run.Status, run.Result, run.Error)
	}
}

func TestValuesThatDoNotFitAreNotHandedOver(t *testing.T) {
	p := newPlane(t)
	a := made(t, p, agent.Auto)
	agent.Handle(a, "asks", func(ctx context.Context, _ struct{}) (string, error) {
		result, err := a.Ask(ctx, "Where to?", agent.AskOptions{Options: []string{"Basel", "Bern"}, ApprovalRequestID: "x"})
		if errors.Is(err, client.ErrValuesInvalid) && !result.Approved() {
			return "refused", nil
		}
		return string(result.Values), err
	})
	serve(t, p, a)
	for id, given := range map[string]any{"run-1": "Chur", "run-2": "Bern", "run-3": nil} {
		p.start(id, "asks", "{}")
		p.pending("x")
		p.decide("x", "approved", "", map[string]any{"values": given})
		want := map[string]string{"run-1": `"refused"`, "run-2": `"\"Bern\""`, "run-3": `"refused"`}[id]
		if run := p.ended(id); string(run.Result) != want {
			t.Errorf("%v: %s with %s: %s", given, run.Status, run.Result, run.Error)
		}
	}
}

func TestWaitingForResumeFindsAQuestionOfAProcessThatIsGone(t *testing.T) {
	p := newPlane(t)
	first := made(t, p, agent.Auto)
	asking(p, first)
	stop := serve(t, p, first)
	p.start("run-1", "asks", `{"ID":"x"}`)
	p.pending("x")
	stop()
	second := made(t, p, agent.Auto)
	serve(t, p, second)
	found := make(chan client.ApprovalResult, 1)
	go func() {
		result, err := second.WaitForResume(context.Background(), "x", nil)
		if err != nil {
			t.Error(err)
		}
		found <- result
	}()
	p.moved()
	p.decide("x", "approved", "found", nil)
	if result := <-found; !result.Approved() || result.Feedback != "found" {
		t.Errorf("found %+v", result)
	}
	_, err := second.WaitForResume(context.Background(), "nobody", nil)
	if !errors.Is(err, client.ErrNotFound) {
		t.Errorf("a question that nobody asked: %v", err)
	}
}
