// Package forms holds what people fill in: checked before a question is asked, and held against what comes back before
// code sees it. Values of a JSON Schema are checked by the control plane alone.
package forms

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdshort/holdshort/sdk/go/client"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
	"github.com/holdshort/holdshort/sdk/go/internal/feedback"
)

const longestText = 16 * 1024

// Check refuses a form that nobody could fill in, with ErrInvalidField; nil is no form, and is none to refuse.
func Check(form *client.Form) error {
	if form == nil {
		return nil
	}
	if (form.Kind == "form") != (form.Schema != nil) {
		return errs.Invalid("schema", "goes with the kind form, and with no other")
	}
	if form.Editable && form.Kind != "form" {
		return errs.Invalid("editable", "goes with the kind form, and with no other")
	}
	if form.Kind == "form" {
		if form.Options != nil || form.YesLabel != "" || form.NoLabel != "" {
			return errs.Invalid("options", "and labels go with other kinds than form")
		}
		return nil
	}
	if form.Kind == "secret" {
		return errs.Invalid("kind", "must not be secret, as the answer is kept; HumanFeedback asks for what leaves no trace")
	}
	if form.Kind == "" {
		return errs.Invalid("kind", "must be text, yes_no, multiple_choice or form")
	}
	_, err := choicesOf(form).Checked()
	return err
}

// Of is the form of a question: its kind is form where a schema is given, multiple_choice where options are, else text,
// unless it is named. It is refused with ErrInvalidField where nobody could answer it.
func Of(form client.Form) (*client.Form, error) {
	if form.Kind == "" && form.Schema != nil {
		form.Kind = "form"
	}
	if form.Kind == "" {
		form.Kind = "text"
		if form.Options != nil {
			form.Kind = "multiple_choice"
		}
	}
	return &form, Check(&form)
}

// Fitting refuses a result that is approved with values that do not fit the form, with ErrValuesInvalid.
func Fitting(form *client.Form, result client.ApprovalResult) error {
	if form == nil || !result.Approved() {
		return nil
	}
	if result.Values == nil {
		return misfit(result, "it was approved without values")
	}
	if form.Kind == "form" {
		return nil
	}
	var given string
	if json.Unmarshal(result.Values, &given) != nil || !Fits(form, given) {
		return misfit(result, "this is no answer to what was asked")
	}
	return nil
}

// Fits reports whether a text is an answer to a form of another kind than form.
func Fits(form *client.Form, given string) bool {
	if strings.TrimSpace(given) == "" || len(given) > longestText || !utf8.ValidString(given) {
		return false
	}
	switch form.Kind {
	case "yes_no":
		return given == "yes" || given == "no"
	case "multiple_choice":
		return slices.Contains(form.Options, given)
	}
	return form.Kind == "text"
}

func choicesOf(form *client.Form) feedback.Choices {
	return feedback.Choices{
		Kind: form.Kind, Options: form.Options, YesLabel: form.YesLabel, NoLabel: form.NoLabel,
	}
}

func misfit(result client.ApprovalResult, why string) error {
	wrong := errs.ErrValuesInvalid.New("approval " + result.ApprovalID + " has values that do not fit what was asked: " + why)
	wrong.Details = map[string]any{
		"approval_id": result.ApprovalID, "decision": string(result.Decision), "data": result.Data,
	}
	return wrong
}
