package runs

import (
	"sync"
	"time"
)

// clock is the time limit of a run: only work counts, so it stands still while the run waits for people.
type clock struct {
	mu      sync.Mutex
	timer   *time.Timer
	began   time.Time
	left    time.Duration
	limited bool
	waits   int
	passed  func()
}

// start lets passed be called after so much work; nil for no limit.
func (c *clock) start(limit *time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if limit == nil {
		return
	}
	c.limited, c.left = true, max(0, *limit)
	if c.waits == 0 {
		c.goOn()
	}
}

func (c *clock) goOn() {
	c.began = time.Now()
	c.timer = time.AfterFunc(c.left, c.passed)
}

// wait lets the clock stand still for one more that waits.
func (c *clock) wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits++
	if c.limited && c.waits == 1 && c.timer.Stop() {
		c.left = max(time.Millisecond, c.left-time.Since(c.began))
	}
}

// work says that one less waits; the time goes on with the last.
func (c *clock) work() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits--
	if c.limited && c.waits == 0 {
		c.goOn()
	}
}

// waiting is true while somebody waits.
func (c *clock) waiting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waits > 0
}

// stop ends the limit, with the run.
func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limited = false
	if c.timer != nil {
		c.timer.Stop()
	}
}
