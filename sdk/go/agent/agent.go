package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/holdshort/holdshort/sdk/go/client"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/nodes"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/pauses"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/runs"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/waits"
	"github.com/holdshort/holdshort/sdk/go/internal/core"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

// Callback is how answers come.
type Callback string

// The ways of an answer. Without an address Auto only pulls.
const (
	// Auto is told by callback or by one held call, whichever is first.
	Auto Callback = "auto"
	// Push is told by callback, and looks once a minute for what a callback missed.
	Push Callback = "push"
	// Pull holds one call for all that waits.
	Pull Callback = "pull"
)

const (
	defaultDrain = 8 * time.Second
	callbackPath = "/webhooks/approval"
)

// Config is what an agent is made of.
type Config struct {
	// NodeID is the agent's name, 1-128 of A-Z a-z 0-9 . _ ~ : -; its runs belong to it.
	NodeID string
	// Version is of the agent, "0" when empty.
	Version string
	// ControlPlaneURL is HOLDSHORT_URL, or http://127.0.0.1:8080, when empty.
	ControlPlaneURL string
	// APIKey is HOLDSHORT_API_KEY when empty.
	APIKey string
	// CallbackURL is the base URL where the control plane reaches this agent; HOLDSHORT_CALLBACK_URL when empty, or the
	// loopback address that Serve listens on, if the control plane is on this machine. Where Handler is mounted below a
	// path, that belongs to it.
	CallbackURL string
	// Callback is how answers come; Auto when empty.
	Callback Callback
	// MaxConcurrent is how many runs the control plane gives to the node at a time; its own limit when 0.
	MaxConcurrent int
	// Drain is how long running reasoners may go on when the agent stops; 8 s when 0.
	Drain time.Duration
	// HTTPClient sends the requests; one of the agent's own when nil. Its Timeout and CheckRedirect are not used.
	HTTPClient *http.Client
	// Logger is told what fails no call; slog.Default() when nil.
	Logger *slog.Logger
}

// Agent is an agent program and its connection to the control plane. It may be used by many goroutines at once.
type Agent struct {
	config Config
	log    *slog.Logger
	sender *core.Sender
	// signs is of its own, so that a crowd of other calls never makes a sign of life late.
	signs    *core.Sender
	client   *client.Client
	registry *pauses.Registry
	session  session
	crew     crew
	calls    calls
	runs     dispatches

	mu        sync.Mutex
	base      string
	reasoners map[string]*reasoner
	names     []string
	rounds    map[string]*pauses.Rounds
	node      *nodes.Node
	life      context.Context
	endLife   context.CancelFunc
	stopping  bool
	stopped   chan struct{}
}

// New makes an agent; nothing is sent.
//
// It fails with client.ErrConnectionFailed when the control plane's address is no http(s) address, with
// client.ErrKeyRefused when the key holds what no key has (neither shows the key), and with another error when Callback is
// none of its words, CallbackURL no http(s) address, or NodeID no name.
func New(config Config) (*Agent, error) {
	if err := complete(&config); err != nil {
		return nil, err
	}
	options := core.Options{
		BaseURL: config.ControlPlaneURL, APIKey: config.APIKey, HTTPClient: config.HTTPClient, Log: config.Logger,
	}
	sender, err := core.NewSender(options)
	if err != nil {
		return nil, err
	}
	signs, err := core.NewSender(options)
	if err != nil {
		return nil, err
	}
	caller, err := client.New(client.Options{
		BaseURL: config.ControlPlaneURL, NodeID: config.NodeID, APIKey: config.APIKey, HTTPClient: config.HTTPClient,
		Logger: config.Logger,
	})
	if err != nil {
		return nil, err
	}
	a := &Agent{
		config: config, log: config.Logger, sender: sender, signs: signs, client: caller, registry: pauses.NewRegistry(),
		base: config.CallbackURL, reasoners: map[string]*reasoner{}, rounds: map[string]*pauses.Rounds{},
	}
	a.life, a.endLife = context.WithCancel(context.Background())
	a.session.close = func() { sender.Close(); signs.Close(); caller.Close() }
	a.session.waits = &waits.Shared{
		Sender: sender, Settled: a.settled, Refused: a.lost, Held: config.Callback != Push, Log: config.Logger,
	}
	a.crew.going = map[*runs.Run]bool{}
	a.calls.init(a)
	a.runs.init(a)
	return a, nil
}

func complete(config *Config) error {
	if !nameRule.MatchString(config.NodeID) {
		return fmt.Errorf("holdshort: a NodeID is 1-128 of A-Z a-z 0-9 . _ ~ : -, not %q", config.NodeID)
	}
	if config.Callback == "" {
		config.Callback = Auto
	}
	if config.Callback != Auto && config.Callback != Push && config.Callback != Pull {
		return fmt.Errorf(`holdshort: Callback must be "push", "pull" or "auto", not %q`, config.Callback)
	}
	if config.CallbackURL == "" {
		config.CallbackURL = os.Getenv("HOLDSHORT_CALLBACK_URL")
	}
	config.CallbackURL = strings.TrimRight(config.CallbackURL, "/")
	parts, err := url.Parse(config.CallbackURL)
	if config.CallbackURL != "" && (err != nil || parts.Host == "" || (parts.Scheme != "http" && parts.Scheme != "https")) {
		return errors.New("holdshort: CallbackURL must be an http or https address")
	}
	if config.Version == "" {
		config.Version = "0"
	}
	if config.Drain <= 0 {
		config.Drain = defaultDrain
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	return nil
}

// baseURL is where the control plane reaches this agent; "" while that is not known.
func (a *Agent) baseURL() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.base
}

// callbackTarget is where an answer is to be pushed; "" for pull only.
func (a *Agent) callbackTarget() (string, error) {
	base := a.baseURL()
	switch {
	case a.config.Callback == Pull:
		return "", nil
	case base != "":
		return base + callbackPath, nil
	case a.config.Callback == Push:
		return "", errs.ErrCallbackUnknown.New("")
	}
	return "", nil
}

func (a *Agent) pulls() bool { return a.config.Callback != Push }

func (a *Agent) lifeNow() context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.life
}

func (a *Agent) nodeNow() *nodes.Node {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.node
}

// here is where the code of this context is in a run of this agent; false outside one.
func (a *Agent) here(ctx context.Context) (runs.Place, bool) {
	place, there := runs.At(ctx)
	return place, there && place.Run.Owner == a
}

// ExecutionID is the id of the run that this context belongs to, "" outside one.
//
// Give it to whoever will decide, so that an answer can name the run that it is for (executionId).
func ExecutionID(ctx context.Context) string {
	if place, there := runs.At(ctx); there {
		return place.Run.ExecutionID
	}
	return ""
}
