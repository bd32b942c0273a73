package webhooks

import (
	"log/slog"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

// SecretsSetting is the environment variable that the control plane reads its senders' secrets from.
const SecretsSetting = "HOLDSHORT_WEBHOOK_SECRETS"

// A base64 secret may end in "=", so only a colon separates, and only after a plain lower-case name.
var namedPattern = regexp.MustCompile(`(?s)^([a-z][a-z0-9-]{0,31}):(.*)$`)

// Secret is one sender's secret. Printing and logging it shows the sender only.
type Secret struct {
	// Sender is the name before the colon, "" for a secret without a name.
	Sender string
	// Secret is the text as configured: what Verify and Sign take.
	Secret string
}

// String names the sender and not the secret.
func (s Secret) String() string { return "secret of " + s.name() }

// GoString names the sender and not the secret.
func (s Secret) GoString() string { return "webhooks.Secret{" + s.name() + "}" }

// LogValue names the sender and not the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

func (s Secret) name() string {
	if s.Sender == "" {
		return "(unnamed)"
	}
	return s.Sender
}

// ParseSecrets reads a setting of the form of HOLDSHORT_WEBHOOK_SECRETS: entries `secret` or `name:secret` with commas
// between them, newest first. "" means that none is configured.
//
// It fails with InvalidField where an entry or a secret is empty, or is no UTF-8; the error shows no secret.
func ParseSecrets(setting string) ([]Secret, error) {
	if setting == "" {
		return nil, nil
	}
	var found []Secret
	for _, entry := range strings.Split(setting, ",") {
		secret, rule := secretOf(strings.TrimFunc(entry, isSpace))
		if rule != "" {
			refused := errs.ErrInvalidField.New(SecretsSetting + ": " + rule)
			refused.Details = map[string]any{"errors": []any{map[string]any{"field": SecretsSetting, "rule": rule}}}
			return nil, refused
		}
		found = append(found, secret)
	}
	return found, nil
}

// secretOf reads one entry; rule is what it breaks, "" where it is good.
func secretOf(entry string) (found Secret, rule string) {
	if entry == "" {
		return Secret{}, "empty entry"
	}
	found.Secret = entry
	if named := namedPattern.FindStringSubmatch(entry); named != nil {
		found = Secret{Sender: named[1], Secret: strings.TrimFunc(named[2], isSpace)}
	}
	switch {
	case found.Secret == "" || found.Secret == base64Prefix:
		return Secret{}, "empty secret"
	case !utf8.ValidString(found.Secret):
		return Secret{}, "a secret is not UTF-8 text"
	}
	return found, ""
}
