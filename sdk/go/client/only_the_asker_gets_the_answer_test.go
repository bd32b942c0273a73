package client_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdshort/holdshort/sdk/go/client"
	"github.com/holdshort/holdshort/sdk/go/internal/loopback"
	"github.com/holdshort/holdshort/sdk/go/internal/seals"
)

const code = "493 817"

// desk takes questions, answers them as its functions say, and writes down every call: "POST", "GET 55", "DELETE".
type desk struct {
	mutex sync.Mutex
	calls []string
	keys  []string
	asked map[string]any
	// ask and look answer the how-many-eth call of their kind, from 1 on; a nil one answers well.
	ask  func(w http.ResponseWriter, nth int) (done bool)
	look func(w http.ResponseWriter, r *http.Request, nth int) (done bool)
	end  func(r *http.Request)
}

func (d *desk) noted(call string) (nth int) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.calls = append(d.calls, call)
	for _, before := range d.calls {
		if before[:3] == call[:3] {
			nth++
		}
	}
	return nth
}

func (d *desk) said() string {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return strings.Join(d.calls, ", ")
}

func (d *desk) key(nth int) string {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.keys[nth]
}

func (d *desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		d.taken(w, r)
	case http.MethodGet:
		nth := d.noted("GET " + r.URL.Query().Get("wait"))
		if d.look == nil || !d.look(w, r, nth) {
			sealedTo(w, d.key(0), "otp")
		}
	case http.MethodDelete:
		d.noted("DELETE")
		if d.end != nil {
			d.end(r)
		}
		_, _ = io.WriteString(w, `{"unique_id": "otp", "outcome": "answered"}`)
	}
}

