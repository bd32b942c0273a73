package client_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/holdshort/holdshort/sdk/go/client"
)

func statusOf(t *testing.T, text string) client.ApprovalStatus {
	t.Helper()
	var status client.ApprovalStatus
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		t.Fatal(err)
	}
	return status
}

func TestEachDecisionIsItselfAndNothingElse(t *testing.T) {
	for i, decision := range []client.Decision{
		client.Approved, client.Rejected, client.ChangesRequested, client.Expired, client.Withdrawn,
	} {
		status := statusOf(t, standing(string(decision), answerOf(string(decision), `null`)))
		result, err := status.Result()
		if err != nil || !status.Final() {
			t.Fatal(decision, err)
		}
		asks := []bool{
			result.Approved(), result.Rejected(), result.ChangesRequested(), result.Expired(), result.Withdrawn(),
		}
		for j, said := range asks {
			if said != (i == j) {
				t.Errorf("%s: the question %d is answered by %v", decision, j, said)
			}
		}
		if result.Feedback != "f" || result.ExecutionID != "e" || result.ApprovalRequestID != "r" ||
			result.ApprovalID != "apr_1" || result.Round != 1 || result.Data != nil {
			t.Errorf("%+v", result)
		}
	}
}

func TestNothingElseIsAnApproval(t *testing.T) {
	if (client.ApprovalResult{}).Approved() {
		t.Error("nothing is an approval")
	}
	for _, word := range []string{"pending", "Approved", "APPROVED", "approved ", "approve", "yes", "true", "granted"} {
		status := statusOf(t, standing(word, answerOf("approved", `true`)))
		result, err := status.Result()
		if !errors.Is(err, client.ErrRefused) || result.Approved() || status.Final() {
			t.Errorf("%q became %+v, %v", word, result, err)
		}
	}
	for _, word := range []string{"rejected", "expired", "request_changes", "withdrawn"} {
		result, err := statusOf(t, standing(word, answerOf("approved", `{"values": 1}`))).Result()
		if err != nil || result.Approved() || result.Values != nil || result.Original != nil {
			t.Errorf("%q became %+v, %v", word, result, err)
		}
	}
}

func TestAnApprovalThatIsNotNamedIsNone(t *testing.T) {
	whole := standing("approved", answerOf("approved", `null`))
	for _, missing := range []string{"approval_id", "approval_request_id", "execution_id", "round", "status", "decision"} {
		text := strings.Replace(whole, `"`+missing+`"`, `"other"`, 1)
		var status client.ApprovalStatus
		if err := json.Unmarshal([]byte(text), &status); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("without %s: %v", missing, err)
		}
	}
	for _, status := range []string{`{"a": {"status": "approved"}}`, `[]`, `"approved"`, `{"status": ["approved"]}`} {
		var approval client.Approval
		if err := json.Unmarshal([]byte(status), &approval); err == nil {
			t.Errorf("%s became %+v", status, approval)
		}
	}
}

func TestAnAskThatFindsADecisionHasItsResult(t *testing.T) {
	var asked client.Asked
	stands := standing("approved", answerOf("approved", `{"values": {"n": 1.50}}`))
	if err := json.Unmarshal([]byte(stands), &asked); err != nil {
		t.Fatal(err)
	}
	result, err := asked.Result("run-1")
	if err != nil || !asked.Final() || !result.Approved() || result.ExecutionID != "run-1" ||
		string(result.Values) != `{"n": 1.50}` {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestValuesComeFromWhatWasFilledIn(t *testing.T) {
	cases := []struct{ data, values, original string }{
		{`{"values": 12345678901234567890, "original": {"a": 1.0}}`, `12345678901234567890`, `{"a": 1.0}`},
		{`{"values": null, "original": 3}`, ``, `3`},
		{`{"original": 3}`, ``, ``},
		{`[{"values": 1}]`, ``, ``},
		{`"values"`, ``, ``},
		{`{"values": false}`, `false`, ``},
	}
	for _, given := range cases {
		result, err := statusOf(t, standing("approved", answerOf("approved", given.data))).Result()
		if err != nil || string(result.Values) != given.values || string(result.Original) != given.original ||
			string(result.Data) != given.data {
			t.Errorf("%s became %+v, %v", given.data, result, err)
		}
	}
}

func TestAResultIsWrittenAndReadAgainAsItWas(t *testing.T) {
	result, err := statusOf(t, standing("approved", answerOf("approved", `{"values":[1e2],"x":0.10}`))).Result()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, string(raw), `{"decision": "approved", "feedback": "f", "execution_id": "e", "approval_request_id": "r",
		"approval_id": "apr_1", "round": 1, "data": {"values": [100], "x": 0.1}, "values": [100], "original": null}`)
	var again client.ApprovalResult
	if err := json.Unmarshal(raw, &again); err != nil || !reflect.DeepEqual(again, result) {
		t.Errorf("%+v, %v", again, err)
	}
}
