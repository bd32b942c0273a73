package webhooks_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/webhooks"
)

const secret = "a-secret-of-21-letters"

var (
	now     = time.Unix(1_790_000_000, 0)
	body    = []byte(`{"requestId":"r1","decision":"approved"}`)
	schemes = []webhooks.Scheme{webhooks.SchemeBody, webhooks.SchemeTimestamped, webhooks.SchemeStandard, ""}
	secrets = []string{secret, "whsec_MDEyMzQ1Njc4OWFiY2RlZg==", "whsec_", "whsec_not base64", "é"}
)

func signed(t testing.TB, by string, options webhooks.SignOptions) http.Header {
	t.Helper()
	header, err := webhooks.Sign(by, body, options)
	if err != nil {
		t.Fatal(err)
	}
	return header
}

func signedNow(t testing.TB, by string, scheme webhooks.Scheme) http.Header {
	t.Helper()
	return signed(t, by, webhooks.SignOptions{Scheme: scheme, Now: now, WebhookID: "msg_1"})
}

func TestWhatIsSignedHereVerifiesHere(t *testing.T) {
	for _, by := range secrets {
		for _, scheme := range schemes {
			header := signedNow(t, by, scheme)
			found, err := webhooks.Verify(header, body, []string{"another", by}, now)
			if err != nil || (scheme != "" && found.Scheme != scheme) {
				t.Errorf("%s by %s: %v, %v", scheme, by, found, err)
			}
			if found.Scheme == webhooks.SchemeStandard && found.WebhookID != "msg_1" {
				t.Errorf("the id is %s", found.WebhookID)
			}
			_, err = webhooks.Verify(header, append(body, ' '), []string{by}, now)
			if got := outcome(t, err); got != "invalid_signature" {
				t.Errorf("another body by %s: %s", scheme, got)
			}
			_, err = webhooks.Verify(header, body, []string{"another"}, now)
			if got := outcome(t, err); got != "invalid_signature" {
				t.Errorf("another secret by %s: %s", scheme, got)
			}
		}
	}
}

func TestASignedTimeMayBe300SecondsFromNow(t *testing.T) {
	for _, scheme := range []webhooks.Scheme{webhooks.SchemeTimestamped, webhooks.SchemeStandard} {
		header := signedNow(t, secret, scheme)
		for seconds, expected := range map[int64]string{
			0: "valid", 300: "valid", -300: "valid", 301: "stale_signature", -301: "stale_signature",
			math.MaxInt64 - now.Unix(): "stale_signature", math.MinInt64: "stale_signature",
		} {
			_, err := webhooks.Verify(header, body, []string{secret}, time.Unix(now.Unix()+seconds, 0))
			if got := outcome(t, err); got != expected {
				t.Errorf("%s after %d s: %s", scheme, seconds, got)
			}
		}
	}
}

func TestWithoutATimeThePresentIsMeant(t *testing.T) {
	header := signed(t, secret, webhooks.SignOptions{WebhookID: "msg_1"})
	if _, err := webhooks.Verify(header, body, []string{secret}, time.Time{}); err != nil {
		t.Error(err)
	}
}

func TestNobodyProvesAnythingWithAnEmptySecret(t *testing.T) {
	made := hmac.New(sha256.New, nil)
	made.Write(body)
	forged := http.Header{"X-Webhook-Signature": {fmt.Sprintf("%x", made.Sum(nil))}}
	for _, configured := range [][]string{nil, {}, {""}, {"", ""}} {
		_, err := webhooks.Verify(forged, body, configured, now)
		if got := outcome(t, err); got != "not_configured" {
			t.Errorf("with %q it is %s", configured, got)
		}
	}
	_, err := webhooks.Verify(forged, body, []string{"", secret}, now)
	if got := outcome(t, err); got != "invalid_signature" {
		t.Errorf("beside a secret it is %s", got)
	}
	if _, err := webhooks.Sign("", body, webhooks.SignOptions{Scheme: webhooks.SchemeBody}); err == nil {
		t.Error("an empty secret signs")
	}
	standard := standardBy(nil, "msg_1", now.Unix())
	for _, empty := range []string{"", "whsec_", "whsec_===="} {
		if webhooks.StandardHolds(standard, body, empty) {
			t.Errorf("%q holds what an empty key signed", empty)
		}
	}
}

func TestOfManySecretsTheFirstFiveAreTried(t *testing.T) {
	header := signedNow(t, secret, webhooks.SchemeBody)
	if _, err := webhooks.Verify(header, body, []string{"", "1", "2", "3", "4", secret}, now); err != nil {
		t.Errorf("the fifth: %v", err)
	}
	if _, err := webhooks.Verify(header, body, []string{"1", "2", "3", "4", "5", secret}, now); err == nil {
		t.Error("the sixth is tried")
	}
}

func TestACallbackHoldsWhateverItsTime(t *testing.T) {
	header := signed(t, secret, webhooks.SignOptions{Now: time.Unix(1, 0), WebhookID: "msg_1"})
	if !webhooks.StandardHolds(header, body, secret) {
		t.Error("an old one does not hold")
	}
	if webhooks.StandardHolds(header, body, "another") || webhooks.StandardHolds(header, nil, secret) {
		t.Error("it holds for another secret or body")
	}
	for _, scheme := range []webhooks.Scheme{webhooks.SchemeBody, webhooks.SchemeTimestamped} {
		if webhooks.StandardHolds(signedNow(t, secret, scheme), body, secret) {
			t.Errorf("%s is taken for a callback's proof", scheme)
		}
	}
}

func TestWhatNoReceiverTakesIsNotSigned(t *testing.T) {
	for _, options := range []webhooks.SignOptions{
		{}, {WebhookID: "a.b"}, {WebhookID: "é"}, {WebhookID: "msg_1\n"}, {WebhookID: strings.Repeat("a", 129)},
		{WebhookID: "msg_1", Now: time.Unix(-1, 0)}, {WebhookID: "msg_1", Now: time.Unix(1_000_000_000_000, 0)},
		{Scheme: webhooks.SchemeTimestamped, Now: time.Unix(-1, 0)}, {Scheme: "none", WebhookID: "msg_1"},
	} {
		if header, err := webhooks.Sign(secret, body, options); err == nil || header != nil {
			t.Errorf("%+v makes %v", options, header)
		}
	}
}

func standardBy(key []byte, id string, at int64) http.Header {
	made := hmac.New(sha256.New, key)
	fmt.Fprintf(made, "%s.%d.%s", id, at, body)
	return http.Header{
		"Webhook-Id": {id}, "Webhook-Timestamp": {fmt.Sprint(at)},
		"Webhook-Signature": {"v1," + base64.StdEncoding.EncodeToString(made.Sum(nil))},
	}
}
