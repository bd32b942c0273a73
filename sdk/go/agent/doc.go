// Package agent is for programs that do the work: they are given runs, ask people in the middle of them, wait for hours
// or weeks, and go on where they were when their process is another one by then.
//
//	func main() {
//		a, err := agent.New(agent.Config{NodeID: "deployer", Version: "1"})
//		if err != nil {
//			log.Fatal(err)
//		}
//		agent.Handle(a, "deploy", func(ctx context.Context, in struct{ Version string }) (string, error) {
//			plan, err := agent.Step(ctx, "plan", func(ctx context.Context) (Plan, error) { return makePlan(ctx, in.Version) })
//			if err != nil {
//				return "", err
//			}
//			result, err := a.Pause(ctx, agent.Question{Title: "Deploy " + in.Version + "?", Payload: plan})
//			if err != nil || !result.Approved() {
//				return result.Feedback, err // no decision: never go on as if it were one
//			}
//			return "deployed", deploy(ctx, plan)
//		})
//		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//		defer stop()
//		if err := a.Serve(ctx, "127.0.0.1:8001"); err != nil {
//			log.Fatal(err)
//		}
//	}
//
// # How a run ends
//
// A run that ended from outside (an operator cancelled it, another process took it over, its time limit passed, this
// process stops) ends the context of its code; context.Cause says why, and errors.Is knows it: client.ErrExecutionCancelled,
// client.ErrStaleInstance, context.DeadlineExceeded, client.ErrHandedBack. Every further call of the run fails with the same
// end, which is a client.ErrRunEnded. Whatever its code returns afterwards, the run ends as that end: return soon.
//
// Code that does not look at its context cannot be stopped: its outcome is dropped.
package agent
