// Package client asks people for approvals and waits for their decisions, for programs that are no agent: it has one
// method for each route of a Holdshort control plane.
//
//	c, err := client.New(client.Options{}) // HOLDSHORT_URL, HOLDSHORT_API_KEY
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	_, err = c.RequestApproval(ctx, "deployer", runID, client.RequestApprovalRequest{
//		ApprovalRequestID: "deploy_v7", Title: "Deploy v7?", Payload: plan, ExpiresInHours: 48,
//	})
//	if err != nil {
//		return err
//	}
//	result, err := c.WaitForApproval(ctx, "deployer", runID, nil)
//	if err != nil {
//		return err // no decision: never go on as if it were one
//	}
//	if !result.Approved() {
//		return fmt.Errorf("not approved (%s): %s", result.Decision, result.Feedback)
//	}
//
// A wait takes hours or weeks and survives restarts of the control plane; its context ends it at once. What fails is an
// *Error, and errors.Is tells its kind: errors.Is(err, client.ErrConflict) is true for ErrRoundNotOpen too.
package client
