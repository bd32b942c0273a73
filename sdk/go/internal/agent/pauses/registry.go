// Package pauses holds who waits for which answer in this process, and which ask of which question a pause is.
package pauses

import (
	"crypto/rand"
	"encoding/base64"
	"sync"

	"github.com/holdshort/holdshort/sdk/go/client"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

// remembered is how many answered pauses are known still, as their callbacks may be repeated.
const remembered = 10_000

// Key names one round of one question; it is known before the control plane has answered.
type Key struct {
	ExecutionID       string
	ApprovalRequestID string
	Round             int
}

// Pause is one awaited answer, shared by all who wait for it.
type Pause struct {
	// Secret signs the callbacks of this one request.
	Secret string
	// Done is closed when there is an outcome.
	Done chan struct{}

	approvalID string
	outcome    Outcome
	settled    bool
	waiting    int
}

// Outcome is what became of a pause: a result, or an end of the wait without one.
type Outcome struct {
	Result client.ApprovalResult
	End    *errs.Error
}

// Registry knows the pauses of one process, and the last answered ones. A pause is registered before its question is
// asked, so that no answer is too early.
type Registry struct {
	mu       sync.Mutex
	waiting  map[Key]*Pause
	answered map[Key]string
	order    []Key
	draining bool
}

// NewRegistry makes a registry in which nobody waits.
func NewRegistry() *Registry {
	return &Registry{waiting: map[Key]*Pause{}, answered: map[Key]string{}}
}

// Register waits under this key, beside others who do; Release it afterwards.
func (r *Registry) Register(key Key) *Pause {
	r.mu.Lock()
	defer r.mu.Unlock()
	pause := r.waiting[key]
	if pause == nil {
		pause = &Pause{Secret: newSecret(), Done: make(chan struct{})}
		r.waiting[key] = pause
	}
	pause.waiting++
	return pause
}

// Named says which approval a pause waits for, once that is known.
func (r *Registry) Named(pause *Pause, approvalID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pause.approvalID = approvalID
}

// Release stops waiting; an answered pause is remembered for repeated callbacks.
func (r *Registry) Release(key Key, pause *Pause) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pause.waiting--
	if pause.waiting > 0 {
		return
	}
	delete(r.waiting, key)
	if pause.settled && pause.outcome.End == nil {
		r.remember(key, pause.Secret)
	}
}

func (r *Registry) remember(key Key, secret string) {
	if _, known := r.answered[key]; !known {
		r.order = append(r.order, key)
	}
	r.answered[key] = secret
	if len(r.order) > remembered {
		delete(r.answered, r.order[0])
		r.order = r.order[1:]
	}
}

// Secret is what callbacks under this key are signed with; false when nobody waits or waited.
func (r *Registry) Secret(key Key) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if pause := r.waiting[key]; pause != nil {
		return pause.Secret, true
	}
	secret, known := r.answered[key]
	return secret, known
}

// Resolve hands over an answer, once; true when somebody waits for it or waited.
func (r *Registry) Resolve(result client.ApprovalResult) bool {
	key := Key{result.ExecutionID, result.ApprovalRequestID, result.Round}
	r.mu.Lock()
	defer r.mu.Unlock()
	if pause := r.waiting[key]; pause != nil {
		pause.settle(Outcome{Result: result})
		return true
	}
	_, known := r.answered[key]
	return known
}

// Outcome is what became of a pause; false while it waits.
func (r *Registry) Outcome(pause *Pause) (Outcome, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return pause.outcome, pause.settled
}

// Lose ends the waits for these approvals without an answer; others go on.
func (r *Registry) Lose(approvalIDs []string, end *errs.Error) {
	lost := make(map[string]bool, len(approvalIDs))
	for _, id := range approvalIDs {
		lost[id] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, pause := range r.waiting {
		if lost[pause.approvalID] {
			pause.settle(Outcome{End: end})
		}
	}
}

// HandBack ends every wait without an answer: the process stops, the runs stay waiting.
func (r *Registry) HandBack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draining = true
	for _, pause := range r.waiting {
		pause.settle(Outcome{End: errs.ErrHandedBack.New("")})
	}
}

// Draining is true from HandBack on, until Reopen.
func (r *Registry) Draining() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.draining
}

// Reopen lets pauses wait again, in a process that is served once more.
func (r *Registry) Reopen() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draining = false
}

// settle gives the outcome, of which the first stands.
func (p *Pause) settle(outcome Outcome) {
	if p.settled {
		return
	}
	p.outcome, p.settled = outcome, true
	close(p.Done)
}

func newSecret() string {
	raw := make([]byte, 24)
	if _, err := rand.Read(raw); err != nil {
		// Without randomness anybody could sign; there is no safe way to go on.
		panic("holdshort: the system has no randomness: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}
