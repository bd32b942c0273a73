package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/core"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

const (
	// firstHold is short, so that it is soon known that the run was made; from then on no outage is too long.
	firstHold  = time.Second
	longestKey = 255
)

// ExecuteOptions say how a reasoner is called.
type ExecuteOptions struct {
	// Wait is how long Execute waits for the end; 0 for as long as its context. ExecuteAsync does not use it.
	Wait time.Duration
	// IdempotencyKey joins the run that was started under it before: at most 255 printable ASCII characters. A new one
	// when empty; the tries of one call always share theirs.
	IdempotencyKey string
}

// Queued is a run that an agent is being found for.
type Queued struct {
	ExecutionID string    `json:"execution_id"`
	Status      string    `json:"status"`
	RunID       string    `json:"run_id"`
	Target      string    `json:"target"`
	CreatedAt   time.Time `json:"created_at"`
}

// UnmarshalJSON refuses what names no execution.
func (q *Queued) UnmarshalJSON(raw []byte) error {
	type plain Queued
	if err := json.Unmarshal(raw, (*plain)(q)); err != nil {
		return err
	}
	return needed(1, "execution_id", q.ExecutionID, "status", q.Status)
}

// ExecuteAsync lets a node run a reasoner and does not wait for it. input is an object with the function's arguments,
// anything that JSON can hold; options may be nil.
//
// Errors: ErrNotFound when no such node registered, or it has no such reasoner, Details["registered"] lists what
// there is; ErrIdempotencyConflict when the key stands for another call; ErrUnavailable when too many runs wait for
// this node.
func (c *Client) ExecuteAsync(
	ctx context.Context, nodeID, reasoner string, input any, options *ExecuteOptions,
) (*Queued, error) {
	call, err := executeCall(core.APIPath("execute", "async", nodeID+"."+reasoner), input, keyOf(options))
	if err != nil {
		return nil, err
	}
	return answered[Queued](ctx, c, call)
}

// Execute lets a node run a reasoner and waits for its end, through restarts of the control plane and of the agent.
// input and errors are as with ExecuteAsync; options may be nil.
//
// It returns the run, over (Final) or, when options.Wait is up, as it stands; it goes on then, and can be waited for
// again under the same key. A run that failed is no error of Execute: look at its Status.
func (c *Client) Execute(
	ctx context.Context, nodeID, reasoner string, input any, options *ExecuteOptions,
) (*Execution, error) {
	call, err := executeCall(core.APIPath("execute", nodeID+"."+reasoner), input, keyOf(options))
	if err != nil {
		return nil, err
	}
	made := calling{client: c, call: call, hold: firstHold, patience: core.Patience}
	if options != nil && options.Wait > 0 {
		made.until = time.Now().Add(options.Wait)
	}
	for {
		stands, err := made.held(ctx)
		if err != nil {
			return nil, err
		}
		if isOver(stands.Status) || made.timeIsUp() {
			return c.GetExecution(ctx, stands.ExecutionID)
		}
	}
}

// calling is one call of a reasoner: held calls under one key.
type calling struct {
	client   *Client
	call     core.Call
	hold     time.Duration
	patience time.Duration
	until    time.Time // the zero time: as long as the context
}

// held waits for the end of the run in one call, and pauses when that came back too soon.
func (c *calling) held(ctx context.Context) (*Queued, error) {
	asked := time.Now()
	c.call.Hold = min(c.hold, c.left())
	c.call.Query = query("wait", inSeconds(c.call.Hold))
	stands, err := waited[Queued](ctx, c.client, c.call, c.patience)
	if err != nil || isOver(stands.Status) {
		return stands, err
	}
	c.hold, c.patience = heldFor, core.Endless
	if !c.until.IsZero() {
		c.patience = max(core.Patience, c.left())
	}
	return stands, core.Sleep(ctx, min(pace-time.Since(asked), c.left()))
}

func (c *calling) left() time.Duration {
	if c.until.IsZero() {
		return heldFor
	}
	return max(0, time.Until(c.until))
}

func (c *calling) timeIsUp() bool { return !c.until.IsZero() && c.left() == 0 }

func keyOf(options *ExecuteOptions) string {
	if options != nil && options.IdempotencyKey != "" {
		return options.IdempotencyKey
	}
	return "call_" + random(16)
}

func executeCall(path string, input any, key string) (core.Call, error) {
	for _, character := range key {
		if character < ' ' || character > '~' || len(key) > longestKey {
			return core.Call{}, errs.Invalid("idempotency_key", "must be at most 255 printable ASCII characters")
		}
	}
	given, err := optional("input", input)
	if err != nil {
		return core.Call{}, err
	}
	members := struct {
		Input json.RawMessage `json:"input,omitempty"`
	}{given}
	call, err := post(path, members)
	call.Header = http.Header{"Idempotency-Key": {key}}
	return call, err
}

// random is so many random bytes in hex. crypto/rand does not fail on the systems that Go runs on.
func random(bytes int) string {
	drawn := make([]byte, bytes)
	if _, err := rand.Read(drawn); err != nil {
		panic("holdshort: no randomness: " + err.Error())
	}
	return hex.EncodeToString(drawn)
}
