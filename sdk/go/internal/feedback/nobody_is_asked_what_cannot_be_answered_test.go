package feedback

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

func many(count int) []string {
	labels := make([]string, count)
	for i := range labels {
		labels[i] = strings.Repeat("x", i+1)
	}
	return labels
}

func TestTheKindFollowsFromWhatIsGiven(t *testing.T) {
	given := map[string]Choices{
		"text":            {},
		"multiple_choice": {Options: many(20)},
		"yes_no":          {Kind: "yes_no", YesLabel: strings.Repeat("ä", 200), NoLabel: "Nein"},
		"secret":          {Kind: "secret"},
	}
	for kind, choices := range given {
		checked, err := choices.Checked()
		if err != nil || checked.Kind != kind {
			t.Errorf("%s became %+v, %v", kind, checked, err)
		}
	}
}

func TestWhatNobodyCouldChooseIsRefused(t *testing.T) {
	cases := map[string]Choices{
		"kind: form":              {Kind: "form"},
		"kind: Text":              {Kind: "Text"},
		"options: none":           {Kind: "multiple_choice"},
		"options: empty":          {Options: []string{}},
		"options: too many":       {Options: many(21)},
		"options: of text":        {Kind: "text", Options: many(1)},
		"options: blank":          {Options: []string{"a", " "}},
		"options: too long":       {Options: []string{strings.Repeat("x", 201)}},
		"options: the same":       {Options: []string{"a", " a "}},
		"options: a line break":   {Options: []string{"a\nb"}},
		"options: no UTF-8":       {Options: []string{"a\xff"}},
		"options: unseen":         {Options: []string{"a\u200b"}},
		"yes_label: of text":      {YesLabel: "Ja"},
		"yes_label: says no":      {Kind: "yes_no", YesLabel: " NO "},
		"yes_label: no says yes":  {Kind: "yes_no", NoLabel: "Approve"},
		"yes_label: both alike":   {Kind: "yes_no", YesLabel: "x", NoLabel: "x"},
		"yes_label: is too long":  {Kind: "yes_no", YesLabel: strings.Repeat("x", 201)},
		"yes_label: is all space": {Kind: "yes_no", YesLabel: " "},
	}
	for name, choices := range cases {
		_, err := choices.Checked()
		field, _, _ := strings.Cut(name, ":")
		if !errors.Is(err, errs.ErrInvalidField) || !strings.Contains(err.Error(), field+" ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNoTimeIsShortenedOrLengthened(t *testing.T) {
	fits := Question{UniqueID: "a.B_c~d:e-9", Message: strings.Repeat("ä", 4000), Timeout: 5 * time.Second}
	if err := fits.Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Question){
		"unique_id":        func(q *Question) { q.UniqueID = "" },
		"unique_id ":       func(q *Question) { q.UniqueID = strings.Repeat("x", 129) },
		"unique_id  ":      func(q *Question) { q.UniqueID = "a/b" },
		"message_for_user": func(q *Question) { q.Message += "x" },
		"timeout_seconds":  func(q *Question) { q.Timeout -= time.Nanosecond },
		"timeout_seconds ": func(q *Question) { q.Timeout = 30*time.Minute + time.Nanosecond },
	} {
		broken := fits
		change(&broken)
		err := broken.Check()
		if !errors.Is(err, errs.ErrInvalidField) || !strings.Contains(err.Error(), strings.TrimSpace(name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
