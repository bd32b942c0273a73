package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/holdshort/holdshort/sdk/go/client"
)

const asked = `{"approval_id": "apr_1", "approval_request_id": "r", "round": 2, "status": "pending",
	"approval_request_url": "http://here/a", "expires_at": "2026-06-04T10:00:00Z", "payload_digest": "d", "response": null}`

const execution = `{"execution_id": "e", "node_id": "n", "status": "running", "input": {"a": 9007199254740993},
	"result": null, "error": null, "ended_at": null, "fence": 3}`

func TestAnAskSaysWhatWasGivenAndNothingElse(t *testing.T) {
	c, server := script(t, asked)
	got, err := c.RequestApproval(soon(t), "", "e/1", client.RequestApprovalRequest{ApprovalRequestID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	said := server.last()
	if said.method != "POST" || said.uri != "/api/v1/executions/e%2F1/request-approval" || said.key != "Bearer "+testKey {
		t.Errorf("it was %+v", said)
	}
	sameJSON(t, said.body, `{"approval_request_id": "r"}`)
	if got.ApprovalID != "apr_1" || got.Round != 2 || got.Final() || got.PayloadDigest != "d" || got.ExpiresAt.IsZero() {
		t.Errorf("it became %+v", got)
	}
}

func TestAnAskSaysEverythingThatWasGiven(t *testing.T) {
	c, server := script(t, asked)
	_, err := c.RequestApproval(soon(t), "node 1", "e", client.RequestApprovalRequest{
		ApprovalRequestID: "r", ApprovalRequestURL: "https://a", CallbackURL: "https://b", CallbackSecret: "s",
		ExpiresInHours: 0.5, Title: "T", Description: "<D> & E", Payload: json.RawMessage(`{"n": 9007199254740993.0}`),
		OnExpiry: "resume", DecidedBy: "w", Round: 2,
		Form: &client.Form{Kind: "form", Schema: map[string]any{"type": "object"}, Editable: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	if uri := server.last().uri; uri != "/api/v1/agents/node%201/executions/e/request-approval" {
		t.Errorf("it went to %s", uri)
	}
	const wanted = `{"approval_request_id":"r","approval_request_url":"https://a","callback_url":"https://b",` +
		`"callback_secret":"s","expires_in_hours":0.5,"title":"T","description":"<D> & E","on_expiry":"resume",` +
		`"decided_by":"w","round":2,"payload":{"n":9007199254740993.0},` +
		`"form":{"kind":"form","schema":{"type":"object"},"editable":true}}`
	if body := server.last().body; body != wanted {
		t.Errorf("it says %s", body)
	}
}

func TestWhatIsNoJSONIsRefusedBeforeItIsSent(t *testing.T) {
	c, server := script(t, asked)
	unsendable := map[string]client.RequestApprovalRequest{
		"expires_in_hours": {ExpiresInHours: math.NaN()},
		"payload":          {Payload: map[string]float64{"a": math.Inf(1)}},
		"form":             {Form: &client.Form{Kind: "form", Schema: math.NaN()}},
	}
	for field, request := range unsendable {
		_, err := c.RequestApproval(soon(t), "", "e", request)
		named(t, err, field)
	}
	_, err := c.RequestApproval(soon(t), "", "e", client.RequestApprovalRequest{Payload: json.RawMessage(`{"a":`)})
	named(t, err, "payload")
	_, err = c.Decide(soon(t), "apr_1", client.Verdict{Decision: client.Approved, Values: func() {}})
	named(t, err, "values")
	_, err = c.Decide(soon(t), "apr_1", client.Verdict{Decision: client.Approved, Response: math.NaN()})
	named(t, err, "response")
	_, err = c.CreateExecution(soon(t), client.CreateExecutionRequest{ExecutionID: "e", Input: math.NaN()})
	named(t, err, "input")
	_, err = c.CreateExecution(soon(t), client.CreateExecutionRequest{})
	named(t, err, "execution_id")
	_, err = c.ExecuteAsync(soon(t), "n", "r", nil, &client.ExecuteOptions{IdempotencyKey: "a\nb"})
	named(t, err, "idempotency_key")
	if sent := server.all(); len(sent) != 0 {
		t.Errorf("%+v was sent", sent)
	}
}

func named(t *testing.T, err error, field string) {
	t.Helper()
	var refused *client.Error
	if !errors.Is(err, client.ErrInvalidField) || !errors.As(err, &refused) {
		t.Errorf("%s: %v", field, err)
		return
	}
	listed, _ := refused.Details["errors"].([]any)
	if len(listed) != 1 || listed[0].(map[string]any)["field"] != field {
		t.Errorf("%s: %v", field, refused.Details)
	}
}

type route struct {
	name, answer string
	call         func(context.Context, *client.Client) error
	method, uri  string
	body         string
}

var routes = []route{
	{name: "status", answer: standing("pending", ""), method: "GET",
		uri: "/api/v1/executions/e/approval-status", call: func(ctx context.Context, c *client.Client) error {
			_, err := c.GetApprovalStatus(ctx, "", "e", nil)
			return err
		}},
	{name: "held status", answer: standing("pending", ""), method: "GET",
		uri: "/api/v1/agents/n/executions/e/approval-status?approval_request_id=a+b&wait=1.5",
		call: func(ctx context.Context, c *client.Client) error {
			options := &client.StatusOptions{ApprovalRequestID: "a b", Wait: 1500 * time.Millisecond}
			_, err := c.GetApprovalStatus(ctx, "n", "e", options)
			return err
		}},
	{name: "list", answer: `{"approvals": [], "next_cursor": null}`, method: "GET",
		uri: "/api/v1/approvals?cursor=c&limit=7&order=deadline&q=x&status=pending",
		call: func(ctx context.Context, c *client.Client) error {
			_, err := c.ListApprovals(ctx, &client.ApprovalFilter{
				Status: "pending", Query: "x", Order: "deadline", Limit: 7, Cursor: "c",
			})
			return err
		}},
	{name: "list all", answer: `{"approvals": [], "next_cursor": null}`, method: "GET", uri: "/api/v1/approvals",
		call: func(ctx context.Context, c *client.Client) error {
			_, err := c.ListApprovals(ctx, nil)
			return err
		}},
	{name: "one", answer: standing("pending", ""), method: "GET", uri: "/api/v1/approvals/apr_1",
		call: func(ctx context.Context, c *client.Client) error {
			_, err := c.GetApproval(ctx, "apr_1")
			return err
		}},
	{name: "decide", answer: `{"status": "processed"}`, method: "POST", uri: "/api/v1/approvals/apr_1/decision",
		body: `{"decision": "approved", "round": 1, "response": {"n": 1}, "values": ["v"]}`,
		call: func(ctx context.Context, c *client.Client) error {
			verdict := client.Verdict{
				Decision: client.Approved, Round: 1, Response: map[string]int{"n": 1}, Values: []string{"v"},
			}
			_, err := c.Decide(ctx, "apr_1", verdict)
			return err
		}},
	{name: "decide with nothing but falsehood", answer: `{"status": "processed"}`, method: "POST",
		uri: "/api/v1/approvals/apr_1/decision", body: `{"decision": "rejected", "response": false, "values": ""}`,
		call: func(ctx context.Context, c *client.Client) error {
			_, err := c.Decide(ctx, "apr_1", client.Verdict{Decision: client.Rejected, Response: false, Values: ""})
			return err
		}},
	{name: "withdraw", answer: standing("withdrawn", ""), method: "POST", uri: "/api/v1/approvals/apr_1/withdraw",
		body: `{}`, call: func(ctx context.Context, c *client.Client) error {
			_, err := c.Withdraw(ctx, "apr_1")
			return err
		}},
	{name: "expire", answer: standing("expired", ""), method: "POST", uri: "/api/v1/approvals/apr_1/expire", body: `{}`,
		call: func(ctx context.Context, c *client.Client) error {
			_, err := c.Expire(ctx, "apr_1")
			return err
		}},
	{name: "create", answer: execution, method: "POST", uri: "/api/v1/executions",
		body: `{"execution_id": "e", "node_id": "node-1", "reasoner": "r", "input": {"a": 1}, "run_id": "u"}`,
		call: func(ctx context.Context, c *client.Client) error {
			_, err := c.CreateExecution(ctx, client.CreateExecutionRequest{
				ExecutionID: "e", Reasoner: "r", RunID: "u", Input: map[string]int{"a": 1},
			})
			return err
		}},
	{name: "cancel", answer: execution, method: "POST", uri: "/api/v1/executions/e/cancel", body: `{"reason": "x"}`,
		call: func(ctx context.Context, c *client.Client) error {
			_, err := c.CancelExecution(ctx, "e", "x")
			return err
		}},
	{name: "execute", answer: `{"execution_id": "e", "status": "queued"}`, method: "POST",
		uri: "/api/v1/execute/async/n.r", body: `{"input": {"a": 1}}`,
		call: func(ctx context.Context, c *client.Client) error {
			_, err := c.ExecuteAsync(ctx, "n", "r", map[string]int{"a": 1}, nil)
			return err
		}},
	{name: "submit", answer: `{"unique_id": "u", "status": "success"}`, method: "POST",
		uri: "/api/human-feedback/submit", body: `{"unique_id": "u", "response": "1", "submission_id": "s"}`,
		call: func(ctx context.Context, c *client.Client) error {
			_, err := c.SubmitFeedback(ctx, client.Submission{UniqueID: "u", Response: "1", SubmissionID: "s"})
			return err
		}},
	{name: "pending", answer: `{"requests": []}`, method: "GET", uri: "/api/human-feedback/pending",
		call: func(ctx context.Context, c *client.Client) error {
			_, err := c.PendingFeedback(ctx)
			return err
		}},
}

func TestEveryRouteIsCalledAsItIs(t *testing.T) {
	for _, given := range routes {
		t.Run(given.name, func(t *testing.T) {
			c, server := script(t, given.answer)
			if err := given.call(soon(t), c); err != nil {
				t.Fatal(err)
			}
			said := server.last()
			if said.method != given.method || said.uri != given.uri {
				t.Errorf("it was %s %s", said.method, said.uri)
			}
			if given.body == "" && said.body != "" {
				t.Errorf("it says %s", said.body)
			}
			if given.body != "" {
				sameJSON(t, said.body, given.body)
			}
		})
	}
}

func TestNoRouteTakesAnAnswerThatSaysNothing(t *testing.T) {
	for _, given := range routes {
		for _, answer := range []string{`{}`, `null`, `{"status": "approved"}`, `{"round": 1, "status": 7}`, ``} {
			t.Run(given.name+" "+answer, func(t *testing.T) {
				c, _ := script(t, answer)
				err := given.call(soon(t), c)
				if strings.HasPrefix(given.name, "decide") && answer == `{"status": "approved"}` {
					return // it is all that a decision's answer needs
				}
				var refused *client.Error
				if !errors.As(err, &refused) || refused.Code != "unexpected_reply" {
					t.Errorf("it became %v", err)
				}
			})
		}
	}
}

func TestEveryRouteIsRefusedByTheSameTree(t *testing.T) {
	for _, given := range routes {
		t.Run(given.name, func(t *testing.T) {
			c, _ := script(t, problem(409, "round_not_open"))
			err := given.call(soon(t), c)
			if !errors.Is(err, client.ErrRoundNotOpen) || !errors.Is(err, client.ErrConflict) ||
				!errors.Is(err, client.ErrRefused) || !errors.Is(err, client.ErrHoldshort) ||
				errors.Is(err, client.ErrNotFound) || errors.Is(err, client.ErrRunEnded) {
				t.Errorf("it became %v", err)
			}
		})
	}
}

func TestNumbersOfTheCallersKeepTheirValue(t *testing.T) {
	c, _ := script(t, execution)
	got, err := c.GetExecution(soon(t), "e")
	if err != nil || string(got.Input) != `{"a": 9007199254740993}` || got.Result != nil || got.Fence != 3 || got.Final() {
		t.Errorf("%+v, %v", got, err)
	}
	c, _ = script(t, standing("approved", answerOf("approved", `{"n": 12345678901234567890.10}`)+`, "payload": [1.0]`))
	approval, err := c.GetApproval(soon(t), "apr_1")
	if err != nil || string(approval.Response.Data) != `{"n": 12345678901234567890.10}` ||
		string(approval.Payload) != `[1.0]` {
		t.Errorf("%+v, %v", approval, err)
	}
}
