package nodes

import "time"

const (
	gather = 20 * time.Millisecond
	batch  = 1000
)

// Run is a run that is handed back, with the fence that it had.
type Run struct {
	ExecutionID string `json:"execution_id"`
	Fence       int64  `json:"fence"`
}

// HandBack gives up a run whose code has ended, together with those that end at the same time.
func (n *Node) HandBack(run Run) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.given = append(n.given, run)
	// Once this instance stops, what comes too late is given back by the lease that passes.
	if !n.giving && !n.stopping {
		n.giving = true
		n.working.Add(1)
		go n.giveBack()
	}
}

func (n *Node) giveBack() {
	defer n.working.Done()
	if !n.untilMayGiveBack() {
		n.stopGiving()
		return
	}
	timer := time.NewTimer(gather)
	defer timer.Stop()
	<-timer.C
	for {
		known, runs := n.someGiven()
		if runs == nil {
			return
		}
		if err := n.sender.Send(n.ctx, handBackCall(known, runs), -1, nil); err != nil {
			n.log.Warn("runs are handed back when the lease passes", "runs", len(runs), "error", err)
		}
	}
}

// untilMayGiveBack waits until the control plane knows that this instance takes nothing new: before that it would have
// them back at once. False when that is not going to be.
func (n *Node) untilMayGiveBack() bool {
	for {
		n.mu.Lock()
		may := n.registered
		if n.draining {
			may = n.toldDraining
		}
		turned := n.turned
		n.mu.Unlock()
		if may {
			return true
		}
		select {
		case <-turned:
		case <-n.living:
			return n.known != nil
		}
	}
}

func (n *Node) someGiven() (*Registration, []Run) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.given) == 0 || n.known == nil {
		n.giving = false
		return nil, nil
	}
	count := min(batch, len(n.given))
	runs := n.given[:count:count]
	n.given = n.given[count:]
	return n.known, runs
}

func (n *Node) stopGiving() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.giving = false
}