func (d *desk) taken(w http.ResponseWriter, r *http.Request) {
	nth := d.noted("POST")
	asked := map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	d.mutex.Lock()
	d.asked = asked
	d.keys = append(d.keys, asked["public_key"].(string))
	d.mutex.Unlock()
	if d.ask == nil || !d.ask(w, nth) {
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"unique_id": %q}`, asked["unique_id"])
	}
}

func sealedTo(w io.Writer, key, uniqueID string) {
	enc, ct, err := seals.Seal(key, uniqueID, code)
	if err != nil {
		panic(err)
	}
	_, _ = fmt.Fprintf(w, `{"outcome": "answered", "sealed": {"enc": %q, "ct": %q}}`, enc, ct)
}

func refusing(w http.ResponseWriter, status int, code string) bool {
	w.WriteHeader(status)
	_, _ = io.WriteString(w, problem(status, code))
	return true
}

func at(t *testing.T, made *desk) *client.Client {
	t.Helper()
	return clientTo(t, loopback.Serve(t, made.ServeHTTP).URL())
}

func askOTP(ctx context.Context, c *client.Client) (string, error) {
	return c.HumanFeedback(ctx, "The code?", client.HumanFeedbackOptions{UniqueID: "otp", Timeout: 10 * time.Second})
}

func TestAnAnswerIsOpenedAndAcknowledged(t *testing.T) {
	before := runtime.NumGoroutine()
	made := &desk{}
	server := loopback.Serve(t, made.ServeHTTP)
	c := clientTo(t, server.URL())
	answer, err := c.HumanFeedback(soon(t), "Which?", client.HumanFeedbackOptions{
		UniqueID: "otp", Options: []string{"a", "b"}, ExecutionID: "e", Timeout: 90 * time.Second,
	})
	if err != nil || answer != code || made.said() != "POST, GET 55, DELETE" {
		t.Errorf("%q, %v after %s", answer, err, made.said())
	}
	raw, _ := base64.StdEncoding.DecodeString(made.key(0))
	if len(raw) != 32 {
		t.Errorf("its key is %q", made.key(0))
	}
	delete(made.asked, "public_key")
	said, _ := json.Marshal(made.asked)
	sameJSON(t, string(said), `{"unique_id": "otp", "message_for_user": "Which?", "kind": "multiple_choice",
		"options": ["a", "b"], "timeout_seconds": 90, "execution_id": "e"}`)
	c.Close()
	server.Stop()
	loopback.Settled(t, before)
}

func TestEachQuestionHasAKeyAndAnIDOfItsOwn(t *testing.T) {
	made := &desk{ask: func(w http.ResponseWriter, _ int) bool { return refusing(w, 410, "request_expired") }}
	c := at(t, made)
	ids := map[string]bool{}
	for range 3 {
		if _, err := c.HumanFeedback(soon(t), "The code?", client.HumanFeedbackOptions{}); err == nil {
			t.Fatal("it was answered")
		}
		ids[made.asked["unique_id"].(string)] = true
	}
	if len(ids) != 3 || made.keys[0] == made.keys[1] || made.keys[1] == made.keys[2] {
		t.Errorf("ids %v, keys %v", ids, made.keys)
	}
}

func TestAnAnswerToAnotherKeyOrQuestionIsNotRead(t *testing.T) {
	other, err := seals.NewLock()
	if err != nil {
		t.Fatal(err)
	}
	var made *desk
	ways := map[string]func(w http.ResponseWriter){
		"another key":      func(w http.ResponseWriter) { sealedTo(w, other.PublicKey(), "otp") },
		"another question": func(w http.ResponseWriter) { sealedTo(w, made.key(0), "pin") },
		"no seal":          func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"outcome": "answered"}`) },
		"unknown outcome":  func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"outcome": "approved"}`) },
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			made = &desk{look: func(w http.ResponseWriter, _ *http.Request, _ int) bool { way(w); return true }}
			answer, err := askOTP(soon(t), at(t, made))
			if !errors.Is(err, client.ErrUnreadableAnswer) || answer != "" || made.said() != "POST, GET 55, DELETE" {
				t.Errorf("%q, %v after %s", answer, err, made.said())
			}
		})
	}
}

func TestAnAskerWhoLeavesWithdrawsTheQuestion(t *testing.T) {
	before := runtime.NumGoroutine()
	came := make(chan struct{})
	made := &desk{look: func(_ http.ResponseWriter, r *http.Request, _ int) bool {
		close(came)
		<-r.Context().Done()
		return true
	}}
	server := loopback.Serve(t, made.ServeHTTP)
	c := clientTo(t, server.URL())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := askOTP(ctx, c)
		ended <- err
	}()
	loopback.Soon(t, came)
	left := time.Now()
	cancel()
	err := loopback.Soon(t, ended)
	if !errors.Is(err, context.Canceled) || made.said() != "POST, GET 55, DELETE" || time.Since(left) > 2*time.Second {
		t.Errorf("%v after %s in %v", err, made.said(), time.Since(left))
	}
	c.Close()
	server.Stop()
	loopback.Settled(t, before)
}

func TestNobodyWaitsLongForTheLastWord(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	made := &desk{
		look: func(_ http.ResponseWriter, r *http.Request, _ int) bool {
			cancel()
			<-r.Context().Done()
			return true
		},
		end: func(r *http.Request) { <-r.Context().Done() },
	}
	began := time.Now()
	_, err := askOTP(ctx, at(t, made))
	if took := time.Since(began); !errors.Is(err, context.Canceled) || took > 5*time.Second {
		t.Errorf("%v after %v", err, took)
	}
}

func TestADeadlineEndsAQuestionToo(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	made := &desk{look: func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		_, _ = io.WriteString(w, `{"outcome": "pending"}`)
		return true
	}}
	_, err := askOTP(ctx, at(t, made))
	if !errors.Is(err, context.DeadlineExceeded) || made.said() != "POST, GET 55, DELETE" {
		t.Errorf("%v after %s", err, made.said())
	}
}

func TestAnEndedContextAsksNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	made := &desk{}
	if _, err := askOTP(ctx, at(t, made)); !errors.Is(err, context.Canceled) || made.said() != "" {
		t.Errorf("%v after %s", err, made.said())
	}
}

func TestAQuestionThatIsNotKnownAnyMoreIsAskedAgainOnce(t *testing.T) {
	made := &desk{look: func(w http.ResponseWriter, _ *http.Request, nth int) bool {
		return nth == 1 && refusing(w, 404, "request_not_found")
	}}
	answer, err := askOTP(soon(t), at(t, made))
	if err != nil || answer != code || made.said() != "POST, GET 55, POST, GET 55, DELETE" || made.key(0) != made.key(1) {
		t.Errorf("%q, %v after %s", answer, err, made.said())
	}
	made = &desk{look: func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		return refusing(w, 404, "request_not_found")
	}}
	_, err = askOTP(soon(t), at(t, made))
	if !errors.Is(err, client.ErrNotFound) || made.said() != "POST, GET 55, POST, GET 55, DELETE" {
		t.Errorf("%v after %s", err, made.said())
	}
}

func lostThenUsed(w http.ResponseWriter, nth int) bool {
	if nth > 1 {
		return refusing(w, 409, "request_id_used")
	}
	if connection, _, err := w.(http.Hijacker).Hijack(); err == nil {
		_ = connection.Close()
	}
	return true
}

func TestAnAnswerToAnAskWhoseReplyWasLostIsRead(t *testing.T) {
	made := &desk{ask: lostThenUsed}
	answer, err := askOTP(soon(t), at(t, made))
	if err != nil || answer != code || made.said() != "POST, POST, GET 0, DELETE" {
		t.Errorf("%q, %v after %s", answer, err, made.said())
	}
}

func TestAnIDThatAnotherUsedUpIsRefusedAndNothingOfTheirsIsEnded(t *testing.T) {
	other, err := seals.NewLock()
	if err != nil {
		t.Fatal(err)
	}
	ways := map[string]func(w http.ResponseWriter) bool{
		"not ours":      func(w http.ResponseWriter) bool { return refusing(w, 404, "request_not_found") },
		"taken":         func(w http.ResponseWriter) bool { return refusing(w, 410, "answer_taken") },
		"another's key": func(w http.ResponseWriter) bool { sealedTo(w, other.PublicKey(), "otp"); return true },
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			made := &desk{ask: lostThenUsed}
			made.look = func(w http.ResponseWriter, _ *http.Request, _ int) bool { return way(w) }
			_, err := askOTP(soon(t), at(t, made))
			if !errors.Is(err, client.ErrRequestIDUsed) || made.said() != "POST, POST, GET 0" {
				t.Errorf("%v after %s", err, made.said())
			}
		})
	}
}

func TestAQuestionThatIsOverIsAnErrorOfItsOwn(t *testing.T) {
	over := map[string]error{
		"request_expired": client.ErrFeedbackExpired, "request_cancelled": client.ErrFeedbackCancelled,
		"answer_taken": client.ErrAnswerTaken,
	}
	for word, kind := range over {
		made := &desk{look: func(w http.ResponseWriter, _ *http.Request, _ int) bool { return refusing(w, 410, word) }}
		answer, err := askOTP(soon(t), at(t, made))
		if !errors.Is(err, kind) || !errors.Is(err, client.ErrFeedbackEnded) || answer != "" ||
			made.said() != "POST, GET 55" {
			t.Errorf("%s: %q, %v after %s", word, answer, err, made.said())
		}
	}
	made := &desk{ask: func(w http.ResponseWriter, _ int) bool { return refusing(w, 409, "duplicate_request") }}
	if _, err := askOTP(soon(t), at(t, made)); !errors.Is(err, client.ErrDuplicateRequest) || made.said() != "POST" {
		t.Errorf("%v after %s", err, made.said())
	}
}

func TestARestartBetweenAskAndAnswerIsNotNoticed(t *testing.T) {
	came := make(chan struct{}, 1)
	made := &desk{look: func(_ http.ResponseWriter, r *http.Request, nth int) bool {
		if nth == 1 {
			came <- struct{}{}
			<-r.Context().Done()
		}
		return nth == 1
	}}
	server := loopback.Serve(t, made.ServeHTTP)
	c := clientTo(t, server.URL())
	ended := make(chan string, 1)
	go func() {
		answer, err := askOTP(soon(t), c)
		ended <- fmt.Sprint(answer, " ", err)
	}()
	loopback.Soon(t, came)
	server.Stop()
	server.Start(made.ServeHTTP)
	if got := loopback.Soon(t, ended); got != code+" <nil>" {
		t.Errorf("it ended with %s after %s", got, made.said())
	}
}

func TestWhatCannotBeAskedIsNotSent(t *testing.T) {
	made := &desk{}
	c := at(t, made)
	for field, options := range map[string]client.HumanFeedbackOptions{
		"unique_id":       {UniqueID: "a b"},
		"timeout_seconds": {Timeout: time.Hour},
		"kind":            {Kind: "form"},
		"options":         {Options: []string{}},
	} {
		_, err := c.HumanFeedback(soon(t), "The code?", options)
		named(t, err, field)
	}
	_, err := c.HumanFeedback(soon(t), " ", client.HumanFeedbackOptions{})
	named(t, err, "message_for_user")
	if made.said() != "" {
		t.Errorf("it sent %s", made.said())
	}
}

func TestAnAnswerThatIsGivenAgainIsTheSameAnswer(t *testing.T) {
	c, server := script(t, problem(503, "database_unavailable"), `{"unique_id": "u", "status": "success"}`)
	if _, err := c.SubmitFeedback(soon(t), client.Submission{UniqueID: "u", Response: "1"}); err != nil {
		t.Fatal(err)
	}
	said := server.all()
	if len(said) != 2 || said[0].body != said[1].body || !strings.Contains(said[0].body, `"submission_id":"submission-`) {
		t.Errorf("it said %+v", said)
	}
}

func TestWhatWaitsForAPersonIsListedWithoutAnswers(t *testing.T) {
	c, _ := script(t, `{"requests": [{"unique_id": "u", "message_for_user": "The code?", "kind": "secret", "options": null,
		"allow_feedback": true, "context": "Soon.", "expires_at": "2026-06-01T10:00:00Z", "later": 1}]}`)
	listed, err := c.PendingFeedback(soon(t))
	if err != nil || len(listed) != 1 || listed[0].UniqueID != "u" ||
		listed[0].Kind != "secret" || !listed[0].AllowFeedback {
		t.Errorf("%+v, %v", listed, err)
	}
	for _, unclear := range []string{`{"requests": [{}]}`, `{"requests": null}`, `{"requests": [7]}`} {
		c, _ := script(t, unclear)
		if listed, err := c.PendingFeedback(soon(t)); !errors.Is(err, client.ErrRefused) || listed != nil {
			t.Errorf("%s: %+v, %v", unclear, listed, err)
		}
	}
}
