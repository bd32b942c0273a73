// Package feedback asks a person for what only they can give, and opens the answer with a key that is nowhere else.
package feedback

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

const (
	leastTime      = 5 * time.Second
	mostTime       = 30 * time.Minute
	longestMessage = 4000
	mostOptions    = 20
	longestOption  = 200
	longestID      = 128
	idCharacters   = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~:-"
)

// Choices are what a person may choose: Options go with multiple_choice, the labels with yes_no.
type Choices struct {
	Kind     string
	Options  []string
	YesLabel string
	NoLabel  string
}

// Question is a question as its asker means it.
type Question struct {
	UniqueID    string
	Message     string
	Timeout     time.Duration
	Choices     Choices
	ExecutionID string
}

// Checked are the choices with their kind: multiple_choice where options are given, else text, unless it is named. They
// are refused with ErrInvalidField where nobody could choose between them.
func (c Choices) Checked() (Choices, error) {
	if c.Kind == "" {
		c.Kind = "text"
		if c.Options != nil {
			c.Kind = "multiple_choice"
		}
	}
	switch c.Kind {
	case "text", "yes_no", "multiple_choice", "secret":
	default:
		return c, errs.Invalid("kind", "must be one of text, yes_no, multiple_choice, secret")
	}
	chosen := c.Kind == "multiple_choice"
	if chosen != (c.Options != nil) {
		return c, errs.Invalid("options", "go with the kind multiple_choice, and with no other")
	}
	if chosen && (len(c.Options) == 0 || len(c.Options) > mostOptions) {
		return c, errs.Invalid("options", fmt.Sprintf("must be 1 to %d options", mostOptions))
	}
	if err := checkLabels("options", c.Options); err != nil {
		return c, err
	}
	return c, c.checkYesNo()
}

func (c Choices) checkYesNo() error {
	var labels []string
	for _, label := range []string{c.YesLabel, c.NoLabel} {
		if label != "" {
			labels = append(labels, label)
		}
	}
	if len(labels) > 0 && c.Kind != "yes_no" {
		return errs.Invalid("yes_label", "goes with the kind yes_no, and with no other")
	}
	if err := checkLabels("yes_label", labels); err != nil {
		return err
	}
	if oneOf(c.YesLabel, "no", "n", "false", "reject") || oneOf(c.NoLabel, "yes", "y", "true", "approve") {
		return errs.Invalid("yes_label", "and no_label must not say the opposite of what they mean")
	}
	return nil
}

// Check refuses what cannot be asked; no time is shortened or lengthened.
func (q Question) Check() error {
	if q.UniqueID == "" || len(q.UniqueID) > longestID || strings.Trim(q.UniqueID, idCharacters) != "" {
		return errs.Invalid("unique_id", "must be 1 to 128 of A-Z a-z 0-9 . _ ~ : -")
	}
	if strings.TrimSpace(q.Message) == "" || utf8.RuneCountInString(q.Message) > longestMessage {
		rule := fmt.Sprintf("must be 1 to %d characters, not only spaces", longestMessage)
		return errs.Invalid("message_for_user", rule)
	}
	if q.Timeout < leastTime || q.Timeout > mostTime {
		return errs.Invalid("timeout_seconds", "must be 5 to 1800; what may wait longer is a question for an approval")
	}
	return nil
}

func checkLabels(field string, labels []string) error {
	seen := map[string]bool{}
	for _, label := range labels {
		if !printable(label) || strings.TrimSpace(label) == "" || utf8.RuneCountInString(label) > longestOption {
			rule := fmt.Sprintf("must each be 1 to %d printable characters, not only spaces", longestOption)
			return errs.Invalid(field, rule)
		}
		if seen[strings.TrimSpace(label)] {
			return errs.Invalid(field, "must differ from each other")
		}
		seen[strings.TrimSpace(label)] = true
	}
	return nil
}

func printable(label string) bool {
	return utf8.ValidString(label) && strings.IndexFunc(label, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

func oneOf(label string, words ...string) bool {
	for _, word := range words {
		if strings.EqualFold(strings.TrimSpace(label), word) {
			return true
		}
	}
	return false
}
