package answers

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// FenceHeader is how a dispatch names its fence, and every call of its run.
const FenceHeader = "X-Holdshort-Fence"

// Order is what a dispatch says of its run besides the input.
type Order struct {
	ExecutionID string
	Fence       int64
	// InstanceID is who is meant, "" where that is not said.
	InstanceID string
	// StoredSteps is how many steps are kept, nil where that is not said.
	StoredSteps *int64
	// TimeLeft is how long it may work, nil where there is no limit.
	TimeLeft *time.Duration
}

// OrderOf reads the order in the headers of a call. Without a fence it is no dispatch: all that is returned is nil. The
// answer is for one that makes no sense.
func OrderOf(header http.Header, executionID string) (*Order, *Answer) {
	if _, fenced := header[FenceHeader]; !fenced {
		return nil, nil
	}
	if executionID == "" {
		refused := Invalid("X-Execution-ID", "required with X-Holdshort-Fence")
		return nil, &refused
	}
	order := &Order{ExecutionID: executionID, InstanceID: One(header, "X-Holdshort-Instance")}
	fence, fenced := integer(One(header, FenceHeader))
	steps, counted := integerOrNone(One(header, "X-Holdshort-Steps"))
	left, timed := secondsOrNone(One(header, "X-Holdshort-Time-Left"))
	if !fenced || !counted || !timed {
		refused := Invalid("X-Holdshort-*", "fence and steps are integers, the time left is a number of seconds")
		return nil, &refused
	}
	order.Fence, order.StoredSteps, order.TimeLeft = fence, steps, left
	return order, nil
}

// CancellationOf reads fence and reason of a call that ends a run; the answer is for one that makes no sense.
func CancellationOf(header http.Header, body []byte) (fence int64, reason string, refused *Answer) {
	fence, fenced := integer(One(header, FenceHeader))
	told := map[string]any{}
	readable := len(body) == 0 || (utf8.Valid(body) && json.Unmarshal(body, &told) == nil && told != nil)
	if _, sent := header[FenceHeader]; readable && !sent {
		answer := Invalid(FenceHeader, "required")
		return 0, "", &answer
	}
	if !fenced || !readable {
		answer := Invalid(FenceHeader, `an integer, with {"reason": ...} as the body`)
		return 0, "", &answer
	}
	if said, is := told["reason"].(string); is && said != "" {
		return fence, said, nil
	}
	return fence, "cancelled", nil
}

// One is a header's value; one that was sent more than once is all its values, and means none of them.
func One(header http.Header, name string) string {
	return strings.TrimSpace(strings.Join(header.Values(name), ", "))
}

func integer(text string) (int64, bool) {
	value, err := strconv.ParseInt(text, 10, 64)
	return value, err == nil
}

func integerOrNone(text string) (*int64, bool) {
	if text == "" {
		return nil, true
	}
	value, valid := integer(text)
	return &value, valid
}

func secondsOrNone(text string) (*time.Duration, bool) {
	if text == "" {
		return nil, true
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(seconds) || math.IsInf(seconds, 0) {
		return nil, false
	}
	left := Seconds(seconds)
	return &left, true
}

// Seconds is a duration of so many seconds, the longest there is where it would be longer.
func Seconds(seconds float64) time.Duration {
	if seconds >= math.MaxInt64/float64(time.Second) {
		return math.MaxInt64
	}
	if seconds < 0 {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}
