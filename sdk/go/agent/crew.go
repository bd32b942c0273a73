package agent

import (
	"sync"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/agent/runs"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

// crew are the runs that are in progress in this process, given or called; a run that is being started counts too.
type crew struct {
	mu      sync.Mutex
	going   map[*runs.Run]bool
	working int
	idle    chan struct{}
}

// begin counts one who works; end it with done.
func (c *crew) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.working++
}

func (c *crew) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.working--
	if c.working == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

func (c *crew) add(run *runs.Run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.going[run] = true
}

func (c *crew) remove(run *runs.Run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.going, run)
}

// untilIdle returns when nobody works, or after so long.
func (c *crew) untilIdle(long time.Duration) {
	c.mu.Lock()
	if c.working == 0 {
		c.mu.Unlock()
		return
	}
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	idle := c.idle
	c.mu.Unlock()
	timer := time.NewTimer(max(0, long))
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
}

// handBack ends all that goes on, without an end of the runs.
func (c *crew) handBack() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for run := range c.going {
		run.Interrupt(errs.ErrHandedBack.New(""))
	}
}
