package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/holdshort/holdshort/sdk/go/client"
	"github.com/holdshort/holdshort/sdk/go/webhooks"
)

// clients do what is asked of a client; one with another key is made for each api_key that an op names.
type clients struct {
	node string
	mu   sync.Mutex
	made map[string]*client.Client
}

func (c *clients) ops() map[string]op {
	return map[string]op{
		"create_execution":    c.createExecution,
		"request_approval":    c.requestApproval,
		"get_approval_status": c.getApprovalStatus,
		"wait_for_approval":   c.waitForApproval,
		"withdraw":            c.withdraw,
		"human_feedback":      c.humanFeedback,
		"verify_webhook":      verifyWebhook,
		"sign_webhook":        signWebhook,
	}
}

func (c *clients) of(given args) (*client.Client, error) {
	var key string
	if err := read(given, "api_key", &key); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if found := c.made[key]; found != nil {
		return found, nil
	}
	made, err := client.New(client.Options{NodeID: c.node, APIKey: key})
	if err != nil {
		return nil, err
	}
	if c.made == nil {
		c.made = map[string]*client.Client{}
	}
	c.made[key] = made
	return made, nil
}

func (c *clients) createExecution(ctx context.Context, given args) (any, error) {
	of, err := c.of(given)
	if err != nil {
		return nil, err
	}
	made, err := of.CreateExecution(ctx, client.CreateExecutionRequest{ExecutionID: text(given, "execution_id")})
	if err != nil {
		return nil, err
	}
	return map[string]any{"execution_id": made.ExecutionID, "status": made.Status}, nil
}

func (c *clients) requestApproval(ctx context.Context, given args) (any, error) {
	of, err := c.of(given)
	if err != nil {
		return nil, err
	}
	var request client.RequestApprovalRequest
	if err := as(given, &request); err != nil {
		return nil, err
	}
	request.Payload = payloadOf(given)
	asked, err := of.RequestApproval(ctx, text(given, "node_id"), text(given, "execution_id"), request)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"approval_id": asked.ApprovalID, "round": asked.Round, "status": asked.Status,
		"approval_request_url": orNull(asked.ApprovalRequestURL), "payload_digest": orNull(asked.PayloadDigest),
	}, nil
}

func (c *clients) getApprovalStatus(ctx context.Context, given args) (any, error) {
	of, err := c.of(given)
	if err != nil {
		return nil, err
	}
	options := &client.StatusOptions{
		ApprovalRequestID: text(given, "approval_request_id"), Wait: seconds(given, "wait_seconds"),
	}
	found, err := of.GetApprovalStatus(ctx, text(given, "node_id"), text(given, "execution_id"), options)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"status": found.Status, "round": found.Round, "approval_id": found.ApprovalID, "response": found.Response,
	}, nil
}

func (c *clients) waitForApproval(ctx context.Context, given args) (any, error) {
	of, err := c.of(given)
	if err != nil {
		return nil, err
	}
	if _, limited := given["timeout_seconds"]; limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, seconds(given, "timeout_seconds"))
		defer cancel()
	}
	options := &client.WaitForApprovalOptions{ApprovalRequestID: text(given, "approval_request_id")}
	result, err := of.WaitForApproval(ctx, text(given, "node_id"), text(given, "execution_id"), options)
	if err != nil {
		return nil, err
	}
	return result, nil
}

func (c *clients) withdraw(ctx context.Context, given args) (any, error) {
	of, err := c.of(given)
	if err != nil {
		return nil, err
	}
	stands, err := of.Withdraw(ctx, text(given, "approval_id"))
	if err != nil {
		return nil, err
	}
	return map[string]any{"status": stands.Status}, nil
}

func (c *clients) humanFeedback(ctx context.Context, given args) (any, error) {
	of, err := c.of(given)
	if err != nil {
		return nil, err
	}
	return answered(of.HumanFeedback(ctx, text(given, "message"), feedbackOf(given)))
}

func feedbackOf(given args) client.HumanFeedbackOptions {
	var options []string
	_ = read(given, "options", &options)
	return client.HumanFeedbackOptions{
		UniqueID: text(given, "unique_id"), Timeout: seconds(given, "timeout_seconds"), Options: options,
		Kind: text(given, "kind"), YesLabel: text(given, "yes_label"), NoLabel: text(given, "no_label"),
	}
}

func answered(answer string, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return answer, nil
}

func verifyWebhook(_ context.Context, given args) (any, error) {
	var sent map[string]string
	var secrets []string
	if err := errors.Join(read(given, "headers", &sent), read(given, "secrets", &secrets)); err != nil {
		return nil, err
	}
	header := http.Header{}
	for name, value := range sent {
		header.Add(name, value)
	}
	found, err := client.VerifyWebhook(header, []byte(text(given, "body")), secrets, at(given))
	if err != nil {
		return nil, err
	}
	return map[string]any{"scheme": found.Scheme, "webhook_id": orNull(found.WebhookID)}, nil
}

func signWebhook(_ context.Context, given args) (any, error) {
	header, err := client.SignWebhook(text(given, "secret"), []byte(text(given, "body")), client.SignOptions{
		Scheme: webhooks.Scheme(text(given, "scheme")), Now: at(given), WebhookID: text(given, "webhook_id"),
	})
	if err != nil {
		return nil, err
	}
	sent := map[string]string{}
	for name := range header {
		sent[strings.ToLower(name)] = header.Get(name)
	}
	return sent, nil
}

func at(given args) time.Time {
	var now float64
	_ = read(given, "now", &now)
	return time.Unix(int64(now), 0)
}

// told is an error as every driver tells it; what is no error of the SDK is an Error, whatever its language calls it.
func told(ctx context.Context, err error) map[string]any {
	var known *client.Error
	if errors.As(err, &known) {
		cases := known.CaseOf()
		if cases == nil {
			cases = []string{}
		}
		var status any
		if known.Status != 0 {
			status = known.Status
		}
		return map[string]any{"kind": known.Kind, "is": cases, "code": known.Code, "status": status}
	}
	kind, code := "Error", any(nil)
	if errors.Is(ctx.Err(), context.Canceled) {
		kind, code = "Cancelled", "cancelled"
	}
	return map[string]any{"kind": kind, "is": []string{}, "code": code, "status": nil}
}

func read(given args, name string, into any) error {
	raw, there := given[name]
	if !there || string(raw) == "null" {
		return nil
	}
	return json.Unmarshal(raw, into)
}

func text(given args, name string) string {
	var value string
	_ = read(given, name, &value)
	return value
}

func seconds(given args, name string) time.Duration {
	var value float64
	_ = read(given, name, &value)
	return time.Duration(value * float64(time.Second))
}

// as reads members that are named as on the wire.
func as(given args, into any) error {
	raw, err := json.Marshal(given)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// payloadOf is the payload as it was written.
func payloadOf(given args) any {
	if raw, there := given["payload"]; there {
		return raw
	}
	return nil
}

func orNull(value string) any {
	if value == "" {
		return nil
	}
	return value
}
