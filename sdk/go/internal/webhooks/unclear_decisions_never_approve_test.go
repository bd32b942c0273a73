package webhooks_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/holdshort/holdshort/sdk/go/internal/errs"
	"github.com/holdshort/holdshort/sdk/go/internal/vectors"
	"github.com/holdshort/holdshort/sdk/go/internal/webhooks"
)

type bodyCase struct {
	Name    string
	Body    string
	Outcome struct {
		Error       string
		Status      string
		Type        string
		RequestID   string `json:"request_id"`
		ExecutionID string `json:"execution_id"`
		Decision    string
		Feedback    string
		Response    any
	}
}

func bodyCases(t testing.TB) []bodyCase {
	t.Helper()
	var file struct{ Cases []bodyCase }
	vectors.Load(t, "webhook_bodies", &file)
	return file.Cases
}

// code is that of a refused body, "" where it was read.
func code(t testing.TB, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var found *errs.Error
	if !errors.As(err, &found) || !errors.Is(err, errs.ErrBadRequest) {
		t.Fatalf("refused with %v", err)
	}
	return found.Code
}

func TestEveryBodyIsReadAsInEveryLanguage(t *testing.T) {
	cases := bodyCases(t)
	for _, given := range cases {
		read, err := webhooks.ReadDecision([]byte(given.Body))
		if got := code(t, err); got != given.Outcome.Error {
			t.Errorf("%s: %s", given.Name, got)
		}
		wanted := given.Outcome
		expected := webhooks.Reading{
			Ignored: wanted.Type, RequestID: wanted.RequestID, ExecutionID: wanted.ExecutionID,
			Decision: wanted.Decision, Feedback: wanted.Feedback, Response: read.Response,
		}
		if !reflect.DeepEqual(read, expected) {
			t.Errorf("%s: read as %+v", given.Name, read)
		}
		if got := decoded(t, read.Response); !reflect.DeepEqual(got, wanted.Response) {
			t.Errorf("%s: the response is %v", given.Name, got)
		}
		if (read.Ignored != "") != (wanted.Status == "ignored") {
			t.Errorf("%s: ignored as %q", given.Name, read.Ignored)
		}
	}
	vectors.Ran(t, "webhook_bodies", len(cases), 46)
}

