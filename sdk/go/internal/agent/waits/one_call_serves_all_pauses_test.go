package waits_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdshort/holdshort/sdk/go/client"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/waits"
	"github.com/holdshort/holdshort/sdk/go/internal/core"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

const bound = 20 * time.Second

// sender hands each call to the test, which answers it.
type sender struct{ calls chan *sent }

type sent struct {
	ids    []string
	hold   time.Duration
	answer chan any
	gone   <-chan struct{}
}

func (s sender) Send(ctx context.Context, call core.Call, _ time.Duration, into any) error {
	var told struct {
		IDs []string `json:"approval_ids"`
	}
	if err := json.Unmarshal(call.Body, &told); err != nil {
		return err
	}
	slices.Sort(told.IDs)
	made := &sent{told.IDs, call.Hold, make(chan any, 1), ctx.Done()}
	select {
	case s.calls <- made:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case answer := <-made.answer:
		if err, failed := answer.(error); failed {
			return err
		}
		raw, _ := json.Marshal(answer)
		return json.Unmarshal(raw, into)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s sender) next(t *testing.T) *sent {
	t.Helper()
	select {
	case call := <-s.calls:
		return call
	case <-time.After(bound):
		t.Fatal("no call came")
		return nil
	}
}

func approved(ids ...string) any {
	listed := []any{}
	for _, id := range ids {
		listed = append(listed, map[string]any{
			"approval_id": id, "approval_request_id": "x", "execution_id": "run-1", "round": 1, "status": "approved",
		})
	}
	return map[string]any{"approvals": listed}
}

func shared(t *testing.T) (*waits.Shared, sender, chan string, chan []string) {
	t.Helper()
	calls := sender{make(chan *sent)}
	settled, lost := make(chan string, 10), make(chan []string, 1)
	wait := &waits.Shared{
		Sender: calls, Settled: func(approval client.ApprovalStatus) { settled <- approval.ApprovalID },
		Refused: func(ids []string, _ *errs.Error) { lost <- ids }, Held: true,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	t.Cleanup(wait.Close)
	return wait, calls, settled, lost
}

func TestOneCallServesAllPausesAndIsArmedAgainForAnother(t *testing.T) {
	wait, calls, settled, _ := shared(t)
	wait.Add("a")
	first := calls.next(t)
	wait.Add("b")
	wait.Add("b")
	second := calls.next(t)
	select {
	case <-first.gone:
	case <-time.After(bound):
		t.Fatal("the first call goes on beside the second")
	}
	if !slices.Equal(second.ids, []string{"a", "b"}) || second.hold <= 0 {
		t.Errorf("the second call is for %v", second.ids)
	}
	second.answer <- approved("a")
	if id := <-settled; id != "a" {
		t.Errorf("settled %s", id)
	}
	if third := calls.next(t); !slices.Equal(third.ids, []string{"b"}) {
		t.Errorf("the third call is for %v", third.ids)
	}
}

func TestNobodyIsWaitedForThatHasGone(t *testing.T) {
	wait, calls, settled, _ := shared(t)
	wait.Add("a")
	wait.Add("b")
	wait.Add("b")
	wait.Remove("b")
	wait.Remove("a")
	call := calls.next(t)
	call.answer <- approved("b")
	if id := <-settled; id != "b" {
		t.Errorf("settled %s", id)
	}
	wait.Close()
	wait.Add("c")
	if call := calls.next(t); !slices.Equal(call.ids, []string{"c"}) {
		t.Errorf("after its end it waits for %v", call.ids)
	}
}

func TestAKeyThatIsRefusedEndsTheWaitsAndOneThatIsRefusedOnceDoesNot(t *testing.T) {
	wait, calls, settled, lost := shared(t)
	refused := errs.Refusal(401, []byte(`{"error":"invalid_key"}`), "")
	wait.Add("a")
	calls.next(t).answer <- refused
	calls.next(t).answer <- approved("a")
	if id := <-settled; id != "a" {
		t.Errorf("settled %s", id)
	}
	wait.Add("b")
	var answering sync.WaitGroup
	answering.Add(1)
	go func() {
		defer answering.Done()
		for range 3 {
			calls.next(t).answer <- refused
		}
	}()
	select {
	case ids := <-lost:
		if !slices.Equal(ids, []string{"b"}) {
			t.Errorf("lost %v", ids)
		}
	case <-time.After(bound):
		t.Fatal("nobody was told")
	}
	answering.Wait()
}
