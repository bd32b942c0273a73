// Package waits holds one call for all pauses of a process, re-armed when a pause is added, and the slow look that backs
// up pushes.
package waits

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/holdshort/holdshort/sdk/go/client"
	"github.com/holdshort/holdshort/sdk/go/internal/core"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

const (
	hold         = 50 * time.Second
	callLimit    = 10_000
	pace         = time.Second
	lookEvery    = time.Minute
	afterRefusal = time.Second
	timesRefused = 3
)

// Sender sends a call until it is answered.
type Sender interface {
	Send(ctx context.Context, call core.Call, patience time.Duration, into any) error
}

// Shared waits for any number of approvals with one call at a time for each 10,000 of them.
type Shared struct {
	// Sender asks the control plane.
	Sender Sender
	// Settled is called with each approval that is final.
	Settled func(client.ApprovalStatus)
	// Refused is called with approvals that cannot be waited for, as the control plane lets this client in no more.
	Refused func(approvalIDs []string, refused *errs.Error)
	// Held holds the call until something is final; without it there is only a look once a minute, for what a push missed.
	Held bool
	Log  *slog.Logger

	mu      sync.Mutex
	ids     map[string]int
	added   chan struct{}
	cancel  context.CancelFunc
	running chan struct{}
	said    bool
}

// Add waits for this approval too, for one more.
func (s *Shared) Add(approvalID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids == nil {
		s.ids, s.added = map[string]int{}, make(chan struct{}, 1)
	}
	s.ids[approvalID]++
	select {
	case s.added <- struct{}{}:
	default:
	}
	if s.running == nil {
		s.begin()
	}
}

func (s *Shared) begin() {
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(context.Background())
	s.running = make(chan struct{})
	go s.run(ctx, s.running)
}

// Remove says that one less waits for it; an open call that still names it is left open.
func (s *Shared) Remove(approvalID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids[approvalID] > 1 {
		s.ids[approvalID]--
	} else {
		delete(s.ids, approvalID)
	}
}

// Close ends the call, and returns when nothing is left of it.
func (s *Shared) Close() {
	s.mu.Lock()
	cancel, running := s.cancel, s.running
	s.mu.Unlock()
	if running != nil {
		cancel()
		<-running
	}
}

func (s *Shared) run(ctx context.Context, ended chan struct{}) {
	defer close(ended)
	for s.goesOn(ctx) {
		if s.Held {
			s.untilAddedOrSettled(ctx)
			s.gatherMore(ctx)
			continue
		}
		sleep(ctx, lookEvery)
		for _, ids := range s.chunks() {
			s.look(ctx, ids, 0)
		}
	}
}

// goesOn is true while somebody waits. Otherwise the next Add begins anew, or did so already while this one was closed.
func (s *Shared) goesOn(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ids) > 0 && ctx.Err() == nil {
		return true
	}
	s.cancel()
	s.running, s.cancel = nil, nil
	if len(s.ids) > 0 {
		s.begin()
	}
	return false
}

func (s *Shared) untilAddedOrSettled(ctx context.Context) {
	select {
	case <-s.added:
	default:
	}
	ctx, cancel := context.WithCancel(ctx)
	var looking sync.WaitGroup
	defer looking.Wait()
	defer cancel()
	looked := make(chan struct{}, 1)
	for _, ids := range s.chunks() {
		looking.Add(1)
		go func() {
			defer looking.Done()
			s.look(ctx, ids, hold)
			select {
			case looked <- struct{}{}:
			default:
			}
		}()
	}
	select {
	case <-looked:
	case <-s.added:
		s.gatherMore(ctx)
	case <-ctx.Done():
	}
}

// gatherMore lets a thousand pauses that start, or end, together re-arm once; the more a call carries, the rarer it is
// repeated.
func (s *Shared) gatherMore(ctx context.Context) {
	s.mu.Lock()
	waiting := len(s.ids)
	s.mu.Unlock()
	sleep(ctx, min(time.Second, 10*time.Millisecond+time.Duration(waiting)*time.Second/20_000))
}

func (s *Shared) look(ctx context.Context, ids []string, hold time.Duration) {
	began := time.Now()
	found, ok := s.found(ctx, ids, hold)
	if !ok {
		return
	}
	final := 0
	for _, approval := range found {
		if !approval.Final() {
			continue
		}
		final++
		s.mu.Lock()
		delete(s.ids, approval.ApprovalID)
		s.mu.Unlock()
		s.Settled(approval)
	}
	if hold > 0 && final == 0 {
		// A control plane with too many waits answers at once; that must not become a busy loop.
		sleep(ctx, pace-time.Since(began))
	}
}

// found is what is final of these; false when that was refused, or nobody waits any more.
func (s *Shared) found(ctx context.Context, ids []string, hold time.Duration) ([]client.ApprovalStatus, bool) {
	for times := 1; times <= timesRefused && ctx.Err() == nil; times++ {
		var settled struct {
			Approvals []client.ApprovalStatus `json:"approvals"`
		}
		err := s.Sender.Send(ctx, waitCall(ids, hold), -1, &settled)
		switch {
		case err == nil:
			s.say(nil)
			return settled.Approvals, true
		case ctx.Err() != nil:
			return nil, false
		case errors.Is(err, errs.ErrNotAuthorised):
			s.refused(err, ids, times)
		default:
			s.Log.Warn("the shared wait was refused, trying again", "error", err)
			sleep(ctx, afterRefusal)
			return nil, false
		}
		sleep(ctx, afterRefusal)
	}
	return nil, false
}

// refused says so once. One such answer may be a server's that only starts or a proxy's; several are the end of the key.
func (s *Shared) refused(err error, ids []string, times int) {
	s.say(err)
	var refusal *errs.Error
	if times == timesRefused && errors.As(err, &refusal) {
		s.Refused(ids, refusal)
	}
}

func (s *Shared) say(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && !s.said {
		s.Log.Error("the control plane lets this program wait no more", "error", err)
	}
	s.said = err != nil
}

func (s *Shared) chunks() [][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var chunks [][]string
	chunk := make([]string, 0, min(callLimit, len(s.ids)))
	for id := range s.ids {
		if len(chunk) == callLimit {
			chunks = append(chunks, chunk)
			chunk = make([]string, 0, callLimit)
		}
		chunk = append(chunk, id)
	}
	if len(chunk) == 0 {
		return chunks
	}
	return append(chunks, chunk)
}

func waitCall(ids []string, hold time.Duration) core.Call {
	// A list of texts and a number: nothing that JSON does not have.
	body, _ := json.Marshal(map[string]any{"approval_ids": ids, "wait": hold.Seconds()})
	return core.Call{Method: http.MethodPost, Path: core.APIPath("approvals", "wait"), Body: body, Hold: hold}
}

func sleep(ctx context.Context, long time.Duration) {
	if long <= 0 {
		return
	}
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