func decoded(t testing.TB, raw json.RawMessage) any {
	t.Helper()
	if raw == nil {
		return nil
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestEveryWordMeansWhatItMeansInEveryLanguage(t *testing.T) {
	var file struct {
		Accepted map[string]string
		Refused  []any
	}
	vectors.Load(t, "decisions", &file)
	for word, expected := range file.Accepted {
		if got, err := webhooks.DecisionWord(word); got != expected || err != nil {
			t.Errorf("%q means %q, %v", word, got, err)
		}
	}
	for _, word := range file.Refused {
		got, err := webhooks.DecisionWord(word)
		if got != "" || code(t, err) != "invalid_decision" {
			t.Errorf("%v means %q", word, got)
		}
	}
	vectors.Ran(t, "decisions", len(file.Accepted)+len(file.Refused), 70)
}

const anID = `"requestId":"r1",`

// unclearBodies are bodies beyond the vectors, with the code that each of them is refused with.
var unclearBodies = map[string]string{
	`{` + anID + `"decision":["approved"]}`:                                                       "invalid_decision",
	`{` + anID + `"decision":"\u212Aapprove"}`:                                                    "invalid_decision",
	`{` + anID + `"decision":"approved","response":{"decision":"reject"}}`:                        "decision_conflict",
	`{` + anID + `"decision":"approved","type":"expired","data":{}}`:                              "decision_conflict",
	`{` + anID + `"decision":"approved","type":"x","data":{"response":{"action":"deny"}}}`:        "decision_conflict",
	`{` + anID + `"decision":"approved","type":"x","data":{"requestId":"r2"}}`:                    "invalid_body",
	`{"type":"completed","decision":"reject","data":{"id":"r1","response":{"action":"approve"}}}`: "decision_conflict",
	`{"type":"completed","decision":"x","data":{"id":"r1","response":{"action":"approve"}}}`:      "invalid_decision",
	`{"type":"completed","data":{"id":"r1","response":{"decision":"approve","action":"later"}}}`:  "invalid_decision",
	`{"type":"completed","data":{"id":"r1","requestId":"r2","response":{"decision":"approve"}}}`:  "invalid_body",
	`{"type":"completed","data":{"id":"r1","response":"approved"}}`:                               "decision_missing",
	`{"type":"ping","decision":"approved","data":{}}`:                                             "decision_conflict",
	`{"type":"completed","data":[]}`:                                                              "request_id_missing",
	`{"requestId":"\u001c","decision":"approved"}`:                                                "request_id_missing",
	`{"requestId":"a\u2028","decision":"approved"}`:                                               "invalid_body",
	`{"requestId":"` + strings.Repeat("é", 257) + `","decision":"approved"}`:                      "invalid_body",
	`{"requestId":"apr_1","approval_id":"apr_2","decision":"approved"}`:                           "invalid_body",
	`{"requestId":"apr_/","decision":"approved"}`:                                                 "invalid_body",
	`{"approval_id":"","decision":"approved"}`:                                                    "invalid_body",
	`{"approval_id":"..","decision":"approved"}`:                                                  "invalid_body",
	`{` + anID + `"executionId":"e1","execution_id":"e2","decision":"approved"}`:                  "invalid_body",
	`{` + anID + `"executionId":"","decision":"approved"}`:                                        "invalid_body",
	`{` + anID + `"round":0,"decision":"approved"}`:                                               "invalid_body",
	`{` + anID + `"round":1.0,"decision":"approved"}`:                                             "invalid_body",
	`{` + anID + `"round":1e0,"decision":"approved"}`:                                             "invalid_body",
	`{` + anID + `"round":"1","decision":"approved"}`:                                             "invalid_body",
	`{` + anID + `"round":true,"decision":"approved"}`:                                            "invalid_body",
	`{` + anID + `"round":2147483648,"decision":"approved"}`:                                      "invalid_body",
	`{"type":"expired","round":1,"data":{"id":"r1","round":2}}`:                                   "invalid_body",
	`{` + anID + `"decision":"approved","response":{"values":{"a":1}},"values":{"a":1.0}}`:        "invalid_body",
	`{` + anID + `"decision":"approved","response":[],"values":{"a":1}}`:                          "invalid_body",
	`{` + anID + `"decision":"approved"`:                                                          "invalid_body",
	`{` + anID + `"Decision":"approved"}`:                                                         "decision_missing",
}

func TestWhatIsUnclearNeverApproves(t *testing.T) {
	for raw, expected := range unclearBodies {
		read, err := webhooks.ReadDecision([]byte(raw))
		if got := code(t, err); got != expected {
			t.Errorf("%s: %s", raw, got)
		}
		if !reflect.DeepEqual(read, webhooks.Reading{}) {
			t.Errorf("%s: something was read: %+v", raw, read)
		}
	}
}

var clearBodies = map[string]webhooks.Reading{
	`{"requestId":"apr_1","approval_id":"apr_1","decision":"approved","round":2}`: {
		ApprovalID: "apr_1", Decision: "approved", Round: 2,
	},
	`{"requestId":" ","approval_id":"apr_1","decision":"deny"}`: {ApprovalID: "apr_1", Decision: "rejected"},
	`{"requestId":"` + strings.Repeat("é", 256) + `","decision":"deny"}`: {
		RequestID: strings.Repeat("é", 256), Decision: "rejected",
	},
	`{"type":"","data":{},"requestId":"r","decision":"deny"}`: {RequestID: "r", Decision: "rejected"},
	`{"requestId":"r","decision":"approved","values": {"a" : 1.10} }`: {
		RequestID: "r", Decision: "approved", Response: json.RawMessage(`{"values":{"a" : 1.10}}`),
	},
	`{"requestId":"r","decision":"approved","values":{"a":1},"response":{"values":{ "a":1},"x":0}}`: {
		RequestID: "r", Decision: "approved", Response: json.RawMessage(`{"values":{ "a":1},"x":0}`),
	},
	`{"type":"request.expired","decision":"expired","execution_id":"e","round":1,"data":{"id":"r","round":1}}`: {
		RequestID: "r", ExecutionID: "e", Round: 1, Decision: "expired",
	},
	`{"requestId":"r","decision":"approved","feedback":"","response":{"feedback":"x"}}`: {
		RequestID: "r", Decision: "approved", Response: json.RawMessage(`{"feedback":"x"}`),
	},
}

func TestWhatIsClearIsReadWhole(t *testing.T) {
	for raw, expected := range clearBodies {
		read, err := webhooks.ReadDecision([]byte(raw))
		if err != nil || !reflect.DeepEqual(read, expected) {
			t.Errorf("%s: read as %+v, %v", raw, read, err)
		}
	}
}

func TestAResponseOutlivesTheBodyItCameIn(t *testing.T) {
	raw := []byte(`{"requestId":"r","decision":"approved","response":{"a":1}}`)
	read, err := webhooks.ReadDecision(raw)
	if err != nil {
		t.Fatal(err)
	}
	copy(raw, bytes.Repeat([]byte("x"), len(raw)))
	if string(read.Response) != `{"a":1}` {
		t.Errorf("it became %s", read.Response)
	}
}

func TestARefusedFieldIsNamed(t *testing.T) {
	_, err := webhooks.ReadDecision([]byte(`{"requestId":7,"decision":"approved"}`))
	var found *errs.Error
	if !errors.As(err, &found) {
		t.Fatal(err)
	}
	raw, _ := json.Marshal(found.Details)
	if string(raw) != `{"errors":[{"field":"requestId","rule":"must be a string"}]}` {
		t.Errorf("the details are %s", raw)
	}
}

func FuzzReadDecision(f *testing.F) {
	for _, given := range bodyCases(f) {
		f.Add([]byte(given.Body))
	}
	for raw := range unclearBodies {
		f.Add([]byte(raw))
	}
	for raw := range clearBodies {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		read, err := webhooks.ReadDecision(raw)
		if code(t, err) != "" {
			if !reflect.DeepEqual(read, webhooks.Reading{}) {
				t.Fatalf("refused, and read as %+v", read)
			}
			return
		}
		means(t, raw, read)
	})
}

// means holds a reading against the words that stand in the same bytes for another reader.
func means(t *testing.T, raw []byte, read webhooks.Reading) {
	t.Helper()
	var top map[string]any
	if err := json.Unmarshal(raw, &top); err != nil {
		t.Fatalf("no JSON object was read: %v", err)
	}
	data, _ := top["data"].(map[string]any)
	inner, _ := data["response"].(map[string]any)
	flat, enveloped := word(top["decision"]), word(inner["decision"])+word(inner["action"])
	switch {
	case read.Ignored != "":
		if flat+enveloped != "" || read.Decision != "" {
			t.Fatalf("ignored, and it decides: %+v", read)
		}
	case read.RequestID == "" && read.ApprovalID == "":
		t.Fatal("it decides about nothing")
	case flat != "" && flat != read.Decision:
		t.Fatalf("%s was read as %s", flat, read.Decision)
	case flat == "" && read.Decision != webhooks.Expired && !strings.Contains(enveloped, read.Decision):
		t.Fatalf("%s was read as %s", enveloped, read.Decision)
	}
}

// word is the decision that a value means, "" for none.
func word(value any) string {
	decision, _ := webhooks.DecisionWord(value)
	return decision
}
