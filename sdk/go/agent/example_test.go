package agent_test

import (
	"context"
	"log"
	"os/signal"
	"syscall"

	"github.com/holdshort/holdshort/sdk/go/agent"
)

type input struct{ Version string }

type plan struct{ Hosts []string }

func makePlan(context.Context, input) (plan, error) { return plan{Hosts: []string{"a", "b"}}, nil }

func deploy(context.Context, plan) error { return nil }

// An agent that deploys what a person has approved, and plans it once however often its process dies.
func Example() {
	a, err := agent.New(agent.Config{NodeID: "deployer", Version: "1"})
	if err != nil {
		log.Fatal(err)
	}
	agent.Handle(a, "deploy", func(ctx context.Context, in input) (string, error) {
		planned, err := agent.Step(ctx, "plan", func(ctx context.Context) (plan, error) { return makePlan(ctx, in) })
		if err != nil {
			return "", err
		}
		result, err := a.Pause(ctx, agent.Question{Title: "Deploy " + in.Version + "?", Payload: planned})
		if err != nil || !result.Approved() {
			return result.Feedback, err // no decision: never go on as if it were one
		}
		return "deployed", deploy(ctx, planned)
	})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := a.Serve(ctx, "127.0.0.1:8001"); err != nil {
		log.Print(err)
	}
}
