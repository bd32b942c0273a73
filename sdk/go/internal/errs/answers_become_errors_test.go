package errs_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/holdshort/holdshort/sdk/go/internal/errs"
	"github.com/holdshort/holdshort/sdk/go/internal/vectors"
)

const answersThatAreRefusals = 90

type vector struct {
	Name    string            `json:"name"`
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Expect  struct {
		Kind      string          `json:"kind"`
		Is        []string        `json:"is"`
		Code      string          `json:"code"`
		Says      *string         `json:"says"`
		RequestID *string         `json:"request_id"`
		Details   json.RawMessage `json:"details"`
	} `json:"expect"`
}

func TestEveryAnswerBecomesTheErrorThatAllLanguagesGive(t *testing.T) {
	var file struct {
		Cases []vector `json:"cases"`
	}
	vectors.Load(t, "errors", &file)
	for _, given := range file.Cases {
		t.Run(given.Name, func(t *testing.T) {
			got := errs.Refusal(given.Status, []byte(given.Body), given.Headers["x-request-id"])
			if got.Kind != given.Expect.Kind || got.Code != given.Expect.Code || got.Status != given.Status {
				t.Errorf("got %s %s %d", got.Kind, got.Code, got.Status)
			}
			if !reflect.DeepEqual(got.CaseOf(), given.Expect.Is) {
				t.Errorf("it is a case of %v", got.CaseOf())
			}
			if given.Expect.Says != nil && !strings.Contains(got.Error(), *given.Expect.Says) {
				t.Errorf("it says %q", got.Error())
			}
			if got.RequestID != orEmpty(given.Expect.RequestID) {
				t.Errorf("its request is %q", got.RequestID)
			}
			sameDetails(t, got, given.Expect.Details)
			namesItsTree(t, got, given)
		})
	}
	vectors.Ran(t, "errors", len(file.Cases), answersThatAreRefusals)
}

func sameDetails(t *testing.T, got *errs.Error, expected json.RawMessage) {
	t.Helper()
	raw, err := json.Marshal(got.Details)
	if err != nil {
		t.Fatal(err)
	}
	var have, want any
	if json.Unmarshal(raw, &have) != nil || json.Unmarshal(expected, &want) != nil || !reflect.DeepEqual(have, want) {
		t.Errorf("its details are %s", raw)
	}
}

func namesItsTree(t *testing.T, got error, given vector) {
	t.Helper()
	wanted := map[string]bool{given.Expect.Kind: true}
	for _, name := range given.Expect.Is {
		wanted[name] = true
	}
	for _, kind := range everyKind {
		if errors.Is(got, kind) != wanted[kind.Name()] {
			t.Errorf("errors.Is(%v, %s) is %v", got, kind.Name(), errors.Is(got, kind))
		}
	}
}

func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
