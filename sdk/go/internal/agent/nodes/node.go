// Package nodes keeps this process registered as an instance of its node: alive, draining, and at the end gone.
package nodes

import (
	"context"
	"errors"
	"log/slog"
	"math/rand"
	"sync"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/core"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

const (
	// LeaseSeconds is how long this process counts as alive without a sign.
	LeaseSeconds = 15.0

	slowestBeat = 5 * time.Second
	fastestBeat = 50 * time.Millisecond
	lastWait    = 3 * time.Second
	lastWord    = time.Second
	// sure is the part of the lease after which a sign of life is written down again.
	sure    = 2.0 / 3
	unknown = "node_not_found"
)

// Sender sends a call until it is answered, for as long as patience says: 0 is one try, below 0 as long as ctx.
type Sender interface {
	Send(ctx context.Context, call core.Call, patience time.Duration, into any) error
}

// Node keeps one instance registered from Begin to Stop.
//
// The control plane may be away at any time: that is logged once, and tried again for as long as the process lives. So
// is a refusal, as an error: a node may be moved to this key, and what is wrong may be the control plane's.
type Node struct {
	sender   Sender
	describe func() *Registration
	lost     func()
	log      *slog.Logger

	mu           sync.Mutex
	known, taken *Registration
	registered   bool
	beatEvery    time.Duration
	heldUntil    time.Time
	draining     bool
	toldDraining bool
	stopping     bool
	failures     int
	refused      bool
	given        []Run
	giving       bool
	turned       chan struct{}

	wake    chan struct{}
	ctx     context.Context
	cancel  context.CancelFunc
	working sync.WaitGroup
	living  chan struct{}
}

// Begin registers this process in the background, and keeps it alive.
//
// describe is what is registered, nil while no address is known. lost is called when the control plane took this
// instance for gone: the runs that wait are not its own any more.
func Begin(sender Sender, describe func() *Registration, lost func(), log *slog.Logger) *Node {
	n := &Node{
		sender: sender, describe: describe, lost: lost, log: log, beatEvery: slowestBeat,
		turned: make(chan struct{}), wake: make(chan struct{}, 1), living: make(chan struct{}),
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.working.Add(1)
	go n.live()
	return n
}

// Registered is true while the control plane knows this instance, as far as it said.
func (n *Node) Registered() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.registered
}

// LookAgain says that what is described may have changed.
func (n *Node) LookAgain() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Drain takes nothing new from here on, and says so at once.
func (n *Node) Drain() {
	n.mu.Lock()
	n.draining = true
	n.mu.Unlock()
	n.LookAgain()
}

// Confirmed returns once the lease is surely held; a process that stood still for long must ask first. The error is
// ctx's own.
func (n *Node) Confirmed(ctx context.Context) error {
	for {
		n.mu.Lock()
		held := n.known == nil || n.held()
		turned := n.turned
		n.mu.Unlock()
		if held {
			return nil
		}
		n.LookAgain()
		select {
		case <-turned:
		case <-n.living:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (n *Node) held() bool { return n.registered && time.Now().Before(n.heldUntil) }

// Stop lets what was handed back be kept, and says that this instance is gone; it takes a few seconds at most.
func (n *Node) Stop() {
	n.mu.Lock()
	n.draining, n.stopping = true, true
	n.mu.Unlock()
	n.LookAgain()
	until := time.Now().Add(lastWait)
	done := make(chan struct{})
	go func() {
		n.working.Wait()
		close(done)
	}()
	timer := time.NewTimer(lastWait)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	n.cancel()
	<-done
	n.shutDown(until)
}

func (n *Node) shutDown(until time.Time) {
	if n.known == nil {
		return
	}
	left := time.Duration(0)
	if n.failures == 0 {
		left = time.Until(until)
	}
	left = max(lastWord, left)
	ctx, cancel := context.WithTimeout(context.Background(), left)
	defer cancel()
	if err := n.sender.Send(ctx, shutdownCall(n.known), left, nil); err != nil {
		n.log.Warn("the control plane was not told that this instance stops; its lease passes", "error", err)
	}
}

func (n *Node) live() {
	defer n.working.Done()
	defer close(n.living)
	for n.goesOn() {
		delay := n.turn()
		n.mu.Lock()
		close(n.turned)
		n.turned = make(chan struct{})
		n.mu.Unlock()
		if !n.untilWoken(delay) {
			return
		}
	}
}

func (n *Node) goesOn() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.stopping || (n.registered && !n.toldDraining)
}

// untilWoken waits so long, for ever where delay is below 0; false at the end of everything.
func (n *Node) untilWoken(delay time.Duration) bool {
	var passed <-chan time.Time
	if delay >= 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		passed = timer.C
	}
	select {
	case <-n.wake:
	case <-passed:
	case <-n.ctx.Done():
		return false
	}
	return true
}

// turn registers, or gives a sign of life; how long until the next, below 0 for until something changes.
func (n *Node) turn() time.Duration {
	described := n.describe()
	n.mu.Lock()
	draining, registered := n.draining, n.registered
	same := n.taken.same(described)
	n.mu.Unlock()
	var err error
	switch {
	case registered && (draining || same):
		err = n.beat(draining)
	case draining || described == nil:
		n.told(draining)
		return -1
	default:
		err = n.register(described)
	}
	n.told(draining)
	if err != nil {
		return n.failed(err)
	}
	return n.succeeded()
}

func (n *Node) told(draining bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.toldDraining = n.toldDraining || draining
}

func (n *Node) succeeded() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.failures > 0 {
		n.log.Info("the control plane is back; this instance is registered", "node", n.known.NodeID)
	}
	n.failures, n.refused = 0, false
	every := max(fastestBeat, n.beatEvery)
	return time.Duration(float64(every) * (0.8 + 0.2*rand.Float64()))
}

func (n *Node) failed(err error) time.Duration {
	if n.ctx.Err() != nil {
		return 0
	}
	n.mu.Lock()
	if errors.Is(err, errs.ErrNotFound) && n.registered {
		held := n.held()
		n.registered = false
		n.mu.Unlock()
		n.log.Warn("the control plane does not know this instance; it registers again", "lease_held", held, "error", err)
		if codeOf(err) == unknown {
			n.lost()
		}
		return 0
	}
	defer n.mu.Unlock()
	n.failures++
	n.say(err)
	delay := core.DelayAfter(nil, n.failures, rand.Float64())
	if n.registered {
		return min(delay, slowestBeat)
	}
	return delay
}

func (n *Node) say(err error) {
	doing := "register"
	if n.registered {
		doing = "give a sign of life"
	}
	if errors.Is(err, errs.ErrNotAuthorised) {
		if !n.refused {
			n.log.Error("the control plane refuses what this agent must do, trying on", "doing", doing, "error", err)
		}
		n.refused = true
	} else if n.failures == 1 {
		n.log.Warn("the control plane was not reached, trying on", "doing", doing, "error", err)
	}
}

func (n *Node) register(described *Registration) error {
	n.mu.Lock()
	n.known = described
	n.mu.Unlock()
	began := time.Now()
	answer := leased{LeaseSeconds: LeaseSeconds, HeartbeatSeconds: slowestBeat.Seconds()}
	if err := n.sender.Send(n.ctx, registerCall(described), 0, &answer); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.registered, n.taken = true, described
	n.beatEvery = seconds(answer.HeartbeatSeconds)
	n.heldUntil = began.Add(seconds(sure * answer.LeaseSeconds))
	return nil
}

func (n *Node) beat(draining bool) error {
	word := "ready"
	if draining {
		word = "draining"
	}
	began := time.Now()
	answer := leased{LeaseSeconds: LeaseSeconds}
	if err := n.sender.Send(n.ctx, beatCall(n.known, word), 0, &answer); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.heldUntil = began.Add(seconds(sure * answer.LeaseSeconds))
	return nil
}
