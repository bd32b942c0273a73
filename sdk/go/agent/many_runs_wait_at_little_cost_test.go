package agent_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/holdshort/holdshort/sdk/go/agent"
)

func TestManyPausesWaitByFewCalls(t *testing.T) {
	const many = 200
	p := newPlane(t)
	a := made(t, p, agent.Pull)
	asking(p, a)
	serve(t, p, a)
	for i := range many {
		p.start(fmt.Sprint("run-", i), "asks", fmt.Sprintf(`{"ID":"x%d"}`, i))
	}
	for i := range many {
		p.decide(fmt.Sprint("x", i), "approved", "", nil)
	}
	for i := range many {
		if run := p.ended(fmt.Sprint("run-", i)); run.Status != "succeeded" {
			t.Errorf("run %d is %s", i, run.Status)
		}
	}
	waits := 0
	for _, call := range p.called() {
		if call == "POST /api/v1/approvals/wait" {
			waits++
		}
	}
	if waits > many/2 {
		t.Errorf("%d pauses took %d calls", many, waits)
	}
}

func TestACrowdOfCallsMakesNoSignOfLifeLate(t *testing.T) {
	const crowd = 80
	p := newPlane(t)
	letIn := make(chan struct{})
	held := 0
	p.intercept = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/request-approval") {
			p.mu.Lock()
			held++
			p.change()
			p.mu.Unlock()
			<-letIn
		}
		return false
	}
	a := made(t, p, agent.Pull)
	asking(p, a)
	serve(t, p, a)
	for i := range crowd {
		p.start(fmt.Sprint("run-", i), "asks", fmt.Sprintf(`{"ID":"x%d"}`, i))
	}
	beats := func() (count int) {
		for _, call := range p.calls {
			if strings.HasSuffix(call, "/heartbeat") {
				count++
			}
		}
		return count
	}
	before := 0
	p.until("the crowd", func() bool {
		before = beats()
		return held >= 32
	})
	p.until("signs of life beside it", func() bool { return beats() > before+1 })
	close(letIn)
	for i := range crowd {
		p.decide(fmt.Sprint("x", i), "approved", "", nil)
	}
	for i := range crowd {
		p.ended(fmt.Sprint("run-", i))
	}
}
