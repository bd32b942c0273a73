package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdshort/holdshort/sdk/go/client"
	"github.com/holdshort/holdshort/sdk/go/internal/loopback"
)

const (
	goesOn = `{"execution_id": "e", "status": "running"}`
	over   = `{"execution_id": "e", "status": "succeeded"}`
	stored = `{"execution_id": "e", "node_id": "n", "status": "succeeded", "result": {"n": 1.0}}`
)

func TestARunIsWaitedForUnderOneKeyUntilItIsOver(t *testing.T) {
	c, server := script(t, goesOn, problem(503, "database_unavailable"), over, stored)
	run, err := c.Execute(soon(t), "n", "r", map[string]int{"a": 1}, nil)
	if err != nil || !run.Final() || string(run.Result) != `{"n": 1.0}` {
		t.Fatalf("%+v, %v", run, err)
	}
	said := server.all()
	if len(said) != 4 || said[3].uri != "/api/v1/executions/e" {
		t.Fatalf("it said %+v", said)
	}
	for i, wait := range []string{"1", "50", "50"} {
		if said[i].uri != "/api/v1/execute/n.r?wait="+wait || said[i].body != `{"input":{"a":1}}` {
			t.Errorf("it said %+v", said[i])
		}
		if said[i].idempotency != said[0].idempotency || !strings.HasPrefix(said[i].idempotency, "call_") {
			t.Errorf("its key was %q", said[i].idempotency)
		}
	}
}

func TestARunThatIsNotOverInTimeIsReturnedAsItStands(t *testing.T) {
	c, server := script(t, goesOn, strings.ReplaceAll(stored, "succeeded", "waiting"))
	options := &client.ExecuteOptions{Wait: 100 * time.Millisecond, IdempotencyKey: "mine"}
	run, err := c.Execute(soon(t), "n", "r", nil, options)
	if err != nil || run.Final() || run.Status != "waiting" {
		t.Errorf("%+v, %v", run, err)
	}
	if first := server.all()[0]; first.idempotency != "mine" || first.body != `{}` {
		t.Errorf("it said %+v", first)
	}
}

func TestACallOfARunEndsWithItsContext(t *testing.T) {
	before := runtime.NumGoroutine()
	came := make(chan string, 4)
	server := loopback.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		came <- r.URL.RequestURI()
		if strings.HasSuffix(r.URL.RawQuery, "wait=1") {
			_, _ = io.WriteString(w, goesOn)
			return
		}
		<-r.Context().Done()
	})
	c := clientTo(t, server.URL())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := c.Execute(ctx, "n", "r", nil, nil)
		ended <- err
	}()
	loopback.Soon(t, came)
	loopback.Soon(t, came)
	cancel()
	if err := loopback.Soon(t, ended); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	c.Close()
	server.Stop()
	loopback.Settled(t, before)
}

func TestANodeThatIsNotThereIsNamed(t *testing.T) {
	c, _ := script(t, `{"status": 404, "error": "node_not_found", "message": "No.", "registered": ["a"]}`)
	_, err := c.ExecuteAsync(soon(t), "n", "r", nil, nil)
	var refused *client.Error
	if !errors.Is(err, client.ErrNotFound) || !errors.As(err, &refused) || len(refused.Details["registered"].([]any)) != 1 {
		t.Errorf("it became %v", err)
	}
}
