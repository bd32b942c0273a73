package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/agent/nodes"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/runs"
	"github.com/holdshort/holdshort/sdk/go/internal/core"
)

// reasoner is a registered function.
type reasoner struct {
	name    string
	timeout *time.Duration
	resume  string
	// take reads the input; what is returned does the work.
	take func(input json.RawMessage) (runs.Code, *misfit)
}

// misfit is an input that does not fit: which field breaks which rule.
type misfit struct{ field, rule string }

// Option says more of a reasoner.
type Option func(*reasoner)

// Timeout limits how long a run of the reasoner may work; waiting for people does not count. Afterwards its context ends,
// with a cause that is a context.DeadlineExceeded, and 5 s later the run is reported as timeout whatever its code does.
func Timeout(limit time.Duration) Option {
	return func(r *reasoner) { r.timeout = &limit }
}

// ResumeAtStart starts a run whose process is gone again at once. Without it, one that waits goes on when it is decided.
func ResumeAtStart() Option {
	return func(r *reasoner) { r.resume = "at_start" }
}

// Handle registers a function that can be called by its name.
//
// The input is read from JSON into In: what does not fit, and a member that In does not have, is refused to the caller
// and never reaches the function. What it returns becomes JSON and is kept with the run; an error ends the run as failed.
// So does a panic, which never ends the process; one in a goroutine that the function starts itself does.
//
// A function whose process died is called again from its beginning: put what must be done once into Step. Its context
// ends with the run; context.Cause says why.
//
// name is 1-128 of A-Z a-z 0-9 . _ ~ : -. Handle panics when it is none or is taken, and when a Timeout is not above 0.
func Handle[In, Out any](a *Agent, name string, fn func(ctx context.Context, input In) (Out, error), options ...Option) {
	known := &reasoner{name: name, resume: "when_decided"}
	known.take = func(input json.RawMessage) (runs.Code, *misfit) {
		var given In
		if wrong := read(input, &given); wrong != nil {
			return nil, wrong
		}
		return func(ctx context.Context) (json.RawMessage, error) {
			out, err := fn(ctx, given)
			if err != nil {
				return nil, err
			}
			return resultOf(out)
		}, nil
	}
	for _, option := range options {
		option(known)
	}
	if known.timeout != nil && *known.timeout <= 0 {
		panic(fmt.Sprintf("holdshort: the Timeout of %q must be above 0", name))
	}
	a.register(known)
}

func resultOf(out any) (json.RawMessage, error) {
	return core.JSON("result", out)
}

func (a *Agent) register(known *reasoner) {
	a.mu.Lock()
	if _, taken := a.reasoners[known.name]; taken || !nameRule.MatchString(known.name) {
		a.mu.Unlock()
		panic(fmt.Sprintf("holdshort: the name of a reasoner is none or taken: %q", known.name))
	}
	a.reasoners[known.name] = known
	a.names = append(a.names, known.name)
	node := a.node
	a.mu.Unlock()
	if node != nil {
		node.LookAgain()
	}
}

func (a *Agent) reasoner(name string) (*reasoner, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, there := a.reasoners[name]
	return known, there
}

// described are the reasoners as they are registered, in the order of their Handle.
func (a *Agent) described() []nodes.Reasoner {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := make([]nodes.Reasoner, 0, len(a.names))
	for _, name := range a.names {
		known := a.reasoners[name]
		told := nodes.Reasoner{Name: name, Resume: known.resume}
		if known.timeout != nil {
			seconds := known.timeout.Seconds()
			told.TimeoutSeconds = &seconds
		}
		list = append(list, told)
	}
	return list
}

var unknownField = regexp.MustCompile(`^json: unknown field "(.*)"$`)

// read reads an input, and says what does not fit.
func read(input json.RawMessage, into any) *misfit {
	if string(input) == "null" && !takesNull(into) {
		return &misfit{"input", "must not be null"}
	}
	decoder := json.NewDecoder(bytes.NewReader(input))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil {
		return nil
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		field := kind.Field
		if field == "" {
			field = "input"
		}
		return &misfit{field, fmt.Sprintf("must be %s, not %s", kind.Type, kind.Value)}
	}
	if found := unknownField.FindStringSubmatch(err.Error()); found != nil {
		return &misfit{found[1], "is not known here"}
	}
	return &misfit{"input", err.Error()}
}

func takesNull(into any) bool {
	switch reflect.TypeOf(into).Elem().Kind() {
	case reflect.Interface, reflect.Pointer, reflect.Slice, reflect.Map:
		return true
	}
	return false
}
