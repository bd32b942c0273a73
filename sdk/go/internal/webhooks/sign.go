// Package webhooks signs, verifies and reads the webhooks that carry decisions. Package
// github.com/holdshort/holdshort/sdk/go/webhooks is its door.
package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Scheme is a way in which a webhook proves who sent it.
type Scheme string

// The schemes: HMAC-SHA256 over the body alone, over the time and the body, and over id, time and body.
const (
	// SchemeBody is `X-Webhook-Signature: sha256=<hex>` over the body. It has no time, so it proves nothing about replays.
	SchemeBody Scheme = "body"
	// SchemeTimestamped is `X-Webhook-Signature: t=<seconds>,v1=<hex>`.
	SchemeTimestamped Scheme = "timestamped"
	// SchemeStandard is Standard Webhooks: webhook-id, webhook-timestamp and webhook-signature.
	SchemeStandard Scheme = "standard"
)

// Tolerance is how far a signed time may be from now.
const Tolerance = 300 * time.Second

const (
	signatureHeader = "X-Webhook-Signature"
	base64Prefix    = "whsec_"
	maxSeconds      = 999_999_999_999
)

// SignOptions says how Sign proves a body.
type SignOptions struct {
	// Scheme is SchemeStandard when empty.
	Scheme Scheme
	// Now goes into the schemes with a time, in whole seconds; the zero time means the present.
	Now time.Time
	// WebhookID is for the standard scheme, which needs one: unique for each message, 1-128 of A-Z a-z 0-9 _ and -.
	WebhookID string
}

// Sign returns the headers that prove a body.
//
// secret is shared with the receiver; in the standard scheme `whsec_` and base64 is decoded. body is exactly what is
// sent. It fails for an empty secret, for a scheme that is not known, and for an id or a time that no receiver takes.
func Sign(secret string, body []byte, options SignOptions) (http.Header, error) {
	if secret == "" {
		return nil, errors.New("holdshort: nothing is signed with an empty secret, as anybody could do the same")
	}
	if options.Scheme == SchemeBody {
		return headers(signatureHeader, "sha256="+hex.EncodeToString(mac([]byte(secret), "", body))), nil
	}
	seconds := orNow(options.Now).Unix()
	if seconds < 0 || seconds > maxSeconds {
		return nil, errors.New("holdshort: Now must be a time from 1970 on, in at most twelve digits of seconds")
	}
	at := strconv.FormatInt(seconds, 10)
	switch options.Scheme {
	case SchemeTimestamped:
		made := hex.EncodeToString(mac([]byte(secret), at+".", body))
		return headers(signatureHeader, "t="+at+",v1="+made), nil
	case SchemeStandard, "":
		if !isID(options.WebhookID) {
			return nil, errors.New("holdshort: WebhookID must be 1-128 of A-Z a-z 0-9 _ -")
		}
		made := mac(standardKey(secret), options.WebhookID+"."+at+".", body)
		signature := "v1," + base64.StdEncoding.EncodeToString(made)
		return headers("Webhook-Id", options.WebhookID, "Webhook-Timestamp", at, "Webhook-Signature", signature), nil
	}
	return nil, errors.New("holdshort: Scheme must be standard, timestamped or body")
}

// standardKey is what follows `whsec_` decoded from base64, and any other text as it is.
func standardKey(secret string) []byte {
	encoded, ok := strings.CutPrefix(secret, base64Prefix)
	if !ok || strings.ContainsAny(encoded, "\r\n") {
		return []byte(secret)
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	// An empty key would let anybody sign, so nothing after the prefix is no base64 secret.
	if err != nil || len(key) == 0 {
		return []byte(secret)
	}
	return key
}

func mac(key []byte, prefix string, body []byte) []byte {
	made := hmac.New(sha256.New, key)
	made.Write([]byte(prefix))
	made.Write(body)
	return made.Sum(nil)
}

func headers(pairs ...string) http.Header {
	made := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		made.Set(pairs[i], pairs[i+1])
	}
	return made
}

func orNow(at time.Time) time.Time {
	if at.IsZero() {
		return time.Now()
	}
	return at
}
