package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdshort/holdshort/sdk/go/client"
	"github.com/holdshort/holdshort/sdk/go/internal/loopback"
)

type outcome struct {
	result client.ApprovalResult
	err    error
}

func waitFor(ctx context.Context, c *client.Client, options *client.WaitForApprovalOptions) <-chan outcome {
	waited := make(chan outcome, 1)
	go func() {
		result, err := c.WaitForApproval(ctx, "", "e", options)
		waited <- outcome{result, err}
	}()
	return waited
}

// holding holds every call until its caller goes, and tells of each that came.
func holding(came chan<- string) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		came <- r.URL.RequestURI()
		<-r.Context().Done()
	}
}

func TestAWaitIsHeldAndReturnsWhatWasDecided(t *testing.T) {
	c, server := script(t, standing("approved", answerOf("approved", `[1]`)))
	result, err := c.WaitForApproval(soon(t), "n", "e", &client.WaitForApprovalOptions{
		ApprovalRequestID: "r", PollInterval: time.Hour, MaxInterval: time.Hour, BackoffFactor: 9,
	})
	if err != nil || !result.Approved() || string(result.Data) != "[1]" {
		t.Errorf("%+v, %v", result, err)
	}
	uri := server.last().uri
	if uri != "/api/v1/agents/n/executions/e/approval-status?approval_request_id=r&wait=50" {
		t.Errorf("it asked for %s", uri)
	}
}

func TestARestartedControlPlaneIsNotNoticed(t *testing.T) {
	came := make(chan string, 10)
	server := loopback.Serve(t, holding(came))
	waited := waitFor(soon(t), clientTo(t, server.URL()), nil)
	loopback.Soon(t, came)
	server.Stop()
	var tries atomic.Int32
	server.Start(func(w http.ResponseWriter, r *http.Request) {
		if tries.Add(1) <= 3 {
			w.WriteHeader([]int{502, 503, 504}[tries.Load()-1])
			return
		}
		_, _ = io.WriteString(w, standing("rejected", answerOf("rejected", `null`)))
	})
	if got := loopback.Soon(t, waited); got.err != nil || !got.result.Rejected() {
		t.Errorf("%+v", got)
	}
}

func TestAWaitGoesOnWhenItsCallComesBackUndecided(t *testing.T) {
	c, server := script(t, standing("pending", ""), standing("request_changes", answerOf("request_changes", `null`)))
	result, err := c.WaitForApproval(soon(t), "", "e", nil)
	if err != nil || !result.ChangesRequested() {
		t.Errorf("%+v, %v", result, err)
	}
	if uri := server.last().uri; !strings.Contains(uri, "approval_request_id=r&") {
		t.Errorf("it went on with %s: the question that was newest then is the one", uri)
	}
}

func TestTheAnswerToALaterRoundIsNotTakenForThisOne(t *testing.T) {
	later := strings.ReplaceAll(standing("approved", answerOf("approved", `null`)), "apr_1", "apr_2")
	c, server := script(t, standing("pending", ""), later, standing("rejected", answerOf("rejected", `null`)))
	result, err := c.WaitForApproval(soon(t), "", "e", nil)
	if err != nil || !result.Rejected() || result.ApprovalID != "apr_1" {
		t.Errorf("%+v, %v", result, err)
	}
	if uri := server.last().uri; uri != "/api/v1/approvals/apr_1" {
		t.Errorf("it looked at %s", uri)
	}
}

func TestACancelledWaitEndsAtOnceAndLeavesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	came := make(chan string, 1)
	server := loopback.Serve(t, holding(came))
	c := clientTo(t, server.URL())
	cause := errors.New("the user left")
	ctx, cancel := context.WithCancelCause(context.Background())
	waited := waitFor(ctx, c, nil)
	loopback.Soon(t, came)
	ended := time.Now()
	cancel(cause)
	got := loopback.Soon(t, waited)
	if !errors.Is(got.err, context.Canceled) || !errors.Is(got.err, cause) || got.result.Approved() {
		t.Errorf("%+v", got)
	}
	if took := time.Since(ended); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
	c.Close()
	server.Stop()
	loopback.Settled(t, before)
}

