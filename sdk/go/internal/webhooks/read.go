package webhooks

import (
	"encoding/json"
	"strings"

	"github.com/holdshort/holdshort/sdk/go/internal/digests"
	"github.com/holdshort/holdshort/sdk/go/internal/strictjson"
)

// Reading is what the body of a webhook says: a decision, or an event that decides nothing.
type Reading struct {
	// Ignored is the type of an event that decides nothing, such as request.opened; "" for a decision. Where it is set,
	// every other field is empty.
	Ignored string
	// RequestID is the asker's approval request id; "" when only ApprovalID was named.
	RequestID string
	// ApprovalID is the control plane's id of the approval, "" where the sender did not name it.
	ApprovalID string
	// ExecutionID is the execution that is meant, "" where none was named.
	ExecutionID string
	// Round is the round that is meant, from 1; 0 where none was named.
	Round int
	// Decision is Approved, Rejected, RequestChanges or Expired.
	Decision string
	// Feedback are the reviewer's words, "" when there are none.
	Feedback string
	// Response is the sender's own value as the bytes received; nil when absent or null.
	Response json.RawMessage
}

var (
	requestNames   = []string{"requestId", "approval_request_id"}
	executionNames = []string{"executionId", "execution_id"}
)

// ReadDecision reads the body of an approval webhook in either shape, the flat one and the envelope with type and data.
// Verify proves who sent it; do that first, over the same bytes.
//
// It fails closed where two readings are possible, always with a BadRequest. Its code is invalid_body (no strict JSON
// object, a field of the wrong type, two ids or rounds that disagree), request_id_missing, decision_missing,
// invalid_decision (a word that is not known) or decision_conflict (two words that disagree, or one in an event that
// decides nothing).
func ReadDecision(body []byte) (Reading, error) {
	top, err := strictjson.Parse(body)
	if err != nil {
		return Reading{}, err
	}
	if !top.IsObject() {
		return Reading{}, refused("invalid_body", "the body must be a JSON object")
	}
	var read Reading
	if err := read.from(top); err != nil {
		// Nothing that was read until then may be taken for a decision.
		return Reading{}, err
	}
	return read, nil
}

func (r *Reading) from(top *strictjson.Value) error {
	kind, data := top.Get("type"), top.Get("data")
	if !kind.IsString() || kind.Text == "" || !data.IsObject() {
		return r.flat(top, nil)
	}
	if !answersFlat(top) {
		return r.envelope(top, kind.Text, data)
	}
	if _, _, err := one("requestId", under([]*strictjson.Value{top, data}, requestNames...)); err != nil {
		return err
	}
	return r.flat(top, envelopeWords(kind.Text, data))
}

func answersFlat(top *strictjson.Value) bool {
	named := top.Get("requestId") != nil || top.Get("approval_request_id") != nil || top.Get("approval_id") != nil
	return named && top.Get("decision") != nil
}

// flat reads the flat shape; rivals are the words that a reader of the envelope would find.
func (r *Reading) flat(top *strictjson.Value, rivals []*strictjson.Value) error {
	places := []*strictjson.Value{top}
	if err := r.named(places, under(places, requestNames...), under(places, executionNames...)); err != nil {
		return err
	}
	word := top.Get("decision")
	if word == nil {
		return missing()
	}
	decision, err := decisionOf(word)
	if err != nil {
		return err
	}
	response := top.Get("response")
	// A reader of the other shape would look there; action beside a flat decision is the sender's own matter.
	for _, rival := range append(rivals, response.Get("decision")) {
		if other := knownValue(rival); other != "" && other != decision {
			return conflict()
		}
	}
	r.Decision = decision
	if r.Feedback, err = feedbackOf(top, response); err != nil {
		return err
	}
	r.Response, err = flatResponse(response, top.Get("values"))
	return err
}

func (r *Reading) envelope(top *strictjson.Value, kind string, data *strictjson.Value) error {
	words, rival := envelopeWords(kind, data), top.Get("decision")
	if !decides(kind) {
		for _, word := range append(words, rival) {
			if knownValue(word) != "" {
				return conflict()
			}
		}
		r.Ignored = kind
		return nil
	}
	places := []*strictjson.Value{top, data}
	request := append(under(places, requestNames...), under([]*strictjson.Value{data}, "id")...)
	execution := under([]*strictjson.Value{top, data, data.Get("metadata")}, executionNames...)
	if err := r.named(places, request, execution); err != nil {
		return err
	}
	if len(words) == 0 {
		return missing()
	}
	if rival != nil {
		words = append(words, rival)
	}
	var err error
	if r.Decision, err = agreed(words); err != nil {
		return err
	}
	response := data.Get("response")
	if r.Feedback, err = feedbackOf(top, response); err == nil {
		r.Response = rawOf(response)
	}
	return err
}

// agreed is the decision that all words mean; each of them must mean one.
func agreed(words []*strictjson.Value) (string, error) {
	var decisions []string
	for _, word := range words {
		decision, err := decisionOf(word)
		if err != nil {
			return "", err
		}
		decisions = append(decisions, decision)
	}
	for _, decision := range decisions {
		if decision != decisions[0] {
			return "", conflict()
		}
	}
	return decisions[0], nil
}

func decides(kind string) bool {
	kind = strings.TrimPrefix(kind, "request.")
	return kind == "completed" || kind == Expired
}

// envelopeWords are all decision words that stand in an envelope's own places, known or not.
func envelopeWords(kind string, data *strictjson.Value) []*strictjson.Value {
	var words []*strictjson.Value
	for _, each := range under([]*strictjson.Value{data.Get("response")}, "decision", "action") {
		words = append(words, each.value)
	}
	if strings.TrimPrefix(kind, "request.") == Expired {
		words = append(words, &strictjson.Value{Kind: strictjson.String, Text: Expired})
	}
	return words
}

func feedbackOf(top, response *strictjson.Value) (string, error) {
	if feedback := top.Get("feedback"); feedback != nil {
		if !feedback.IsString() {
			return "", invalid("feedback", "must be a string")
		}
		return feedback.Text, nil
	}
	if inner := response.Get("feedback"); inner.IsString() {
		return inner.Text, nil
	}
	return "", nil
}

// flatResponse is the flat shape's own value, where values may stand for a response that has nothing else.
func flatResponse(response, values *strictjson.Value) (json.RawMessage, error) {
	if values == nil {
		return rawOf(response), nil
	}
	if response == nil {
		return around(`{"values":`, values.Raw, `}`), nil
	}
	if inner := response.Get("values"); inner == nil || !digests.Same(inner, values) {
		return nil, invalid("values", "is given beside a response that has others")
	}
	return rawOf(response), nil
}

// rawOf copies, so that the body may be used for something else afterwards.
func rawOf(value *strictjson.Value) json.RawMessage {
	if value == nil {
		return nil
	}
	return around("", value.Raw, "")
}

func around(before string, raw []byte, after string) json.RawMessage {
	return append(append([]byte(before), raw...), after...)
}

func missing() error {
	return refused("decision_missing", "the body holds no decision; send approved, rejected, request_changes or expired")
}

func conflict() error {
	return refused("decision_conflict", "the body holds two decisions that disagree; send one")
}
