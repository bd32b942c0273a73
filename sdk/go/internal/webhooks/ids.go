package webhooks

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdshort/holdshort/sdk/go/internal/strictjson"
)

const approvalPrefix = "apr_"

var (
	namePattern    = regexp.MustCompile(`^[A-Za-z0-9._~:-]{1,128}$`)
	controlPattern = regexp.MustCompile(`[\x00-\x1f\x7f-\x{9f}\x{2028}\x{2029}]`)
)

// spelling is one value that a body gives for something, and the name it stands under.
type spelling struct {
	name  string
	value *strictjson.Value
}

// under returns whatever stands under these names, with null counting as absent.
func under(places []*strictjson.Value, names ...string) []spelling {
	var found []spelling
	for _, place := range places {
		for _, name := range names {
			if value := place.Get(name); value != nil {
				found = append(found, spelling{name, value})
			}
		}
	}
	return found
}

// one is the text that all spellings agree on; ok says whether any of them is there.
func one(field string, spellings []spelling) (text string, ok bool, err error) {
	for _, each := range spellings {
		if !each.value.IsString() {
			return "", false, invalid(each.name, "must be a string")
		}
	}
	for _, each := range spellings {
		if each.value.Text != spellings[0].value.Text {
			return "", false, invalid(field, "is given twice with different values")
		}
		text, ok = each.value.Text, true
	}
	return text, ok, nil
}

// named fills in which approval a body means, each id checked against its other spellings.
func (r *Reading) named(places []*strictjson.Value, request, execution []spelling) error {
	requestID, _, err := one("requestId", request)
	if err != nil {
		return err
	}
	approvals := under(places, "approval_id")
	if strings.HasPrefix(requestID, approvalPrefix) {
		own := strictjson.Value{Kind: strictjson.String, Text: requestID}
		approvals, requestID = append(approvals, spelling{"approval_id", &own}), ""
	}
	approvalID, hasApproval, err := one("approval_id", approvals)
	if err != nil {
		return err
	}
	executionID, hasExecution, err := one("executionId", execution)
	if err != nil {
		return err
	}
	hasRequest := strings.TrimFunc(requestID, isSpace) != ""
	if !hasRequest && !hasApproval {
		return refused("request_id_missing", "the body names no approval; send requestId or approval_id")
	}
	if hasRequest {
		r.RequestID = requestID
		err = checkRequestID(requestID)
	}
	if hasApproval && err == nil {
		r.ApprovalID = approvalID
		err = checkName("approval_id", approvalID)
	}
	if hasExecution && err == nil {
		r.ExecutionID = executionID
		err = checkName("executionId", executionID)
	}
	if err == nil {
		r.Round, err = roundOf(places)
	}
	return err
}

func checkRequestID(id string) error {
	switch {
	case utf8.RuneCountInString(id) > 256:
		return invalid("requestId", "must be 1-256 characters")
	case controlPattern.MatchString(id):
		return invalid("requestId", "must not contain control characters")
	}
	return nil
}

func checkName(field, id string) error {
	if !namePattern.MatchString(id) {
		return invalid(field, "must be 1-128 characters of A-Z a-z 0-9 . _ ~ : -")
	}
	if strings.Trim(id, ".") == "" {
		return invalid(field, "must not be of dots only, which paths lose on their way")
	}
	return nil
}

// roundOf is the round that all places agree on, 0 where none is named.
func roundOf(places []*strictjson.Value) (int, error) {
	round := 0
	for _, each := range under(places, "round") {
		// As it was sent, so neither 1.0 nor "1" nor true is a round.
		number, err := strconv.Atoi(string(each.value.Raw))
		if err != nil || number < 1 || number > math.MaxInt32 {
			return 0, invalid("round", "must be an integer of at least 1")
		}
		if round != 0 && round != number {
			return 0, invalid("round", "is given twice with different values")
		}
		round = number
	}
	return round, nil
}

// isSpace counts the four separators of ASCII as space too, as the control plane does.
func isSpace(r rune) bool { return unicode.IsSpace(r) || ('\x1c' <= r && r <= '\x1f') }
