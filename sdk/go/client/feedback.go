package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/core"
	"github.com/holdshort/holdshort/sdk/go/internal/feedback"
)

const (
	submitPath  = "/api/human-feedback/submit"
	pendingPath = "/api/human-feedback/pending"
	usualTime   = 5 * time.Minute
)

// HumanFeedbackOptions say how a short-lived question is asked; the zero value asks for text within five minutes.
type HumanFeedbackOptions struct {
	// UniqueID is 1-128 of `A-Z a-z 0-9 . _ ~ : -`, new for each question; one is made when empty, see UniqueID.
	UniqueID string
	// Timeout is 5 s to 30 min, 5 min when 0; nobody's answer is waited for longer.
	Timeout time.Duration
	// Kind is text, yes_no, multiple_choice or secret (masked while it is typed); multiple_choice where options are
	// given, else text, when empty.
	Kind string
	// Options of multiple_choice are 1-20 distinct texts of 1-200 characters.
	Options []string
	// YesLabel and NoLabel are what the answers of yes_no are called.
	YesLabel string
	NoLabel  string
	// ExecutionID is the run that asks, shown with the question.
	ExecutionID string
}

// HumanFeedback asks a person for what only they can give, a one-time code or a yes, and waits: seconds to half an
// hour. message is the question, 1-4,000 characters. The answer is the text; for yes_no "yes" or "no", for
// multiple_choice the option.
//
// The key that opens the answer is made here for this one question, so the answer is nowhere but in what this
// returns: keep it out of logs, results and steps. Restarts of the control plane are not noticed. When ctx ends, the
// question is withdrawn by a call that has 2 s of its own, and the error is ctx's.
//
// Errors: ErrInvalidField when a field breaks its rule, nothing was asked then; ErrFeedbackExpired when nobody
// answered in time, which is never an approval; ErrFeedbackCancelled when the question was withdrawn;
// ErrDuplicateRequest when another call asks under this id; ErrRequestIDUsed when a question under this id ended
// within the last hour; ErrConnectionFailed when the control plane was not reached, nothing was answered then.
func (c *Client) HumanFeedback(ctx context.Context, message string, options HumanFeedbackOptions) (string, error) {
	choices, err := feedback.Choices{
		Kind: options.Kind, Options: options.Options, YesLabel: options.YesLabel, NoLabel: options.NoLabel,
	}.Checked()
	if err != nil {
		return "", err
	}
	if options.UniqueID == "" {
		options.UniqueID = UniqueID("question")
	}
	if options.Timeout == 0 {
		options.Timeout = usualTime
	}
	return feedback.Ask(ctx, c.sender, feedback.Question{
		UniqueID: options.UniqueID, Message: message, Timeout: options.Timeout, Choices: choices,
		ExecutionID: options.ExecutionID,
	})
}

// UniqueID is an id that no other question has: the word to know it by, a dash and 16 random characters.
func UniqueID(word string) string { return word + "-" + random(8) }

// FeedbackQuestion is a short-lived question that waits for a person. Context says how long it still does, and
// AllowFeedback that it takes text.
type FeedbackQuestion struct {
	UniqueID       string    `json:"unique_id"`
	MessageForUser string    `json:"message_for_user"`
	Kind           string    `json:"kind"`
	Options        []string  `json:"options"`
	YesLabel       string    `json:"yes_label"`
	NoLabel        string    `json:"no_label"`
	AllowFeedback  bool      `json:"allow_feedback"`
	Context        string    `json:"context"`
	SessionID      string    `json:"session_id"`
	CreatedAt      time.Time `json:"created_at"`
	ExpiresAt      time.Time `json:"expires_at"`
}

// UnmarshalJSON refuses what names no question.
func (q *FeedbackQuestion) UnmarshalJSON(raw []byte) error {
	type plain FeedbackQuestion
	if err := json.Unmarshal(raw, (*plain)(q)); err != nil {
		return err
	}
	return needed(1, "unique_id", q.UniqueID)
}

// PendingFeedback lists the short-lived questions that wait for a person, oldest first; never an answer. The key
// needs the scope review.
func (c *Client) PendingFeedback(ctx context.Context) ([]FeedbackQuestion, error) {
	page, err := answered[feedbackPage](ctx, c, get(pendingPath))
	if err != nil {
		return nil, err
	}
	return page.Requests, nil
}

type feedbackPage struct {
	Requests []FeedbackQuestion `json:"requests"`
}

func (p *feedbackPage) UnmarshalJSON(raw []byte) error {
	type plain feedbackPage
	if err := json.Unmarshal(raw, (*plain)(p)); err != nil {
		return err
	}
	if p.Requests == nil {
		return errors.New("requests is missing")
	}
	return nil
}

// Submission is a person's answer to a short-lived question.
type Submission struct {
	UniqueID string `json:"unique_id"`
	// Response is at most 16 KiB: text, one of the options, or a yes or a no.
	Response string `json:"response"`
	// SubmissionID is made when empty; the same again is the same answer, so that it can be sent again.
	SubmissionID string `json:"submission_id"`
}

// Submitted says that an answer was taken, now or under the same submission id before.
type Submitted struct {
	UniqueID string `json:"unique_id"`
	Status   string `json:"status"`
	Message  string `json:"message"`
}

// UnmarshalJSON refuses what names no question.
func (s *Submitted) UnmarshalJSON(raw []byte) error {
	type plain Submitted
	if err := json.Unmarshal(raw, (*plain)(s)); err != nil {
		return err
	}
	return needed(1, "unique_id", s.UniqueID, "status", s.Status)
}

// SubmitFeedback answers a short-lived question as a person; the key needs the scope review.
//
// Errors: ErrInvalidAnswer when it is empty, none of the options, or neither a yes nor a no, the question stays open
// then; ErrAlreadyAnswered when another answer was first; ErrFeedbackExpired when the question's time is up;
// ErrFeedbackCancelled when nobody waits for the answer any more; ErrNotFound when no question has this id.
func (c *Client) SubmitFeedback(ctx context.Context, submission Submission) (*Submitted, error) {
	if submission.SubmissionID == "" {
		submission.SubmissionID = UniqueID("submission")
	}
	body, err := core.JSON("response", submission)
	if err != nil {
		return nil, err
	}
	return answered[Submitted](ctx, c, core.Call{Method: http.MethodPost, Path: submitPath, Body: body})
}
