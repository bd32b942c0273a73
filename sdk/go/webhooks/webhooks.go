// Package webhooks signs decisions for the control plane, and verifies and reads those that were received.
//
// A receiver verifies the bytes as they came, then reads them:
//
//	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
//	...
//	if _, err := webhooks.Verify(r.Header, body, secrets, time.Now()); err != nil {
//		http.Error(w, err.Error(), http.StatusUnauthorized)
//		return
//	}
//	decision, err := webhooks.ReadDecision(body)
//
// Everything here fails closed: what is missing, unknown or unclear is an error and never an approval.
package webhooks

import (
	"net/http"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/digests"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
	"github.com/holdshort/holdshort/sdk/go/internal/webhooks"
)

// Error is what the functions of this package fail with, except Sign: Code says why.
type Error = errs.Error

// What errors.Is may be asked about an error of this package.
var (
	// ErrInvalidSignature is of Verify: nothing proves the body. The code is invalid_signature, missing_signature or
	// not_configured.
	ErrInvalidSignature = errs.ErrInvalidSignature
	// ErrStaleSignature is of Verify, and an ErrInvalidSignature: a signature holds, but its time is more than 300 s from
	// now. Check both clocks, or refuse it as a replay.
	ErrStaleSignature = errs.ErrStaleSignature
	// ErrBadRequest is of ReadDecision, DecisionWord and PayloadDigest: the body is not what it should be.
	ErrBadRequest = errs.ErrBadRequest
	// ErrInvalidField is of ParseSecrets: the setting has an entry that is none.
	ErrInvalidField = errs.ErrInvalidField
)

// Scheme is a way in which a webhook proves who sent it.
type Scheme = webhooks.Scheme

// The schemes: HMAC-SHA256 over the body alone, over the time and the body, and over id, time and body.
const (
	// SchemeBody is `X-Webhook-Signature: sha256=<hex>` over the body. It has no time, so it proves nothing about replays.
	SchemeBody = webhooks.SchemeBody
	// SchemeTimestamped is `X-Webhook-Signature: t=<seconds>,v1=<hex>`.
	SchemeTimestamped = webhooks.SchemeTimestamped
	// SchemeStandard is Standard Webhooks: webhook-id, webhook-timestamp and webhook-signature.
	SchemeStandard = webhooks.SchemeStandard
)

// The four answers that an approval can get.
const (
	Approved       = webhooks.Approved
	Rejected       = webhooks.Rejected
	RequestChanges = webhooks.RequestChanges
	Expired        = webhooks.Expired
)

// Tolerance is how far a signed time may be from now: 300 s.
const Tolerance = webhooks.Tolerance

// SecretsSetting is the environment variable that the control plane reads its senders' secrets from.
const SecretsSetting = webhooks.SecretsSetting

// SignOptions says how Sign proves a body: its Scheme, the time Now (the zero time means the present), and the WebhookID
// that the standard scheme needs, unique for each message.
type SignOptions = webhooks.SignOptions

// Verified says what proved a webhook: its Scheme and, in the standard one, the WebhookID for telling repeats apart.
type Verified = webhooks.Verified

// Reading is what the body of a webhook says: a decision, or an event that decides nothing (Ignored is its type).
type Reading = webhooks.Reading

// Secret is one sender's secret. Printing and logging it shows the sender only.
type Secret = webhooks.Secret

// Sign returns the headers that prove a body.
//
// secret is shared with the receiver; in the standard scheme `whsec_` and base64 is decoded. body is exactly what is
// sent. It fails for an empty secret, for a scheme that is not known, and for an id or a time that no receiver takes.
func Sign(secret string, body []byte, options SignOptions) (http.Header, error) {
	return webhooks.Sign(secret, body, options)
}

// Verify proves that one of the secrets signed exactly this body, not more than 300 s from now.
//
// header is as received, names in any case; body are the bytes as received, never parsed and written again. secrets are
// newest first and may be up to five; empty ones are none, as anybody could sign with them. The zero now means the
// present.
//
// It fails with ErrStaleSignature where one holds, but its time is too far away, and else with ErrInvalidSignature, whose
// code is invalid_signature, missing_signature (none was sent) or not_configured (there is no secret).
func Verify(header http.Header, body []byte, secrets []string, now time.Time) (Verified, error) {
	return webhooks.Verify(header, body, secrets, now)
}

// StandardHolds reports whether a Standard Webhooks signature holds under this secret, whatever its time.
//
// It is for callbacks, which tell again what stands: an old one does no harm. It is false for an empty secret.
func StandardHolds(header http.Header, body []byte, secret string) bool {
	return webhooks.StandardHolds(header, body, secret)
}

// ReadDecision reads the body of an approval webhook in either shape, the flat one and the envelope with type and data.
// Verify proves who sent it; do that first, over the same bytes.
//
// It fails closed where two readings are possible, always with ErrBadRequest. Its code is invalid_body (no strict JSON
// object, a field of the wrong type, two ids or rounds that disagree), request_id_missing, decision_missing,
// invalid_decision (a word that is not known) or decision_conflict (two words that disagree, or one in an event that
// decides nothing).
func ReadDecision(body []byte) (Reading, error) { return webhooks.ReadDecision(body) }

// DecisionWord is the decision that a word means: Approved, Rejected, RequestChanges or Expired.
//
// word is taken as a decoder of JSON gives it. ASCII letters count in any case, and ASCII space around them does not
// count. A word that is unknown, or no string at all, is ErrBadRequest with the code invalid_decision.
func DecisionWord(word any) (string, error) { return webhooks.DecisionWord(word) }

// ParseSecrets reads a setting of the form of HOLDSHORT_WEBHOOK_SECRETS: entries `secret` or `name:secret` with commas
// between them, newest first. "" means that none is configured.
//
// It fails with ErrInvalidField where an entry or a secret is empty, or is no UTF-8; the error shows no secret.
func ParseSecrets(setting string) ([]Secret, error) { return webhooks.ParseSecrets(setting) }

// PayloadDigest is the SHA-256 of a payload's canonical form, as 64 lower-case hex digits: the same for the same content
// however it is spaced, ordered or escaped. A decision that names it covers this payload and no other.
//
// raw is one JSON value as received; what parsers read in different ways is ErrBadRequest with the code invalid_body.
func PayloadDigest(raw []byte) (string, error) { return digests.PayloadDigest(raw) }
