package pauses_test

import (
	"net/http"
	"testing"

	"github.com/holdshort/holdshort/sdk/go/internal/agent/pauses"
)

// Whatever is sent without the secret is answered, and resumes nobody.
func FuzzCallback(f *testing.F) {
	f.Add([]byte(`{"execution_id":"run-1","approval_request_id":"x","approval_id":"a","round":1,"decision":"approved"}`), "v1,x")
	f.Add([]byte(`{"round":1e400}`), "")
	f.Add([]byte(`[[[[`), "v1,AAAA v1a,AAAA")
	key := pauses.Key{ExecutionID: "run-1", ApprovalRequestID: "x", Round: 1}
	f.Fuzz(func(t *testing.T, body []byte, signature string) {
		registry := pauses.NewRegistry()
		pause := registry.Register(key)
		header := http.Header{
			"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {"1"}, "Webhook-Signature": {signature},
			"X-Webhook-Signature": {signature},
		}
		answer := registry.Receive(header, body)
		if _, settled := registry.Outcome(pause); settled || answer.Body["resolved"] == true {
			t.Errorf("%q resumed a pause", body)
		}
		if answer.Status != 200 && answer.Status != 400 && answer.Status != 401 {
			t.Errorf("%q was answered %d", body, answer.Status)
		}
	})
}
