// The driver is the Go SDK behind a pipe: it reads one JSON request a line, answers one a line, and serves an agent
// meanwhile. The scenarios of sdk/conformance/scenarios.json drive it, as they do the drivers of the other languages.
//
// Environment: HOLDSHORT_URL, NODE, PORT, CALLBACK, and HOLDSHORT_API_KEY where the control plane wants a key. It ends with
// its input.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/holdshort/holdshort/sdk/go/agent"
)

const drain = time.Second

type args = map[string]json.RawMessage

// op is one thing that the driver does; what it returns is the answer.
type op func(ctx context.Context, given args) (any, error)

type request struct {
	ID   int    `json:"id"`
	Op   string `json:"op"`
	Args args   `json:"args"`
}

// driver answers requests side by side, each of which another one may cancel.
type driver struct {
	ops map[string]op

	mu      sync.Mutex
	out     *json.Encoder
	going   map[int]*task
	working sync.WaitGroup
}

type task struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func main() {
	if err := drive(); err != nil {
		slog.Error("the driver ends", "error", err)
		os.Exit(1)
	}
}

func drive() error {
	address := "127.0.0.1:" + os.Getenv("PORT")
	served, err := agent.New(agent.Config{
		NodeID: os.Getenv("NODE"), Version: "1", CallbackURL: "http://" + address,
		Callback: agent.Callback(os.Getenv("CALLBACK")), Drain: drain,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return err
	}
	performs := newPerformer(served)
	calls := &clients{node: os.Getenv("NODE")}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	d := &driver{ops: calls.ops(), out: json.NewEncoder(os.Stdout), going: map[int]*task{}}
	d.out.SetEscapeHTML(false)
	for name, do := range performs.ops() {
		d.ops[name] = do
	}
	ended := make(chan error, 1)
	go func() { ended <- served.Serve(ctx, address) }()
	if err := untilRegistered(served, ended); err != nil {
		return err
	}
	d.say(map[string]any{"ready": true})
	readErr := d.read(ctx)
	stop()
	d.working.Wait()
	return errors.Join(readErr, <-ended)
}

func untilRegistered(served *agent.Agent, ended <-chan error) error {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !served.Registered() {
		select {
		case err := <-ended:
			return errors.Join(errors.New("the agent was not served"), err)
		case <-look.C:
		}
	}
	return nil
}

// read begins what each line of the input asks for, to its end.
func (d *driver) read(ctx context.Context) error {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64*1024*1024)
	for lines.Scan() {
		var asked request
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			return err
		}
		d.take(ctx, asked)
	}
	return lines.Err()
}

func (d *driver) take(ctx context.Context, asked request) {
	ctx, cancel := context.WithCancel(ctx)
	made := &task{cancel, make(chan struct{})}
	d.mu.Lock()
	d.going[asked.ID] = made
	d.mu.Unlock()
	d.working.Add(1)
	go func() {
		defer d.working.Done()
		defer cancel()
		value, err := d.do(ctx, asked)
		answer := map[string]any{"id": asked.ID, "ok": value}
		if err != nil {
			answer = map[string]any{"id": asked.ID, "error": told(ctx, err)}
		}
		d.say(answer)
		d.mu.Lock()
		delete(d.going, asked.ID)
		d.mu.Unlock()
		close(made.done)
	}()
}

func (d *driver) do(ctx context.Context, asked request) (any, error) {
	if asked.Op == "cancel" {
		return nil, d.cancel(asked.Args)
	}
	do, known := d.ops[asked.Op]
	if !known {
		return nil, errors.New("there is no op " + asked.Op)
	}
	return do(ctx, asked.Args)
}

// cancel ends another request, and returns when that has answered.
func (d *driver) cancel(given args) error {
	var id int
	if err := json.Unmarshal(given["id"], &id); err != nil {
		return err
	}
	d.mu.Lock()
	meant := d.going[id]
	d.mu.Unlock()
	if meant != nil {
		meant.cancel()
		<-meant.done
	}
	return nil
}

// say writes one line, whole.
func (d *driver) say(message any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.out.Encode(message); err != nil {
		slog.Error("an answer was not written", "error", err)
	}
}
