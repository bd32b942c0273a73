package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

const warnEvery = 8

// Options say where the control plane is and who calls.
type Options struct {
	// BaseURL is HOLDSHORT_URL, or DefaultURL, when empty.
	BaseURL string
	// APIKey is HOLDSHORT_API_KEY when empty.
	APIKey string
	// HTTPClient sends; one of our own when nil. Its Timeout and CheckRedirect are not used.
	HTTPClient *http.Client
	// Log is slog.Default() when nil.
	Log *slog.Logger
}

// Sender sends calls until they are answered. It may be used by many goroutines at once.
type Sender struct {
	base  string
	key   string
	own   bool
	http  *http.Client
	log   *slog.Logger
	slots chan struct{}
}

// NewSender makes a Sender; nothing is sent.
//
// It fails with ErrConnectionFailed when the address is none, and with ErrKeyRefused when the key can be none.
func NewSender(options Options) (*Sender, error) {
	base, err := BaseURL(options.BaseURL)
	if err != nil {
		return nil, err
	}
	key, err := KeyOf(options.APIKey)
	if err != nil {
		return nil, err
	}
	log := options.Log
	if log == nil {
		log = slog.Default()
	}
	warnIfReadable(log, base, key)
	return &Sender{
		base: base, key: key, own: options.HTTPClient == nil, http: httpClient(options.HTTPClient), log: log,
		slots: make(chan struct{}, atOnce),
	}, nil
}

// BaseURL is the control plane's address, without a slash at its end.
func (s *Sender) BaseURL() string { return s.base }

// Close closes the connections that are open and idle; a given HTTP client's are left to whoever gave it.
func (s *Sender) Close() {
	if s.own {
		s.http.CloseIdleConnections()
	}
}

// Send sends a call until it is answered, and reads the answer's JSON into what into points to (nil: it is not read).
//
// It goes on through failures of the connection, 429, 502, 503 and 504 for as long as patience; below 0 for as long as
// ctx. When ctx ends first, the error is ctx's, together with its cause. Otherwise it is an *errs.Error: what the
// control plane refused with, ErrConnectionFailed where it was not reached, and ErrRefused with the code
// unexpected_reply where the answer is not what the route says.
//
// A call whose path has a part that is nothing, or dots alone, is ErrInvalidField: it could lead to another route.
func (s *Sender) Send(ctx context.Context, call Call, patience time.Duration, into any) error {
	if call.leadsElsewhere() {
		return errs.Invalid("id", "must not be empty, nor dots alone")
	}
	reply, err := s.answered(ctx, call, patience)
	if err != nil {
		return err
	}
	return read(call, reply, into)
}

func (s *Sender) answered(ctx context.Context, call Call, patience time.Duration) (*Reply, error) {
	until := time.Now().Add(patience)
	for tries := 1; ; tries++ {
		reply, failure := s.try(ctx, call, leftOf(patience, until))
		if failure != nil && ctx.Err() != nil {
			return nil, Ended(ctx)
		}
		delay, again := judge(reply, tries, leftOf(patience, until), rand.Float64())
		if !again && reply != nil {
			return reply, nil
		}
		if !again {
			told := fmt.Sprintf("%s: no answer from the control plane (%v)", call.named(), failure)
			return nil, errs.ErrConnectionFailed.New(told).Because(failure)
		}
		said := saidBy(reply, failure)
		if tries%warnEvery == 0 {
			s.log.Warn("still trying", "call", call.named(), "tries", tries, "last", said)
		}
		if Sleep(ctx, delay) != nil {
			return nil, endedAfter(ctx, call.named()+": "+said)
		}
	}
}

func (s *Sender) try(ctx context.Context, call Call, left time.Duration) (*Reply, error) {
	silence := call.Hold + min(longestReply, max(fairReply, left))
	if call.Hold > 0 {
		return s.exchange(ctx, call, silence)
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
		return s.exchange(ctx, call, silence)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func leftOf(patience time.Duration, until time.Time) time.Duration {
	if patience < 0 {
		return anyTime
	}
	return time.Until(until)
}

func saidBy(reply *Reply, failure error) string {
	if reply != nil {
		return fmt.Sprintf("the control plane answered %d", reply.Status)
	}
	return fmt.Sprintf("no answer from the control plane (%v)", failure)
}

func read(call Call, reply *Reply, into any) error {
	requestID := reply.Header.Get("X-Request-ID")
	if reply.Status >= http.StatusMultipleChoices {
		return errs.Refusal(reply.Status, reply.Body, requestID)
	}
	if into == nil {
		return nil
	}
	err := json.Unmarshal(reply.Body, into)
	if err == nil {
		return nil
	}
	told := fmt.Sprintf("%s: the answer is not what this route says (%s); is HOLDSHORT_URL right?",
		call.named(), shape(err))
	refused := errs.ErrRefused.New(told)
	refused.Code, refused.Status, refused.RequestID = "unexpected_reply", reply.Status, requestID
	return refused
}

// shape says what is wrong with an answer without a word of it, as it may hold what a person answered.
func shape(err error) string {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Sprintf("%s is no %s", kind.Field, kind.Type)
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return "no JSON"
	}
	return err.Error()
}
