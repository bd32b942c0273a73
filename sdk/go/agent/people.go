package agent

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdshort/holdshort/sdk/go/client"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/forms"
)

const longestTitle = 200

// AskOptions say how Ask asks; the zero value asks for text.
type AskOptions struct {
	// Kind is text, yes_no, multiple_choice or form; form where Schema is given, multiple_choice where Options are, else
	// text, when empty.
	Kind string
	// Options of multiple_choice are 1-20 distinct texts of 1-200 characters.
	Options []string
	// Schema of form is the JSON Schema of an object, checked by the control plane.
	Schema any
	// YesLabel and NoLabel are what the answers of yes_no are called.
	YesLabel string
	NoLabel  string
	// Description is more for the reviewer, below the question.
	Description string
	// ApprovalRequestID, ExpiresInHours, OnExpiry, Timeout and ExecutionID are as in Question.
	ApprovalRequestID string
	ExpiresInHours    float64
	OnExpiry          string
	Timeout           time.Duration
	ExecutionID       string
}

// Ask asks a person something that may take hours or days, and waits. It is a Pause with something to fill in: durable,
// in the same inbox, found again when the run is started again. The answer is kept with the run, so what is secret is a
// question for HumanFeedback.
//
// question has at most 20,000 characters; a long one is shown below a title that is its beginning.
//
// An answer is Approved, and Values what was answered as JSON: a text, "yes" or "no", the option, or the form. Values is
// nil for everything else: a rejection, a wish for changes, an expiry.
//
// Errors: client.ErrInvalidField when nobody could answer that, nothing was asked then; client.ErrValuesInvalid when it
// was answered with what does not fit; and those of Pause.
func (a *Agent) Ask(ctx context.Context, question string, options AskOptions) (client.ApprovalResult, error) {
	form, err := forms.Of(client.Form{
		Kind: options.Kind, Options: options.Options, Schema: options.Schema, YesLabel: options.YesLabel,
		NoLabel: options.NoLabel,
	})
	if err != nil {
		return client.ApprovalResult{}, err
	}
	title, description := worded(question, options.Description)
	return a.Pause(ctx, Question{
		ApprovalRequestID: options.ApprovalRequestID, Title: title, Description: description,
		ExpiresInHours: options.ExpiresInHours, OnExpiry: options.OnExpiry, Timeout: options.Timeout,
		ExecutionID: options.ExecutionID, Form: form,
	})
}

// worded is a question as a title, and what does not fit into one below it.
func worded(question, description string) (title, below string) {
	first, rest, _ := strings.Cut(strings.TrimSpace(question), "\n")
	letters := []rune(first)
	if rest == "" && len(letters) <= longestTitle {
		return first, description
	}
	if len(letters) > longestTitle {
		first = string(letters[:longestTitle-1]) + "\u2026"
	}
	if description != "" {
		question += "\n\n" + description
	}
	return first, question
}

// HumanFeedback asks a person for what only they can give, a one-time code or a yes, and waits: seconds to half an hour.
//
// The answer goes to this call and is stored nowhere, so keep it out of logs, notes, results and steps. For the same
// reason this is no step: a run that is started again asks again, under an id that must be new each time. Time spent
// waiting does not count as work. A call whose ctx ends, or whose run ends, withdraws its question; when the process dies
// the question is gone within 15 s. Arguments, answer and errors are those of client.Client.HumanFeedback, and the end of
// the run; options.ExecutionID is the current run when empty.
func (a *Agent) HumanFeedback(
	ctx context.Context, message string, options client.HumanFeedbackOptions,
) (string, error) {
	a.session.enter()
	defer a.session.leave()
	place, inRun := a.here(ctx)
	if !inRun {
		return a.client.HumanFeedback(ctx, message, options)
	}
	waited, err := place.Run.Wait()
	if err != nil {
		return "", err
	}
	defer waited()
	if options.ExecutionID == "" {
		options.ExecutionID = place.Run.ExecutionID
	}
	answer, err := a.client.HumanFeedback(ctx, message, options)
	if err == nil {
		// A yes must not wake code that was taken over while it waited.
		err = place.Run.Sure(ctx)
	}
	if err != nil {
		return "", place.Run.Failed(err)
	}
	return answer, nil
}

// Note keeps a note with the current run, in the background, with words to find it by. It never fails: a note that cannot
// be kept, or that belongs to no run, is logged and dropped.
func (a *Agent) Note(ctx context.Context, message string, tags ...string) {
	place, inRun := a.here(ctx)
	if !inRun {
		a.log.Warn("a note outside a run was dropped")
		return
	}
	if err := place.Run.Check(); err != nil && !errors.Is(err, client.ErrExecutionCancelled) {
		a.log.Warn("a note of a run that has ended was dropped", "run", place.Run.ExecutionID)
		return
	}
	place.Run.Note(message, tags)
}
