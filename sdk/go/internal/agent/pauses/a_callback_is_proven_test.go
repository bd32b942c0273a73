package pauses_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/holdshort/holdshort/sdk/go/client"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/pauses"
	"github.com/holdshort/holdshort/sdk/go/internal/vectors"
)

type callbackCases struct {
	Waiting struct {
		ExecutionID       string `json:"execution_id"`
		ApprovalRequestID string `json:"approval_request_id"`
		Round             int    `json:"round"`
	} `json:"waiting"`
	Cases []struct {
		Name    string            `json:"name"`
		Secret  string            `json:"secret"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body_base64"`
		Expect  struct {
			Status   int            `json:"status"`
			Resolved *bool          `json:"resolved"`
			Error    string         `json:"error"`
			Result   map[string]any `json:"result"`
		} `json:"expect"`
	} `json:"cases"`
}

func TestACallbackIsProvenAndResumesThePauseItIsFor(t *testing.T) {
	var file callbackCases
	vectors.Load(t, "callbacks", &file)
	if len(file.Cases) < 48 {
		t.Fatalf("only %d cases", len(file.Cases))
	}
	registry := pauses.NewRegistry()
	server := receiving(registry)
	defer server.Close()
	key := pauses.Key{
		ExecutionID: file.Waiting.ExecutionID, ApprovalRequestID: file.Waiting.ApprovalRequestID, Round: file.Waiting.Round,
	}
	ran := 0
	for _, each := range file.Cases {
		pause := registry.Register(key)
		pause.Secret = each.Secret
		body, err := base64.StdEncoding.DecodeString(each.Body)
		if err != nil {
			t.Fatal(err)
		}
		status, answer := post(t, server.URL, each.Headers, body)
		if status != each.Expect.Status || answer["error"] != orNil(each.Expect.Error) {
			t.Errorf("%s: %d %v", each.Name, status, answer)
		}
		if each.Expect.Resolved != nil && answer["resolved"] != *each.Expect.Resolved {
			t.Errorf("%s: %v", each.Name, answer)
		}
		outcome, settled := registry.Outcome(pause)
		if settled != (each.Expect.Result != nil) {
			t.Errorf("%s: it was resumed: %t", each.Name, settled)
		}
		if settled && !reflect.DeepEqual(plain(t, outcome.Result), any(each.Expect.Result)) {
			t.Errorf("%s: resumed with %v", each.Name, plain(t, outcome.Result))
		}
		registry.Release(key, pause)
		ran++
	}
	vectors.Ran(t, "callbacks", ran, len(file.Cases))
}

func receiving(registry *pauses.Registry) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		registry.Receive(r.Header, body.Bytes()).Send(w)
	}))
}

func post(t *testing.T, url string, headers map[string]string, body []byte) (int, map[string]any) {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	told := map[string]any{}
	if err := json.NewDecoder(answer.Body).Decode(&told); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, told
}

func plain(t *testing.T, result client.ApprovalResult) any {
	t.Helper()
	raw, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	var members any
	if err := json.Unmarshal(raw, &members); err != nil {
		t.Fatal(err)
	}
	return members
}

func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func TestTheFirstOutcomeStandsAndIsRemembered(t *testing.T) {
	registry := pauses.NewRegistry()
	key := pauses.Key{ExecutionID: "run-1", ApprovalRequestID: "x", Round: 1}
	first, second := registry.Register(key), registry.Register(key)
	if first != second || len(first.Secret) < 16 {
		t.Fatal("two who wait under one key do not share their pause")
	}
	answer := client.ApprovalResult{
		ExecutionID: "run-1", ApprovalRequestID: "x", Round: 1, Decision: client.Rejected,
	}
	later := answer
	later.Decision = client.Approved
	if !registry.Resolve(answer) || !registry.Resolve(later) {
		t.Error("an answer for somebody who waits was for nobody")
	}
	registry.HandBack()
	if outcome, _ := registry.Outcome(first); outcome.Result.Decision != client.Rejected || outcome.End != nil {
		t.Errorf("the outcome became %+v", outcome)
	}
	registry.Release(key, first)
	registry.Release(key, second)
	if !registry.Resolve(answer) {
		t.Error("a repeated answer is for nobody")
	}
	if secret, known := registry.Secret(key); !known || secret != first.Secret {
		t.Error("the secret of an answered pause is forgotten")
	}
	gaveUp := pauses.Key{ExecutionID: "run-1", ApprovalRequestID: "y", Round: 1}
	registry.Release(gaveUp, registry.Register(gaveUp))
	if _, known := registry.Secret(gaveUp); known {
		t.Error("the secret of a pause that was given up is kept")
	}
}

func TestRoundsAreTheSameOnEveryReplay(t *testing.T) {
	rounds := pauses.NewRounds()
	first, second := rounds.Next("run-1", "x"), rounds.Next("run-1", "x")
	rounds.GiveBack(first)
	if third := rounds.Next("run-1", "x"); third.Round != 3 {
		t.Errorf("after a later round was begun, the next is %d", third.Round)
	}
	rounds.GiveBack(pauses.Key{ExecutionID: "run-1", ApprovalRequestID: "x", Round: 3})
	if again := rounds.Next("run-1", "x"); again.Round != 3 || second.Round != 2 {
		t.Errorf("a round that was given back is asked as %d", again.Round)
	}
	if one, two := rounds.MadeID("works"), rounds.MadeID("works/left"); one != "pause:works:1" || two != "pause:works/left:1" {
		t.Errorf("made %s and %s", one, two)
	}
	if next := rounds.MadeID("works"); next != "pause:works:2" {
		t.Errorf("made %s", next)
	}
}
