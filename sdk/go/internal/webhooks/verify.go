package webhooks

import (
	"crypto/hmac"
	"net/http"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

const (
	maxSignatures = 10
	maxSecrets    = 5
)

// Verified says what proved a webhook.
type Verified struct {
	// Scheme is the one whose signature held.
	Scheme Scheme
	// WebhookID is for telling repeats apart; "" in the schemes other than the standard one.
	WebhookID string
}

// Verify proves that one of the secrets signed exactly this body, not more than 300 s from now.
//
// header is as received, names in any case; body are the bytes as received, never parsed and written again. secrets are
// newest first and may be up to five; empty ones are none, as anybody could sign with them. The zero now means the
// present.
//
// It fails with StaleSignature where one holds, but its time is too far away, and else with InvalidSignature, whose code
// is invalid_signature, missing_signature (none was sent) or not_configured (there is no secret).
func Verify(header http.Header, body []byte, secrets []string, now time.Time) (Verified, error) {
	usable := proper(secrets)
	if len(usable) == 0 {
		return Verified{}, unproven("not_configured", "no secret is configured, so nothing can be proven")
	}
	signatures := signaturesOf(header)
	if !signatures.sent() {
		return Verified{}, unproven("missing_signature", "no signature header was sent")
	}
	at, stale := orNow(now).Unix(), false
	for _, each := range signatures.candidates() {
		if !each.holds(body, usable) {
			continue
		}
		if each.fresh(at) {
			return Verified{Scheme: each.scheme, WebhookID: each.webhookID}, nil
		}
		stale = true
	}
	if stale {
		return Verified{}, errs.ErrStaleSignature.New("")
	}
	return Verified{}, errs.ErrInvalidSignature.New("")
}

// StandardHolds reports whether a Standard Webhooks signature holds under this secret, whatever its time.
//
// It is for callbacks, which tell again what stands: an old one does no harm. It is false for an empty secret.
func StandardHolds(header http.Header, body []byte, secret string) bool {
	usable := proper([]string{secret})
	for _, each := range signaturesOf(header).standard() {
		if each.holds(body, usable) {
			return true
		}
	}
	return false
}

func proper(secrets []string) []string {
	var usable []string
	for _, secret := range secrets {
		if secret != "" && len(usable) < maxSecrets {
			usable = append(usable, secret)
		}
	}
	return usable
}

func unproven(code, message string) error {
	refused := errs.ErrInvalidSignature.New(message)
	refused.Code = code
	return refused
}

func (c *candidate) holds(body []byte, secrets []string) bool {
	held := false
	for _, secret := range secrets {
		key := []byte(secret)
		if c.scheme == SchemeStandard {
			key = standardKey(secret)
		}
		held = hmac.Equal(mac(key, c.prefix, body), c.mac) || held
	}
	return held
}

func (c *candidate) fresh(now int64) bool {
	const tolerance = int64(Tolerance / time.Second)
	return !c.timed || (c.seconds-tolerance <= now && now <= c.seconds+tolerance)
}