func TestAWaitWhoseTimeIsUpSaysThatTheApprovalIsPending(t *testing.T) {
	var undecided atomic.Int32
	for name, handler := range map[string]http.HandlerFunc{
		"held": holding(make(chan string, 100)),
		"paused": func(w http.ResponseWriter, _ *http.Request) {
			undecided.Add(1)
			_, _ = io.WriteString(w, standing("pending", ""))
		},
		"away": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "45") // longer than a plain call is tried
			w.WriteHeader(http.StatusServiceUnavailable)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			defer cancel()
			got := loopback.Soon(t, waitFor(ctx, clientTo(t, loopback.Serve(t, handler).URL()), nil))
			if !errors.Is(got.err, client.ErrWaitTimeout) || !errors.Is(got.err, context.DeadlineExceeded) ||
				errors.Is(got.err, context.Canceled) {
				t.Errorf("%+v", got)
			}
			if strings.Contains(got.err.Error(), "503") != (name == "away") {
				t.Errorf("it does not say why nothing was heard: %v", got.err)
			}
		})
	}
	if undecided.Load() != 1 {
		t.Errorf("a control plane that holds no call was asked %d times in a moment", undecided.Load())
	}
}

func TestAWaitMayLastForMonths(t *testing.T) {
	came, release := make(chan string, 1), make(chan struct{})
	server := loopback.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		came <- r.URL.Path
		<-release
		_, _ = io.WriteString(w, standing("approved", answerOf("approved", `null`)))
	})
	ctx, cancel := context.WithTimeout(context.Background(), 60*24*time.Hour) // more than 2^31 ms
	defer cancel()
	waited := waitFor(ctx, clientTo(t, server.URL()), nil)
	loopback.Soon(t, came)
	close(release)
	if got := loopback.Soon(t, waited); got.err != nil || !got.result.Approved() {
		t.Errorf("%+v", got)
	}
}

func TestWhatIsUnclearEndsAWaitAndIsNoDecision(t *testing.T) {
	cases := map[string]error{
		problem(404, "no_approval_request"):          client.ErrNotFound,
		problem(401, "invalid_key"):                  client.ErrKeyRefused,
		problem(403, "execution_ownership_mismatch"): client.ErrNotAuthorised,
		problem(500, "internal_error"):               client.ErrUnavailable,
		standing("granted", ""):                      client.ErrRefused,
		`{"status": "approved"}`:                     client.ErrRefused,
	}
	for answer, kind := range cases {
		c, _ := script(t, answer)
		result, err := c.WaitForApproval(soon(t), "", "e", nil)
		if !errors.Is(err, kind) || result.Approved() || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s became %+v, %v", answer, result, err)
		}
	}
}

func TestManyWaitsShareOneClientAndLeaveNothing(t *testing.T) {
	const many = 200
	before := runtime.NumGoroutine()
	came, release := make(chan string, many), make(chan struct{})
	server := loopback.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		came <- r.URL.Path
		select {
		case <-release:
			_, _ = io.WriteString(w, standing("expired", answerOf("expired", `null`)))
		case <-r.Context().Done():
		}
	})
	c := clientTo(t, server.URL())
	leaving, leave := context.WithCancel(context.Background())
	var stay, gone []<-chan outcome
	for range many / 2 {
		stay, gone = append(stay, waitFor(soon(t), c, nil)), append(gone, waitFor(leaving, c, nil))
	}
	for range many {
		loopback.Soon(t, came)
	}
	leave()
	for _, waited := range gone {
		if got := loopback.Soon(t, waited); !errors.Is(got.err, context.Canceled) {
			t.Errorf("one that left: %+v", got)
		}
	}
	close(release)
	for _, waited := range stay {
		if got := loopback.Soon(t, waited); got.err != nil || !got.result.Expired() {
			t.Errorf("one that stayed: %+v", got)
		}
	}
	c.Close()
	server.Stop()
	loopback.Settled(t, before)
}
