package webhooks_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/errs"
	"github.com/holdshort/holdshort/sdk/go/internal/vectors"
	"github.com/holdshort/holdshort/sdk/go/internal/webhooks"
)

type signatureCase struct {
	Name    string
	Secrets []string
	Now     int64
	Headers map[string]string
	Body    []byte `json:"body_base64"`
	Outcome string
}

func signatureCases(t testing.TB) []signatureCase {
	t.Helper()
	var file struct{ Cases []signatureCase }
	vectors.Load(t, "signatures", &file)
	return file.Cases
}

// asSent has the names as the vector spells them, which is not how net/http does.
func (c signatureCase) asSent() http.Header {
	made := http.Header{}
	for name, value := range c.Headers {
		made[name] = []string{value}
	}
	return made
}

func (c signatureCase) canonical() http.Header {
	made := http.Header{}
	for name, value := range c.Headers {
		made.Set(name, value)
	}
	return made
}

// outcome is "valid" or the code of the error, which must be of the kind that belongs to the code.
func outcome(t testing.TB, err error) string {
	t.Helper()
	if err == nil {
		return "valid"
	}
	var found *errs.Error
	if !errors.As(err, &found) || !errors.Is(err, errs.ErrInvalidSignature) {
		t.Fatalf("refused with %v", err)
	}
	if errors.Is(err, errs.ErrStaleSignature) != (found.Code == "stale_signature") {
		t.Fatalf("%s is %s", found.Code, found.Kind)
	}
	return found.Code
}

func TestEverySignatureIsJudgedAsInEveryLanguage(t *testing.T) {
	cases := signatureCases(t)
	for _, given := range cases {
		now := time.Unix(given.Now, 0)
		for _, header := range []http.Header{given.asSent(), given.canonical()} {
			verified, err := webhooks.Verify(header, given.Body, given.Secrets, now)
			if got := outcome(t, err); got != given.Outcome {
				t.Errorf("%s: %s", given.Name, got)
			}
			id := header.Get("webhook-id")
			if err == nil && (verified.WebhookID != "") != (verified.Scheme == webhooks.SchemeStandard) {
				t.Errorf("%s: the scheme is %s, and the id %q", given.Name, verified.Scheme, id)
			}
			if err != nil && verified != (webhooks.Verified{}) {
				t.Errorf("%s: a refusal proves %v", given.Name, verified)
			}
		}
	}
	vectors.Ran(t, "signatures", len(cases), 56)
}
