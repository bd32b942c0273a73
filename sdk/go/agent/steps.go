package agent

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdshort/holdshort/sdk/go/internal/agent/runs"
	"github.com/holdshort/holdshort/sdk/go/internal/core"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

// Step does something once: its result is stored before it is returned, and a run that is started again gets what was
// stored. A run that dies while fn works does it again, so fn should bear being done twice.
//
// A step is known by its branch, its name (1-200 characters, no control characters) and its how-many-eth of that name in
// that branch, counted when Step is called. So steps may be added and taken away while runs are open. Two of one name at
// once in one branch are refused: put what tells them apart into the name, or use Branch. A Step inside fn, called with
// fn's context, is part of it and stored with it alone.
//
// What fn returns becomes JSON, at most 1 MiB, and is read back into T, the first time as every other. An error of fn is
// not stored: it comes out here, and Step called again is the same step, tried again. After a rejection or an expiry
// ended the run, a result is returned but not stored.
//
// Errors: what fn returned; client.ErrNoExecution outside a run; client.ErrStepsSideBySide; client.ErrInvalidField for
// the name; client.ErrStepTooLarge; the end of the run (client.ErrRunEnded).
func Step[T any](ctx context.Context, name string, fn func(ctx context.Context) (T, error)) (T, error) {
	place, there := runs.At(ctx)
	var result T
	if !there {
		return result, errs.ErrNoExecution.New("")
	}
	if place.InStep {
		return fn(ctx)
	}
	raw, err := place.Run.Step(ctx, place.Branch, name, func(ctx context.Context) (json.RawMessage, error) {
		done, err := fn(ctx)
		if err != nil {
			return nil, err
		}
		return stored(name, done)
	})
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return result, fmt.Errorf("the stored result of step %q is not what its type says: %w", name, err)
	}
	return result, nil
}

// stored is the JSON of a step's result, which its type must be able to read again.
func stored[T any](name string, done T) (json.RawMessage, error) {
	raw, err := core.JSON("the result of step "+name, done)
	if err != nil {
		return nil, err
	}
	var again T
	if err := json.Unmarshal(raw, &again); err != nil {
		return nil, fmt.Errorf("the result of step %q cannot be read again, so nothing was stored: %w", name, err)
	}
	return raw, nil
}

// Branch is a context in which a part of a run goes on beside others, with steps of its own: pauses without an id and
// steps are counted for each branch, so that branches find theirs again in whatever order they get along. Branches may
// have branches; their names are joined with "/", and the same name again goes on in the same branch.
//
// Outside a run the context is returned as it is.
func Branch(ctx context.Context, name string) context.Context {
	place, there := runs.At(ctx)
	if !there {
		return ctx
	}
	if place.Branch != "" {
		name = place.Branch + "/" + name
	}
	place.Branch = name
	return runs.With(ctx, place)
}
