package runs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

// lastNotes is how long the end of a run waits for its notes.
const lastNotes = 10 * time.Second

type note struct {
	message string
	tags    []string
}

// notes keeps the notes of one run: in order, in the background, and never as an error of the run.
type notes struct {
	keep func(ctx context.Context, told note) error
	log  *slog.Logger

	mu      sync.Mutex
	waiting []note
	telling chan struct{}
	cancel  context.CancelFunc
}

// add keeps a note, after those before it.
func (n *notes) add(life context.Context, told note) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting = append(n.waiting, told)
	if n.telling != nil {
		return
	}
	ctx, cancel := context.WithCancel(life)
	n.telling, n.cancel = make(chan struct{}), cancel
	go n.tell(ctx, n.telling)
}

func (n *notes) tell(ctx context.Context, told chan struct{}) {
	defer close(told)
	for {
		next, there := n.next()
		if !there {
			return
		}
		err := n.keep(ctx, next)
		// One note that cannot be kept must not take the others along, but nobody keeps those of a run that is over.
		if errors.Is(err, errs.ErrRunEnded) || ctx.Err() != nil {
			n.drop()
			return
		}
		if err != nil {
			n.log.Warn("a note was not kept", "error", err)
		}
	}
}

func (n *notes) next() (note, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.waiting) == 0 {
		n.end()
		return note{}, false
	}
	next := n.waiting[0]
	n.waiting = n.waiting[1:]
	return next, true
}

func (n *notes) drop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting = nil
	n.end()
}

func (n *notes) end() {
	n.cancel()
	n.telling, n.cancel = nil, nil
}

// flush waits until the notes are kept, 10 s at most; what is late then is given up.
func (n *notes) flush() {
	n.mu.Lock()
	telling, cancel := n.telling, n.cancel
	n.mu.Unlock()
	if telling == nil {
		return
	}
	timer := time.NewTimer(lastNotes)
	defer timer.Stop()
	select {
	case <-telling:
	case <-timer.C:
		n.log.Warn("the last notes were not kept in time")
		cancel()
		<-telling
	}
}
