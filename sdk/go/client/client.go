package client

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/core"
)

// Options say where the control plane is and who calls. The zero value reads everything from the environment.
type Options struct {
	// BaseURL is the control plane's address; HOLDSHORT_URL, or http://127.0.0.1:8080, when empty.
	BaseURL string
	// NodeID is the node that CreateExecution creates executions for, where its request names none.
	NodeID string
	// APIKey is HOLDSHORT_API_KEY when empty. It is sent to BaseURL and nowhere else.
	APIKey string
	// HTTPClient sends the requests; one of our own when nil. Its Timeout and CheckRedirect are not used: a wait is
	// ended by its context, and a redirect is never followed.
	HTTPClient *http.Client
	// Logger is told what does not fail a call, such as tries that go on for long; slog.Default() when nil.
	Logger *slog.Logger
}

// Client calls the routes of a control plane. It may be used by many goroutines at once.
//
// Every call is sent again through failures of the connection, 429, 502, 503 and 504: a plain one for 30 s, a wait
// for as long as its context. The end of the context ends a call at once, also while it pauses between two tries; the
// error is then the context's, together with its cause.
type Client struct {
	sender *core.Sender
	nodeID string
}

// New makes a client; nothing is sent.
//
// It fails with ErrConnectionFailed when the address is no http(s) address, and with ErrKeyRefused when the key holds
// what no key has; neither error shows the key.
func New(options Options) (*Client, error) {
	sender, err := core.NewSender(core.Options{
		BaseURL: options.BaseURL, APIKey: options.APIKey, HTTPClient: options.HTTPClient, Log: options.Logger,
	})
	if err != nil {
		return nil, err
	}
	return &Client{sender: sender, nodeID: options.NodeID}, nil
}

// Close closes the connections that are idle, with their goroutines. The client may be used again afterwards. The
// connections of a given HTTPClient are left to whoever gave it.
func (c *Client) Close() { c.sender.Close() }

// answered sends a plain call and reads its answer.
func answered[T any](ctx context.Context, c *Client, call core.Call) (*T, error) {
	return waited[T](ctx, c, call, core.Patience)
}

// waited is answered with a patience of its own.
func waited[T any](ctx context.Context, c *Client, call core.Call, patience time.Duration) (*T, error) {
	var answer T
	if err := c.sender.Send(ctx, call, patience, &answer); err != nil {
		return nil, err
	}
	return &answer, nil
}

func get(path string) core.Call { return core.Call{Method: http.MethodGet, Path: path} }

// post is a call with JSON; it fails with ErrInvalidField when the members are none.
func post(path string, members any) (core.Call, error) {
	body, err := core.JSON("body", members)
	return core.Call{Method: http.MethodPost, Path: path, Body: body}, err
}

// posted sends a plain call with JSON and reads its answer.
func posted[T any](ctx context.Context, c *Client, path string, members any) (*T, error) {
	call, err := post(path, members)
	if err != nil {
		return nil, err
	}
	return answered[T](ctx, c, call)
}

// optional is a value of the caller's as JSON, nil where there is none, which leaves the member out.
func optional(field string, value any) (json.RawMessage, error) {
	if value == nil {
		return nil, nil
	}
	raw, err := core.JSON(field, value)
	return orNil(raw), err
}
