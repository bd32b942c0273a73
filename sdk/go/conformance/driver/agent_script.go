package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/holdshort/holdshort/sdk/go/agent"
	"github.com/holdshort/holdshort/sdk/go/client"
)

// performer is the one reasoner of the driver's agent, which performs what its input says; it remembers which steps were
// done in this process.
type performer struct {
	agent *agent.Agent
	does  map[string]func(ctx context.Context, given json.RawMessage) (any, error)

	mu      sync.Mutex
	journal []string
	failed  map[string]bool
}

type script struct {
	Script []args `json:"script"`
}

var errFirst = errors.New("the first time")

func newPerformer(served *agent.Agent) *performer {
	p := &performer{agent: served, journal: []string{}, failed: map[string]bool{}}
	p.does = map[string]func(ctx context.Context, given json.RawMessage) (any, error){
		"pause": p.pause, "step": p.step, "fail_once_step": p.failOnceStep, "ask": p.ask,
		"human_feedback": p.humanFeedback, "note": p.note, "together": p.together, "fail": fail,
	}
	agent.Handle(served, "perform", func(ctx context.Context, given script) ([]any, error) {
		results := []any{}
		for _, asked := range given.Script {
			result, err := p.do(ctx, asked)
			if err != nil {
				return nil, err
			}
			results = append(results, result)
		}
		return results, nil
	})
	return p
}

func (p *performer) ops() map[string]op {
	return map[string]op{"journal": p.tellJournal, "wait_for_resume": p.waitForResume}
}

func (p *performer) do(ctx context.Context, asked args) (any, error) {
	var caught bool
	_ = read(asked, "catch", &caught)
	for name, given := range asked {
		if name == "catch" {
			continue
		}
		do, known := p.does[name]
		if !known {
			return nil, fmt.Errorf("there is no op %s", name)
		}
		result, err := do(ctx, given)
		if err != nil && caught && errors.Is(err, client.ErrHoldshort) {
			refused := told(ctx, err)
			delete(refused, "status")
			return map[string]any{"error": refused}, nil
		}
		return result, err
	}
	return nil, errors.New("the op has no name")
}

func (p *performer) pause(ctx context.Context, raw json.RawMessage) (any, error) {
	given, question, err := questionOf(raw)
	if err != nil {
		return nil, err
	}
	question.Payload = payloadOf(given)
	return result(p.agent.Pause(ctx, question))
}

// questionOf is a question whose members are named as on the wire.
func questionOf(raw json.RawMessage) (args, agent.Question, error) {
	var given args
	var asked client.RequestApprovalRequest
	if err := errors.Join(json.Unmarshal(raw, &given), json.Unmarshal(raw, &asked)); err != nil {
		return nil, agent.Question{}, err
	}
	return given, agent.Question{
		ApprovalRequestID: asked.ApprovalRequestID, ApprovalRequestURL: asked.ApprovalRequestURL, Title: asked.Title,
		Description: asked.Description, ExpiresInHours: asked.ExpiresInHours, OnExpiry: asked.OnExpiry,
		DecidedBy: asked.DecidedBy, Form: asked.Form, Timeout: seconds(given, "timeout_seconds"),
		ExecutionID: text(given, "execution_id"),
	}, nil
}

func result(found client.ApprovalResult, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return found, nil
}

func (p *performer) ask(ctx context.Context, raw json.RawMessage) (any, error) {
	given, asked, err := questionOf(raw)
	if err != nil {
		return nil, err
	}
	options := agent.AskOptions{
		Kind: text(given, "kind"), YesLabel: text(given, "yes_label"), NoLabel: text(given, "no_label"),
		Description: asked.Description, ApprovalRequestID: asked.ApprovalRequestID, Timeout: asked.Timeout,
		ExpiresInHours: asked.ExpiresInHours, OnExpiry: asked.OnExpiry, ExecutionID: asked.ExecutionID,
	}
	if err := errors.Join(read(given, "options", &options.Options), read(given, "schema", &options.Schema)); err != nil {
		return nil, err
	}
	return result(p.agent.Ask(ctx, text(given, "question"), options))
}

func (p *performer) step(ctx context.Context, raw json.RawMessage) (any, error) {
	var given args
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	if branch := text(given, "branch"); branch != "" {
		ctx = agent.Branch(ctx, branch)
	}
	name := text(given, "name")
	return agent.Step(ctx, name, func(context.Context) (json.RawMessage, error) { return p.done(name, given), nil })
}

func (p *performer) done(name string, given args) json.RawMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.journal = append(p.journal, name)
	if value, there := given["result"]; there {
		return value
	}
	return json.RawMessage("null")
}

func (p *performer) failOnceStep(ctx context.Context, raw json.RawMessage) (any, error) {
	var given args
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	name := text(given, "name")
	value, err := agent.Step(ctx, name, func(context.Context) (json.RawMessage, error) {
		if p.first(name) {
			return nil, errFirst
		}
		return p.done(name, given), nil
	})
	if errors.Is(err, errFirst) {
		return map[string]any{"error": "Error"}, nil
	}
	return value, err
}

func (p *performer) first(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.failed[name]
	p.failed[name] = true
	return !before
}

func (p *performer) humanFeedback(ctx context.Context, raw json.RawMessage) (any, error) {
	var given args
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	return answered(p.agent.HumanFeedback(ctx, text(given, "message"), feedbackOf(given)))
}

func (p *performer) note(ctx context.Context, raw json.RawMessage) (any, error) {
	var given args
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	p.agent.Note(ctx, text(given, "message"))
	return nil, nil
}

// together does what is listed at once, each in a branch that its index names.
func (p *performer) together(ctx context.Context, raw json.RawMessage) (any, error) {
	var asked []args
	if err := json.Unmarshal(raw, &asked); err != nil {
		return nil, err
	}
	results := make([]any, len(asked))
	failures := make([]error, len(asked))
	var working sync.WaitGroup
	for index, each := range asked {
		working.Add(1)
		go func() {
			defer working.Done()
			results[index], failures[index] = p.do(agent.Branch(ctx, strconv.Itoa(index)), each)
		}()
	}
	working.Wait()
	for _, failure := range failures {
		if failure != nil {
			return nil, failure
		}
	}
	return results, nil
}

func fail(_ context.Context, raw json.RawMessage) (any, error) {
	var given args
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, err
	}
	return nil, errors.New(text(given, "message"))
}

func (p *performer) tellJournal(context.Context, args) (any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.journal...), nil
}

func (p *performer) waitForResume(ctx context.Context, given args) (any, error) {
	return result(p.agent.WaitForResume(ctx, text(given, "approval_request_id"), &agent.ResumeOptions{
		ExecutionID: text(given, "execution_id"), Timeout: seconds(given, "timeout_seconds"),
	}))
}
