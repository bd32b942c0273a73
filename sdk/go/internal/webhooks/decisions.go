package webhooks

import (
	"strings"

	"github.com/holdshort/holdshort/sdk/go/internal/errs"
	"github.com/holdshort/holdshort/sdk/go/internal/strictjson"
)

// The four answers that an approval can get.
const (
	Approved       = "approved"
	Rejected       = "rejected"
	RequestChanges = "request_changes"
	Expired        = "expired"
)

// words are those that mean a decision. A word that is not here is refused: an unknown decision never approves.
var words = map[string]string{
	Approved: Approved, "approve": Approved, "continue": Approved, "confirm": Approved,
	Rejected: Rejected, "reject": Rejected, "deny": Rejected, "abort": Rejected, "cancel": Rejected,
	RequestChanges: RequestChanges,
	Expired:        Expired,
}

// DecisionWord is the decision that a word means: Approved, Rejected, RequestChanges or Expired.
//
// word is taken as a decoder of JSON gives it. ASCII letters count in any case, and ASCII space around them does not
// count. A word that is unknown, or no string at all, is refused: a BadRequest with the code invalid_decision.
func DecisionWord(word any) (string, error) {
	if text, ok := word.(string); ok {
		if decision := known(text); decision != "" {
			return decision, nil
		}
	}
	return "", refused("invalid_decision",
		"the decision is none of the known words; send approved, rejected, request_changes or expired")
}

// known is "" for what is no decision.
func known(word string) string {
	for i := 0; i < len(word); i++ {
		// Before the case is changed, as letters beyond ASCII may become ordinary ones by that.
		if word[i] > '~' {
			return ""
		}
	}
	return words[strings.ToLower(strings.Trim(word, asciiSpace))]
}

// knownValue is "" for an absent value, and for one that is no decision.
func knownValue(word *strictjson.Value) string {
	if !word.IsString() {
		return ""
	}
	return known(word.Text)
}

func decisionOf(word *strictjson.Value) (string, error) {
	if !word.IsString() {
		return DecisionWord(nil)
	}
	return DecisionWord(word.Text)
}

func refused(code, message string) error {
	made := errs.ErrBadRequest.New(message)
	made.Code = code
	return made
}

// invalid is a body whose field breaks a rule; the details list it as the control plane does.
func invalid(field, rule string) error {
	made := errs.ErrBadRequest.New(field + " " + rule)
	made.Code = "invalid_body"
	made.Details = map[string]any{"errors": []any{map[string]any{"field": field, "rule": rule}}}
	return made
}
