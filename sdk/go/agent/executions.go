package agent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/agent/runs"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/wire"
	"github.com/holdshort/holdshort/sdk/go/internal/core"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

const (
	startWithin = 30 * time.Second
	// lastReport is how long a run that a program started itself may take to say how it ended, once its context is over.
	lastReport = 10 * time.Second
)

// Execution is a run that the program starts itself: fn gets a context that belongs to it, and what it returns is kept
// with the run as its result. An error, and a panic, end it as failed. When ctx ends and fn fails, that is no end: the run
// stays as it is, to be continued.
//
// executionID is 1-128 of A-Z a-z 0-9 . _ ~ : -, and continues the run that has it; a new one when empty. input is
// anything that JSON can hold, kept with the run; nil for none.
//
// Errors: what fn returned; client.ErrExecutionFinished when the run under this id is over; client.ErrExecutionExists when
// another node owns it; client.ErrConnectionFailed when the control plane was not reached in 30 s; the end of the run.
func (a *Agent) Execution(
	ctx context.Context, executionID string, input any, fn func(ctx context.Context) (any, error),
) error {
	var given json.RawMessage
	if input != nil {
		var err error
		if given, err = core.JSON("input", input); err != nil {
			return err
		}
	}
	a.session.enter()
	defer a.session.leave()
	life, endLife := lifeOf(ctx)
	defer endLife()
	run, err := a.start(ctx, life, executionID, "", given)
	if err != nil {
		return err
	}
	return run.Do(ctx, nil, func(ctx context.Context) (json.RawMessage, error) {
		out, err := fn(ctx)
		if err != nil {
			return nil, err
		}
		return resultOf(out)
	}).Err
}

// lifeOf goes on for some seconds after ctx, so that a run which has just ended can say so.
func lifeOf(ctx context.Context) (life context.Context, end func()) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		_ = core.Sleep(life, lastReport)
		cancel()
	})
	return life, func() { stop(); cancel() }
}

// start begins an execution, or finds it, and makes a run of it.
func (a *Agent) start(
	ctx, life context.Context, executionID, reasoner string, input json.RawMessage,
) (*runs.Run, error) {
	var known *int64
	if executionID == "" {
		executionID, known = newID(), new(int64)
	}
	var standing wire.Execution
	call := wire.CreateExecution(a.config.NodeID, executionID, reasoner, input)
	if err := a.sender.Send(ctx, call, startWithin, &standing); err != nil {
		return nil, err
	}
	if standing.Final() && !standing.EndedByApproval() {
		over := errs.ErrExecutionFinished.New("execution " + executionID + " is " + standing.Status +
			" already; start a new one")
		over.Details = map[string]any{"execution_status": standing.Status, "execution": standing}
		return nil, over
	}
	named := reasoner
	if named == "" {
		named = a.config.NodeID
	}
	return runs.New(runs.Options{
		Owner: a, Life: life, Sender: a.sender, ExecutionID: executionID, Reasoner: named, Status: standing.Status,
		StoredSteps: known, Log: a.log,
	}), nil
}

func newID() string {
	raw := make([]byte, 16)
	if _, err := rand.Read(raw); err != nil {
		// Two runs under one id would be one.
		panic("holdshort: the system has no randomness: " + err.Error())
	}
	return "exec_" + hex.EncodeToString(raw)
}
