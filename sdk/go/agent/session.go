package agent

import (
	"sync"

	"github.com/holdshort/holdshort/sdk/go/client"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/waits"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

// session is what an agent holds while something runs: its connections and its shared wait.
type session struct {
	mu    sync.Mutex
	users int
	waits *waits.Shared
	close func()
}

// enter keeps the session open until as many have left as entered.
func (s *session) enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++
}

// leave says that one less uses it; the last one ends the shared wait and closes the connections.
func (s *session) leave() {
	s.mu.Lock()
	s.users--
	last := s.users == 0
	s.mu.Unlock()
	if last {
		s.waits.Close()
		s.close()
	}
}

// settled hands over an answer that the shared wait brought.
func (a *Agent) settled(approval client.ApprovalStatus) {
	result, err := approval.Result()
	if err != nil {
		a.log.Error("an answer was unclear and is none", "error", err)
		return
	}
	a.registry.Resolve(result)
}

// lost ends the waits that the control plane lets this program hold no more.
func (a *Agent) lost(approvalIDs []string, refused *client.Error) {
	end := errs.ErrAccessLost.New("nothing was decided here: " + refused.Message)
	end.Status, end.RequestID, end.Details = refused.Status, refused.RequestID, refused.Details
	a.registry.Lose(approvalIDs, end)
}
