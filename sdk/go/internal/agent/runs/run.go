// Package runs holds one run of an agent's code: under which fence it calls, what ends it, and how its end is reported.
package runs

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/agent/answers"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/pauses"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/steps"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/wire"
	"github.com/holdshort/holdshort/sdk/go/internal/core"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

// Sender sends a call until it is answered.
type Sender interface {
	Send(ctx context.Context, call core.Call, patience time.Duration, into any) error
}

// Options are what a run is made of.
type Options struct {
	// Owner is the agent that the run belongs to.
	Owner any
	// Life ends when the process gives up what is left of its runs; their reports are sent for as long.
	Life        context.Context
	Sender      Sender
	ExecutionID string
	// Reasoner is the name that ids of pauses are made from.
	Reasoner string
	// Status is what the control plane said of the run when it was started.
	Status string
	// Fence is of the dispatch, nil for a run that the program started itself.
	Fence *int64
	// StoredSteps is how many steps are kept, nil where that is not known.
	StoredSteps *int64
	// Confirmed returns once this process surely holds the run; nil where nobody can take it over.
	Confirmed func(ctx context.Context) error
	Log       *slog.Logger
}

// Run is one run of an execution.
type Run struct {
	Options
	Rounds *pauses.Rounds

	book    *steps.Book
	opening chan struct{}
	opened  bool
	clock   clock
	notes   notes

	mu     sync.Mutex
	fence  *int64
	end    *errs.Error
	late   bool
	over   bool
	told   bool
	cancel context.CancelCauseFunc
	ended  chan struct{}
}

// New makes a run whose code has not begun.
func New(options Options) *Run {
	log := options.Log.With("run", options.ExecutionID)
	options.Log = log
	r := &Run{
		Options: options, Rounds: pauses.NewRounds(), book: steps.NewBook(), opening: make(chan struct{}, 1),
		fence: options.Fence, ended: make(chan struct{}),
	}
	r.clock.passed = r.RunOutOfTime
	r.notes.keep, r.notes.log = r.keepNote, log
	return r
}

// Send sends a call of this run, under its fence. When another instance took the run over, that ends it.
func (r *Run) Send(ctx context.Context, call core.Call, patience time.Duration, into any) error {
	for {
		fence := r.Fence()
		err := r.Sender.Send(ctx, fenced(call, fence), patience, into)
		var stale *errs.Error
		if !errors.Is(err, errs.ErrStaleInstance) || !errors.As(err, &stale) {
			return err
		}
		// Dispatched to this process again while the call was on its way: then it holds the run after all.
		if same(fence, r.Fence()) {
			r.Interrupt(stale)
			return stale
		}
	}
}

func fenced(call core.Call, fence *int64) core.Call {
	if fence == nil {
		return call
	}
	header := call.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set(answers.FenceHeader, strconv.FormatInt(*fence, 10))
	call.Header = header
	return call
}

func same(one, other *int64) bool {
	return one == nil && other == nil || one != nil && other != nil && *one == *other
}

// Fence is of the dispatch that stands, nil where the run was never dispatched.
func (r *Run) Fence() *int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fence
}

// Refence lets the run go on under a new dispatch; false when it has ended here, so that its code must begin anew.
func (r *Run) Refence(fence int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	// While its end is being told it still goes on: then that is told once more, under the new fence.
	if r.end != nil || r.told {
		return false
	}
	if r.fence == nil || fence > *r.fence {
		r.fence = &fence
	}
	return true
}

// Interrupt ends the run with this reason: its context ends, and every further call of its code says so. The first
// reason stands.
func (r *Run) Interrupt(end *errs.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interrupt(end)
}

func (r *Run) interrupt(end *errs.Error) bool {
	if r.end != nil || r.over {
		return false
	}
	r.end = end
	if r.cancel != nil {
		r.cancel(end)
	}
	return true
}

// RunOutOfTime lets the time limit pass now, also while the run waits.
func (r *Run) RunOutOfTime() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late = r.interrupt(outOfTime()) || r.late
}

// outOfTime is the end of a run whose time limit has passed. It is a context.DeadlineExceeded too, as every other limit
// of time in Go is.
func outOfTime() *errs.Error {
	end := errs.ErrRunEnded.New("this run's time limit has passed; let its function return")
	end.Code = "execution_timeout"
	return end.Because(context.DeadlineExceeded)
}

// End is why the run ended here, nil while it goes on.
func (r *Run) End() *errs.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.end
}

// OutOfTime is true when its time limit ended it.
func (r *Run) OutOfTime() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.late
}

// Check is the error of every call of a run that has ended: what goes on of its code gets no further.
func (r *Run) Check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.end != nil {
		return r.end
	}
	if r.over {
		return errs.ErrNoExecution.New("this run is over; wait for what it started before its function returns")
	}
	return nil
}

// Failed is the error that a call of the run's code returns: the run's end where it has one, else err.
func (r *Run) Failed(err error) error {
	if err == nil {
		return nil
	}
	if end := r.End(); end != nil {
		return end
	}
	return err
}

// Sure returns once this process surely holds the run: an answer must not wake one that was taken over.
func (r *Run) Sure(ctx context.Context) error {
	if r.Confirmed == nil {
		return nil
	}
	if err := r.Confirmed(ctx); err != nil {
		return r.Failed(err)
	}
	return r.Check()
}

// Wait stops the clock of the time limit while the run waits for people; call what is returned when it has waited.
func (r *Run) Wait() (waited func(), err error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	r.clock.wait()
	return r.clock.work, nil
}

// Waits is true while its code waits for an answer.
func (r *Run) Waits() bool { return r.clock.waiting() }

// Ended is closed when the run's code has ended, and its end is told or given up.
func (r *Run) Ended() <-chan struct{} { return r.ended }

// Note keeps a note, in order, in the background.
func (r *Run) Note(message string, tags []string) {
	r.notes.add(r.Life, note{message, append([]string(nil), tags...)})
}

func (r *Run) keepNote(ctx context.Context, told note) error {
	raw := make([]byte, 16)
	if _, err := rand.Read(raw); err != nil {
		return err
	}
	call := wire.AddNote(r.ExecutionID, told.message, "note_"+hex.EncodeToString(raw), told.tags)
	return r.Send(ctx, call, core.Endless, nil)
}
