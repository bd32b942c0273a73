package agent

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/agent/nodes"
	"github.com/holdshort/holdshort/sdk/go/internal/core"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

const (
	headerWithin = 10 * time.Second
	closeWithin  = time.Second
)

// Registered is true while the control plane can give runs to this process.
func (a *Agent) Registered() bool {
	node := a.nodeNow()
	return node != nil && node.Registered()
}

// Start registers this process and keeps it registered in the background, for an agent whose Handler is mounted in a
// server of the program's own; that must be listening already. End it with Stop. Without the control plane the agent is
// served all the same, and registers when it is there.
//
// It fails with client.ErrCallbackUnknown when Config.CallbackURL was not given. An agent that was started is not started
// again.
func (a *Agent) Start() error {
	if a.baseURL() == "" {
		return errs.ErrCallbackUnknown.New("the control plane cannot reach this agent: give Config.CallbackURL")
	}
	a.begin()
	return nil
}

func (a *Agent) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.node != nil {
		return
	}
	a.session.enter()
	a.registry.Reopen()
	if a.life.Err() != nil {
		a.life, a.endLife = context.WithCancel(context.Background())
	}
	instanceID := newID()[len("exec_"):]
	a.runs.begin(instanceID)
	a.stopping, a.stopped = false, make(chan struct{})
	describe := func() *nodes.Registration { return a.registration(instanceID) }
	a.node = nodes.Begin(a.signs, describe, a.runs.letGo, a.log)
}

func (a *Agent) registration(instanceID string) *nodes.Registration {
	base := a.baseURL()
	if base == "" {
		return nil
	}
	return &nodes.Registration{
		NodeID: a.config.NodeID, BaseURL: base, InstanceID: instanceID, Version: a.config.Version,
		Reasoners: a.described(), Features: map[string]bool{"replay": true, "fence": true},
		LeaseSeconds: nodes.LeaseSeconds, MaxConcurrent: a.config.MaxConcurrent,
	}
}

// Stop takes nothing new, hands back at once what waits (which is no end and no failure: another process, or this one
// started again, goes on), lets what runs finish for as long as Config.Drain and ctx, and says that this process is gone.
// What has not finished then is given to another process. It takes a few seconds more than that at most.
func (a *Agent) Stop(ctx context.Context) {
	a.mu.Lock()
	node, stopped, first := a.node, a.stopped, !a.stopping
	a.stopping = true
	a.mu.Unlock()
	if node == nil || !first {
		if stopped != nil {
			<-stopped
		}
		return
	}
	node.Drain()
	a.registry.HandBack()
	a.finish(a.drainWithin(ctx))
	node.Stop()
	a.mu.Lock()
	a.node = nil
	a.mu.Unlock()
	a.session.leave()
	close(stopped)
}

func (a *Agent) drainWithin(ctx context.Context) time.Duration {
	if ctx.Err() != nil {
		return 0
	}
	if deadline, limited := ctx.Deadline(); limited {
		return min(a.config.Drain, time.Until(deadline))
	}
	return a.config.Drain
}

// finish lets what runs end, for so long; what has not ended then is stopped without an end.
func (a *Agent) finish(drain time.Duration) {
	a.crew.untilIdle(drain)
	a.crew.handBack()
	a.crew.untilIdle(endsWithin)
	a.mu.Lock()
	endLife := a.endLife
	a.mu.Unlock()
	endLife()
	a.crew.untilIdle(endsWithin)
}

// Serve listens on addr, such as "127.0.0.1:8001", registers at the control plane, and serves the reasoners until ctx
// ends: then it stops as Stop says, and returns nil. The error is of listening or of the server.
//
// The control plane gives runs to this process, and to the others of its node, as long as it gives signs of life.
//
//	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//	defer stop()
//	err := a.Serve(ctx, "127.0.0.1:8001")
func (a *Agent) Serve(ctx context.Context, addr string) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	a.reachableAt(listener.Addr())
	server := &http.Server{
		Handler: a.Handler(), ReadHeaderTimeout: headerWithin, ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if a.baseURL() == "" {
		a.log.Warn("give a CallbackURL: without one the control plane does not know where to reach this agent")
	}
	a.begin()
	select {
	case <-ctx.Done():
	case failed := <-served:
		served <- failed
	}
	a.Stop(context.WithoutCancel(ctx))
	return closed(server, served)
}

// closed ends the server; who is still answered may read that for a second.
func closed(server *http.Server, served <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// reachableAt takes the address that is listened on as the agent's own, unless one was given, where it is the same for a
// control plane on this machine.
func (a *Agent) reachableAt(address net.Addr) {
	listening, err := netip.ParseAddrPort(address.String())
	if err != nil || a.config.CallbackURL != "" || !core.IsHere(a.sender.BaseURL()) {
		return
	}
	host := listening.Addr().Unmap()
	if host.IsUnspecified() {
		host = netip.MustParseAddr("127.0.0.1")
	}
	if !host.IsLoopback() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.base = "http://" + netip.AddrPortFrom(host, listening.Port()).String()
}
