package forms_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/holdshort/holdshort/sdk/go/client"
	"github.com/holdshort/holdshort/sdk/go/internal/agent/forms"
	"github.com/holdshort/holdshort/sdk/go/internal/vectors"
)

type formCase struct {
	Name     string          `json:"name"`
	Form     json.RawMessage `json:"form"`
	Values   json.RawMessage `json:"values"`
	Accepted json.RawMessage `json:"accepted"`
	Code     string          `json:"code"`
}

// A JSON Schema is checked by the control plane alone; these are the other forms.
func TestWhatIsFilledInFitsWhatWasAsked(t *testing.T) {
	var file struct {
		Cases []formCase `json:"cases"`
	}
	vectors.Load(t, "forms", &file)
	ran := 0
	for _, each := range file.Cases {
		var members map[string]json.RawMessage
		_ = json.Unmarshal(each.Form, &members)
		if _, schema := members["schema"]; schema {
			continue
		}
		ran++
		form, err := formOf(each.Form)
		if (err != nil) != (each.Code == "invalid_field") {
			t.Errorf("%s: asking says %v", each.Name, err)
		}
		if err != nil {
			continue
		}
		// What the control plane accepted comes as it says; what it refuses would be no answer here either.
		given := each.Accepted
		if each.Code != "" {
			given = each.Values
		}
		err = forms.Fitting(form, client.ApprovalResult{Decision: client.Approved, Values: orNil(given)})
		if (err != nil) != (each.Code != "") || (err != nil && !errors.Is(err, client.ErrValuesInvalid)) {
			t.Errorf("%s: the values %s: %v", each.Name, given, err)
		}
		if err := forms.Fitting(form, client.ApprovalResult{Decision: client.Rejected}); err != nil {
			t.Errorf("%s: a rejection has no values: %v", each.Name, err)
		}
	}
	vectors.Ran(t, "forms", ran, 33)
}

func formOf(raw json.RawMessage) (*client.Form, error) {
	var form client.Form
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&form); err != nil {
		return nil, err
	}
	return &form, forms.Check(&form)
}

func orNil(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}
