package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/holdshort/holdshort/sdk/go/client"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/answers"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/runs"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/wire"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

// calls are the runs that callers wait for, by execution id; who calls under the id of one that goes on joins it.
type calls struct {
	agent *Agent
	mu    sync.Mutex
	named map[string]*call
}

type call struct {
	reasoner string
	done     chan struct{}
	answer   answers.Answer
}

func (c *calls) init(agent *Agent) { c.agent, c.named = agent, map[string]*call{} }

// take runs a reasoner to its end. A caller that goes away does not end the run: gone is closed when it does.
func (c *calls) take(name string, input json.RawMessage, executionID string, gone <-chan struct{}) answers.Answer {
	made, refused := c.join(name, input, executionID)
	if refused != nil {
		return *refused
	}
	select {
	case <-made.done:
		return made.answer
	case <-gone:
		return answers.Stopping(nil, nil)
	}
}

func (c *calls) join(name string, input json.RawMessage, executionID string) (*call, *answers.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.agent.registry.Draining() {
		return nil, one(answers.Stopping(nil, nil))
	}
	known, there := c.agent.reasoner(name)
	if !there {
		return nil, one(noReasoner(name))
	}
	if going := c.named[executionID]; going != nil {
		if going.reasoner != name {
			told := fmt.Sprintf("execution %s is running %q", executionID, going.reasoner)
			return nil, one(answers.Problem(http.StatusConflict, "execution_exists", told, nil))
		}
		return going, nil
	}
	code, wrong := known.take(input)
	if wrong != nil {
		return nil, one(answers.Invalid(wrong.field, wrong.rule))
	}
	made := &call{reasoner: name, done: make(chan struct{})}
	if executionID != "" {
		c.named[executionID] = made
	}
	c.agent.crew.begin()
	c.agent.session.enter()
	go c.run(made, known, code, input, executionID)
	return made, nil
}

func (c *calls) run(made *call, known *reasoner, code runs.Code, input json.RawMessage, executionID string) {
	defer c.agent.crew.done()
	defer c.agent.session.leave()
	made.answer = c.ended(known, code, input, executionID)
	c.mu.Lock()
	if executionID != "" {
		delete(c.named, executionID)
	}
	c.mu.Unlock()
	close(made.done)
}

func (c *calls) ended(known *reasoner, code runs.Code, input json.RawMessage, executionID string) answers.Answer {
	life := c.agent.lifeNow()
	run, err := c.agent.start(life, life, executionID, known.name, input)
	if err != nil {
		if life.Err() != nil {
			return answers.Stopping(nil, nil)
		}
		return notStarted(err)
	}
	c.agent.crew.add(run)
	defer c.agent.crew.remove(run)
	return answerOf(run, run.Do(life, known.timeout, code))
}

// answerOf is what a caller is told of a run that has ended.
func answerOf(run *runs.Run, outcome runs.Outcome) answers.Answer {
	named := map[string]any{"execution_id": run.ExecutionID}
	if outcome.Err == nil {
		return ended(run.ExecutionID, outcome.Status, outcome.Result)
	}
	var end *client.Error
	isEnd := errors.Is(outcome.Err, client.ErrRunEnded) && errors.As(outcome.Err, &end)
	if !outcome.Told || (isEnd && errors.Is(end, client.ErrHandedBack)) {
		return answers.Stopping(end, named)
	}
	named["execution_status"] = outcome.Status
	if run.OutOfTime() {
		return answers.Problem(http.StatusInternalServerError, "execution_timeout", outcome.Err.Error(), named)
	}
	if isEnd {
		return answers.Problem(http.StatusConflict, end.Code, end.Message, named)
	}
	return answers.Problem(http.StatusInternalServerError, "run_failed", outcome.Err.Error(), named)
}

func ended(executionID, status string, result json.RawMessage) answers.Answer {
	if result == nil {
		result = json.RawMessage("null")
	}
	body := map[string]any{"execution_id": executionID, "status": status, "result": result}
	return answers.Answer{Status: http.StatusOK, Body: body}
}

// notStarted is for a run that did not start: it is over already, or the control plane would not have it.
func notStarted(err error) answers.Answer {
	var refused *client.Error
	if !errors.As(err, &refused) {
		return answers.Problem(http.StatusInternalServerError, "internal_error", "the run could not be started", nil)
	}
	if standing, over := refused.Details["execution"].(wire.Execution); over {
		return asItEnded(standing)
	}
	status := refused.Status
	// The key that was refused is this agent's own, not its caller's.
	if status == 0 || errors.Is(refused, client.ErrKeyRefused) || errors.Is(refused, client.ErrWrongScope) {
		status = http.StatusServiceUnavailable
	}
	return answers.Problem(status, refused.Code, refused.Message, refused.Details)
}

func asItEnded(standing wire.Execution) answers.Answer {
	known := map[string]any{"execution_id": standing.ExecutionID, "execution_status": standing.Status}
	switch standing.Status {
	case "succeeded":
		return ended(standing.ExecutionID, standing.Status, standing.Result)
	case "cancelled":
		if standing.Result != nil {
			known["result"] = standing.Result
		}
		told := "cancelled: " + standing.StatusReason
		return answers.Problem(http.StatusConflict, errs.ErrExecutionCancelled.Code(), told, known)
	case "timeout":
		return answers.Problem(http.StatusInternalServerError, "execution_timeout", whyOf(standing), known)
	}
	return answers.Problem(http.StatusInternalServerError, "run_failed", whyOf(standing), known)
}

func whyOf(standing wire.Execution) string {
	var told string
	if json.Unmarshal(standing.Error, &told) == nil && told != "" {
		return told
	}
	return standing.Status
}

func noReasoner(name string) answers.Answer {
	told := fmt.Sprintf("there is no reasoner %q here", name)
	return answers.Problem(http.StatusNotFound, "reasoner_not_found", told, nil)
}

func one(answer answers.Answer) *answers.Answer { return &answer }
