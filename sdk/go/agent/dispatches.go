package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/holdshort/holdshort/sdk/go/client"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/answers"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/nodes"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/runs"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

const (
	timedOut   = "execution_timeout"
	endsWithin = time.Second
	remembered = 10_000
)

// dispatches are the runs that the control plane gave to this process, by execution id: taken at once, run in the
// background, each under its fence.
type dispatches struct {
	agent *Agent

	mu         sync.Mutex
	instanceID string
	going      map[string]*runs.Run
	// A dispatch whose answer was lost comes again, perhaps when its run is over.
	taken map[string]int64
	order []string
}

func (d *dispatches) init(agent *Agent) {
	d.agent, d.going, d.taken = agent, map[string]*runs.Run{}, map[string]int64{}
}

// begin says which instance this process is registered as.
func (d *dispatches) begin(instanceID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.instanceID = instanceID
}

func (d *dispatches) running(executionID string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.going[executionID] != nil
}

// take begins a run, or lets the one in progress go on under the new fence; it is answered before it has ended.
func (d *dispatches) take(name string, input json.RawMessage, order *answers.Order) answers.Answer {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.agent.registry.Draining() {
		return answers.Stopping(nil, nil)
	}
	if order.InstanceID != "" && order.InstanceID != d.instanceID {
		return answers.NotMeant()
	}
	accepted := answers.Answer{
		Status: http.StatusAccepted, Body: map[string]any{"status": "processing", "execution_id": order.ExecutionID},
	}
	if fence, before := d.taken[order.ExecutionID]; before && order.Fence <= fence {
		return accepted
	}
	before := d.going[order.ExecutionID]
	if before == nil || !before.Refence(order.Fence) {
		known, there := d.agent.reasoner(name)
		if !there {
			return noReasoner(name)
		}
		code, wrong := known.take(input)
		if wrong != nil {
			return answers.Invalid(wrong.field, wrong.rule)
		}
		d.start(known, code, order, before)
	}
	d.remember(order)
	return accepted
}

func (d *dispatches) start(known *reasoner, code runs.Code, order *answers.Order, before *runs.Run) {
	a := d.agent
	run := runs.New(runs.Options{
		Owner: a, Life: a.lifeNow(), Sender: a.sender, ExecutionID: order.ExecutionID, Reasoner: known.name,
		Status: "running", Fence: &order.Fence, StoredSteps: order.StoredSteps, Confirmed: a.confirmed, Log: a.log,
	})
	limit := known.timeout
	if order.TimeLeft != nil {
		limit = order.TimeLeft
	}
	d.going[order.ExecutionID] = run
	a.crew.begin()
	a.crew.add(run)
	a.session.enter()
	go d.run(run, known, code, limit, before)
}

func (d *dispatches) run(run *runs.Run, known *reasoner, code runs.Code, limit *time.Duration, before *runs.Run) {
	defer d.agent.crew.done()
	defer d.agent.session.leave()
	defer d.agent.crew.remove(run)
	defer d.left(run)
	if before != nil {
		// Taken over, and given back to this very process: its code is let end before it begins anew.
		timer := time.NewTimer(endsWithin)
		select {
		case <-before.Ended():
		case <-timer.C:
		}
		timer.Stop()
	}
	outcome := run.Do(run.Life, limit, code)
	d.say(run, known, outcome)
	if !outcome.Told || errors.Is(outcome.Err, client.ErrHandedBack) {
		// Where its end was told after all, there is nothing to take.
		if node := d.agent.nodeNow(); node != nil {
			node.HandBack(nodes.Run{ExecutionID: run.ExecutionID, Fence: *run.Fence()})
		}
	}
}

// say logs how a run ended that nobody waits for.
func (d *dispatches) say(run *runs.Run, known *reasoner, outcome runs.Outcome) {
	switch {
	case outcome.Err == nil || errors.Is(outcome.Err, client.ErrHandedBack):
	case errors.Is(outcome.Err, client.ErrStaleInstance):
		run.Log.Warn("the run ended here", "reasoner", known.name, "why", outcome.Err)
	case errors.Is(outcome.Err, client.ErrRunEnded):
		run.Log.Info("the run ended", "reasoner", known.name, "why", outcome.Err)
	default:
		run.Log.Warn("the run failed", "reasoner", known.name, "error", outcome.Err)
	}
}

func (d *dispatches) left(run *runs.Run) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.going[run.ExecutionID] == run {
		delete(d.going, run.ExecutionID)
	}
}

func (d *dispatches) remember(order *answers.Order) {
	if _, known := d.taken[order.ExecutionID]; !known {
		d.order = append(d.order, order.ExecutionID)
	}
	d.taken[order.ExecutionID] = order.Fence
	for len(d.order) > max(remembered, 2*len(d.going)) {
		delete(d.taken, d.order[0])
		d.order = d.order[1:]
	}
}

// cancel ends a run that is over for the control plane. fence is of the dispatch that is over; reason execution_timeout
// ends it as its own time limit does, anything else as cancelled.
func (d *dispatches) cancel(executionID string, fence int64, reason string) answers.Answer {
	d.mu.Lock()
	run := d.going[executionID]
	d.mu.Unlock()
	if run == nil {
		told := fmt.Sprintf("execution %s is not running here", executionID)
		return answers.Problem(http.StatusNotFound, "execution_not_found", told, nil)
	}
	if stands := run.Fence(); stands != nil && fence < *stands {
		more := map[string]any{"fence": *stands}
		return answers.Problem(http.StatusConflict, errs.ErrStaleInstance.Code(), "the run was dispatched again since", more)
	}
	if reason == timedOut {
		run.RunOutOfTime()
	} else {
		run.Interrupt(cancelled(executionID, reason))
	}
	return answers.Answer{
		Status: http.StatusAccepted, Body: map[string]any{"status": "cancelling", "execution_id": executionID},
	}
}

// letGo ends what waits: the control plane took this process for gone, and gives it to whom it likes when decided.
func (d *dispatches) letGo() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, run := range d.going {
		if run.Waits() {
			run.Interrupt(errs.ErrHandedBack.New("this process counted as gone; the run goes on when decided"))
		}
	}
}

// confirmed returns once this process surely holds its runs.
func (a *Agent) confirmed(ctx context.Context) error {
	if node := a.nodeNow(); node != nil {
		return node.Confirmed(ctx)
	}
	return nil
}
