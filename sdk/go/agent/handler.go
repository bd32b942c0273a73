package agent

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdshort/holdshort/sdk/go/internal/agent/answers"
)

const (
	bodyLimit     = 1024 * 1024
	dispatchLimit = 8 * bodyLimit
	// drained is how much more of a body is read that is refused, so that its sender reads the answer.
	drained     = 8 * bodyLimit
	readWithin  = time.Minute
	reasonersAt = "/reasoners/"
)

var (
	cancelAt = regexp.MustCompile(`^/_internal/executions/([^/]+)/cancel$`)
	nameRule = regexp.MustCompile(`^[A-Za-z0-9._~:-]{1,128}$`)
)

type posted func(header http.Header, body []byte, gone <-chan struct{}) answers.Answer

// Handler serves the agent over HTTP: its reasoners, callbacks, cancellations and GET /health. Mount it where you like,
// below a path with or without http.StripPrefix; that path belongs to Config.CallbackURL. Start and Stop go with it.
//
// Callbacks are proven, calls of reasoners are not: whoever reaches this can start runs of this agent and cancel those
// that go on. Let nobody but the control plane reach it.
func (a *Agent) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer := a.answerTo(w, r); answer != nil {
			answer.Send(w)
		}
	})
}

// answerTo is nil when nobody is there to be answered.
func (a *Agent) answerTo(w http.ResponseWriter, r *http.Request) *answers.Answer {
	path := a.below(r.URL.Path)
	if path == "/health" {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			return one(answers.WrongMethod(http.MethodGet))
		}
		return one(a.health())
	}
	take := a.takes(path)
	if take == nil {
		return one(answers.Problem(http.StatusNotFound, "not_found",
			"this agent serves /reasoners/{name}, /webhooks/approval, /health", nil))
	}
	if r.Method != http.MethodPost {
		return one(answers.WrongMethod(http.MethodPost))
	}
	limit := int64(bodyLimit)
	if _, fenced := r.Header[answers.FenceHeader]; fenced {
		limit = dispatchLimit
	}
	body, whole := readBody(w, r, limit)
	if !whole {
		return nil
	}
	if int64(len(body)) > limit {
		told := fmt.Sprintf("the body is over %d bytes", limit)
		return one(answers.Problem(http.StatusRequestEntityTooLarge, "body_too_large", told, nil))
	}
	return one(take(r.Header, body, r.Context().Done()))
}

// readBody reads one byte more than the limit at most; false when the caller went away, or is too slow.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, bool) {
	control := http.NewResponseController(w)
	// Where the host has no such thing, its own limits stand.
	_ = control.SetReadDeadline(time.Now().Add(readWithin))
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	body, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if err != nil {
		return nil, false
	}
	if int64(len(body)) > limit {
		_, _ = io.CopyN(io.Discard, r.Body, drained)
	}
	return body, true
}

// below is the path below where the handler is mounted; some hosts leave the mount in, some end it with a slash.
func (a *Agent) below(path string) string {
	if base, err := url.Parse(a.baseURL()); err == nil && base.Path != "" && strings.HasPrefix(path, base.Path+"/") {
		path = strings.TrimPrefix(path, base.Path)
	}
	return strings.TrimRight(path, "/")
}

// takes is what takes a POST to this path; nil where nothing does.
func (a *Agent) takes(path string) posted {
	if path == callbackPath {
		return func(header http.Header, body []byte, _ <-chan struct{}) answers.Answer {
			return a.registry.Receive(header, body)
		}
	}
	if name, called := strings.CutPrefix(path, reasonersAt); called {
		return func(header http.Header, body []byte, gone <-chan struct{}) answers.Answer {
			return a.called(name, header, body, gone)
		}
	}
	if found := cancelAt.FindStringSubmatch(path); found != nil {
		return func(header http.Header, body []byte, _ <-chan struct{}) answers.Answer {
			return a.cancelled(found[1], header, body)
		}
	}
	return nil
}

func (a *Agent) called(name string, header http.Header, body []byte, gone <-chan struct{}) answers.Answer {
	executionID := answers.One(header, "X-Execution-ID")
	if executionID != "" && !nameRule.MatchString(executionID) {
		return answers.Invalid("X-Execution-ID", "1-128 of A-Z a-z 0-9 . _ ~ : -")
	}
	if len(body) == 0 {
		body = []byte("{}")
	}
	if !utf8.Valid(body) || !json.Valid(body) {
		return answers.Problem(http.StatusBadRequest, "invalid_body", "the body is not JSON", nil)
	}
	order, refused := answers.OrderOf(header, executionID)
	if order != nil {
		return a.runs.take(name, body, order)
	}
	if executionID != "" && a.runs.running(executionID) {
		told := fmt.Sprintf("execution %s is running here, as the control plane dispatched it", executionID)
		return answers.Problem(http.StatusConflict, "execution_exists", told, nil)
	}
	if refused != nil {
		return *refused
	}
	return a.calls.take(name, body, executionID, gone)
}

func (a *Agent) cancelled(executionID string, header http.Header, body []byte) answers.Answer {
	fence, reason, refused := answers.CancellationOf(header, body)
	if refused != nil {
		return *refused
	}
	return a.runs.cancel(executionID, fence, reason)
}

func (a *Agent) health() answers.Answer {
	listed := []map[string]any{}
	for _, known := range a.described() {
		var seconds any
		if known.TimeoutSeconds != nil {
			seconds = *known.TimeoutSeconds
		}
		listed = append(listed, map[string]any{"name": known.Name, "timeout_seconds": seconds, "resume": known.Resume})
	}
	status := "ok"
	if a.registry.Draining() {
		status = "draining"
	}
	return answers.Answer{Status: http.StatusOK, Body: map[string]any{
		"status": status, "registered": a.Registered(), "node_id": a.config.NodeID, "version": a.config.Version,
		"reasoners": listed,
	}}
}
