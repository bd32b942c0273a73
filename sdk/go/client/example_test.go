package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdshort/holdshort/sdk/go/client"
)

func deploy(string) {}

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 48*time.Hour)
	defer cancel()
	c, err := client.New(client.Options{NodeID: "deployer"}) // HOLDSHORT_URL, HOLDSHORT_API_KEY
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	if _, err = c.CreateExecution(ctx, client.CreateExecutionRequest{ExecutionID: "deploy-7"}); err != nil {
		fmt.Println(err)
		return
	}
	_, err = c.RequestApproval(ctx, "", "deploy-7", client.RequestApprovalRequest{
		ApprovalRequestID: "deploy_v7", Title: "Deploy v7?", Payload: map[string]any{"version": "7"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := c.WaitForApproval(ctx, "", "deploy-7", nil)
	switch {
	case errors.Is(err, client.ErrWaitTimeout):
		fmt.Println("still pending; wait again later")
	case err != nil:
		fmt.Println(err) // no decision: never go on as if it were one
	case result.Approved():
		deploy("7")
	default:
		fmt.Println(result.Decision, result.Feedback)
	}
}

func ExampleClient_HumanFeedback() {
	c, err := client.New(client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	answer, err := c.HumanFeedback(context.Background(), "Delete the old cluster now?", client.HumanFeedbackOptions{
		Kind: "yes_no", YesLabel: "Delete it", NoLabel: "Keep it", Timeout: 10 * time.Minute,
	})
	if err != nil { // nobody answered, or nobody could be asked: never a yes
		fmt.Println(err)
		return
	}
	fmt.Println(answer == "yes")
}
