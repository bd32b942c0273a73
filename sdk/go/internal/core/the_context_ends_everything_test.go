package core

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/loopback"
)

const atOnceMeans = 2 * time.Second

func senderTo(t *testing.T, url string) *Sender {
	t.Helper()
	sender, err := NewSender(Options{BaseURL: url, APIKey: "hs_1_canary"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sender.Close)
	return sender
}

// endedBy is a call's error after its context was ended, which must not take long.
func endedBy(t *testing.T, end func(), send func() error) error {
	t.Helper()
	result := make(chan error, 1)
	go func() { result <- send() }()
	end()
	ended := time.Now()
	err := loopback.Soon(t, result)
	if took := time.Since(ended); took > atOnceMeans {
		t.Errorf("it took %v to end", took)
	}
	return err
}

func TestACallThatIsHeldEndsWithItsContext(t *testing.T) {
	before := runtime.NumGoroutine()
	arrived := make(chan struct{})
	server := loopback.Serve(t, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	})
	sender := senderTo(t, server.URL())
	ctx, cancel := context.WithCancel(context.Background())
	err := endedBy(t, func() { loopback.Soon(t, arrived); cancel() }, func() error {
		return sender.Send(ctx, Call{Method: "GET", Path: "/api/v1/x", Hold: time.Hour}, Endless, nil)
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	sender.Close()
	server.Stop()
	loopback.Settled(t, before)
}

func TestAPauseBetweenTriesEndsWithItsContext(t *testing.T) {
	before := runtime.NumGoroutine()
	server := loopback.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	sender := senderTo(t, server.URL())
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	err := endedBy(t, func() { <-ctx.Done() }, func() error {
		return sender.Send(ctx, Call{Method: "POST", Path: "/api/v1/x", Body: []byte("{}")}, Endless, nil)
	})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "503") {
		t.Errorf("it ended with %v, which does not say why the time was not enough", err)
	}
	sender.Close()
	server.Stop()
	loopback.Settled(t, before)
}

func TestACallThatWaitsForItsTurnEndsWithItsContext(t *testing.T) {
	before := runtime.NumGoroutine()
	arrived := make(chan struct{}, 2*atOnce)
	server := loopback.Serve(t, func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	sender := senderTo(t, server.URL())
	ctx, cancel := context.WithCancel(context.Background())
	results := make(chan error)
	for range 2 * atOnce {
		go func() { results <- sender.Send(ctx, Call{Method: "GET", Path: "/api/v1/x"}, Endless, nil) }()
	}
	for range atOnce {
		loopback.Soon(t, arrived)
	}
	cancel()
	for range 2 * atOnce {
		if err := loopback.Soon(t, results); !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	}
	if len(arrived) != 0 {
		t.Errorf("%d calls too many were in flight", len(arrived))
	}
	sender.Close()
	server.Stop()
	loopback.Settled(t, before)
}

func TestHeldCallsTakeNobodysTurn(t *testing.T) {
	arrived := make(chan struct{}, atOnce)
	server := loopback.Serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/held" {
			arrived <- struct{}{}
			<-r.Context().Done()
		}
	})
	sender := senderTo(t, server.URL())
	ctx, cancel := context.WithCancel(context.Background())
	results := make(chan error, atOnce)
	for range atOnce {
		go func() {
			results <- sender.Send(ctx, Call{Method: "GET", Path: "/api/v1/held", Hold: time.Hour}, Endless, nil)
		}()
	}
	for range atOnce {
		loopback.Soon(t, arrived)
	}
	if err := sender.Send(context.Background(), Call{Method: "GET", Path: "/api/v1/x"}, Patience, nil); err != nil {
		t.Error(err)
	}
	cancel()
	for range atOnce {
		loopback.Soon(t, results)
	}
}

func TestTheCauseOfTheEndIsFound(t *testing.T) {
	cause := errors.New("another took over")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	for _, err := range []error{
		Ended(ctx), Sleep(ctx, time.Hour), senderTo(t, "").Send(ctx, Call{Method: "GET", Path: "/api/v1/x"}, Endless, nil),
	} {
		if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) || !strings.Contains(err.Error(), "took over") {
			t.Errorf("it ended with %v", err)
		}
	}
	plain, stop := context.WithCancel(context.Background())
	stop()
	if err := Ended(plain); err != context.Canceled { //nolint:errorlint // the very error is meant
		t.Errorf("an end without a cause is %v", err)
	}
}

func TestAPauseOfAnyLengthIsOne(t *testing.T) {
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(context.Background())
	waiting := make(chan error, 1)
	go func() { waiting <- Sleep(ctx, 60*24*time.Hour) }() // more than 2^31 ms
	if err := Sleep(context.Background(), 20*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-waiting:
		t.Errorf("a pause of 60 days ended with %v", err)
	default:
	}
	cancel()
	if err := loopback.Soon(t, waiting); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	loopback.Settled(t, before)
}
