package client

import (
	"net/http"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/webhooks"
)

// Verified says what proved a webhook: the scheme, and the id that tells repeats apart.
type Verified = webhooks.Verified

// SignOptions say how SignWebhook proves a body.
type SignOptions = webhooks.SignOptions

// VerifyWebhook proves that one of the secrets, newest first, signed exactly this body, not more than 300 s from now;
// the zero time means the present. The package webhooks reads what the body says.
//
// It fails with ErrStaleSignature where a signature holds but its time is too far away, and else with
// ErrInvalidSignature, whose code is invalid_signature, missing_signature or not_configured.
func VerifyWebhook(header http.Header, body []byte, secrets []string, now time.Time) (Verified, error) {
	return webhooks.Verify(header, body, secrets, now)
}

// SignWebhook returns the headers that prove a body to whoever has the secret. It fails for an empty secret, for a
// scheme that is not known, and for an id or a time that no receiver takes.
func SignWebhook(secret string, body []byte, options SignOptions) (http.Header, error) {
	return webhooks.Sign(secret, body, options)
}
