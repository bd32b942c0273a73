package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/holdshort/holdshort/sdk/go/client"
	"github.com/holdshort/holdshort/sdk/go/internal/loopback"
)

const testKey = "hs_1_canary"

// seen is a request as it came.
type seen struct{ method, uri, body, key, idempotency string }

// scripted answers one request after the other, the last answer for ever.
type scripted struct {
	mutex   sync.Mutex
	answers []string
	seen    []seen
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mutex.Lock()
	s.seen = append(s.seen, seen{
		r.Method, r.URL.RequestURI(), string(body), r.Header.Get("Authorization"), r.Header.Get("Idempotency-Key"),
	})
	answer := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	s.mutex.Unlock()
	var problem struct{ Status int }
	if json.Unmarshal([]byte(answer), &problem) == nil && problem.Status >= 300 {
		w.WriteHeader(problem.Status)
	}
	_, _ = io.WriteString(w, answer)
}

func (s *scripted) all() []seen {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return append([]seen(nil), s.seen...)
}

func (s *scripted) last() seen {
	all := s.all()
	return all[len(all)-1]
}

func clientTo(t testing.TB, url string) *client.Client {
	t.Helper()
	made, err := client.New(client.Options{BaseURL: url, NodeID: "node-1", APIKey: testKey})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	return made
}

func script(t testing.TB, answers ...string) (*client.Client, *scripted) {
	t.Helper()
	made := &scripted{answers: answers}
	return clientTo(t, loopback.Serve(t, made.ServeHTTP).URL()), made
}

// soon is a context for what must not take long.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func problem(status int, code string) string {
	return fmt.Sprintf(`{"status": %d, "error": %q, "message": "It says so."}`, status, code)
}

func standing(status, more string) string {
	return fmt.Sprintf(`{"approval_id": "apr_1", "approval_request_id": "r", "execution_id": "e", "round": 1,
		"status": %q, "requested_at": "2026-06-01T10:00:00Z", "responded_at": null,
		"expires_at": "2026-06-04T10:00:00.123456Z", "later": {"x": 1}%s}`, status, more)
}

func answerOf(decision, data string) string {
	return fmt.Sprintf(`, "response": {"decision": %q, "feedback": "f", "data": %s}`, decision, data)
}

func sameJSON(t testing.TB, got, want string) {
	t.Helper()
	var a, b any
	if json.Unmarshal([]byte(got), &a) != nil || json.Unmarshal([]byte(want), &b) != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("got %s, want %s", got, want)
	}
}
