package steps_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdshort/holdshort/sdk/go/internal/agent/steps"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

// do plays a call of a step that is stored, or would be.
func do(t *testing.T, book *steps.Book, branch, name string) (steps.Step, bool) {
	t.Helper()
	ticket, err := book.Call(branch, name)
	if err != nil {
		t.Fatal(err)
	}
	step, stored := book.Find(ticket)
	if !stored {
		step = book.New(ticket)
	}
	book.Done(ticket)
	return step, stored
}

func TestStepsAreFoundAgainInWhateverOrderBranchesGetAlong(t *testing.T) {
	first := steps.NewBook()
	var kept []steps.Step
	for _, branch := range []string{"", "a", "b", "a", "a/b", ""} {
		step, _ := do(t, first, branch, "fetch")
		kept = append(kept, step)
	}
	for number, step := range kept {
		if step.Occurrence != number+1 {
			t.Errorf("the step at %s has the number %d", step.Previous, step.Occurrence)
		}
	}
	again := steps.NewBook()
	slices.Reverse(kept)
	again.Open(kept)
	for _, branch := range []string{"a/b", "b", "", "a", "a", ""} {
		if step, stored := do(t, again, branch, "fetch"); !stored {
			t.Errorf("the step at %s was not found", step.Previous)
		}
	}
	if step, stored := do(t, again, "", "fetch"); stored || step.Occurrence != 7 || step.Previous != ":3" {
		t.Errorf("a new step is %+v", step)
	}
}

func TestStepsMayBeAddedAndTakenAwayUnderOpenRuns(t *testing.T) {
	book := steps.NewBook()
	book.Open([]steps.Step{
		{Name: "plan", Occurrence: 1, Previous: ":1"}, {Name: "old", Occurrence: 1, Previous: ":1"},
		{Name: "send", Occurrence: 1, Previous: ":1"},
	})
	if _, stored := do(t, book, "", "plan"); !stored {
		t.Error("plan was not found")
	}
	if _, stored := do(t, book, "", "new"); stored {
		t.Error("a new step was found")
	}
	if _, stored := do(t, book, "", "send"); !stored {
		t.Error("send was not found")
	}
	if left := book.NotAsked(); !slices.Equal(left, []string{"old#1"}) {
		t.Errorf("not asked for: %v", left)
	}
}

func TestAFailedCallGivesItsNumberBack(t *testing.T) {
	book := steps.NewBook()
	failed, _ := book.Call("", "flaky")
	wanted := book.New(failed)
	if _, err := book.Call("", "flaky"); !errors.Is(err, errs.ErrStepsSideBySide) {
		t.Errorf("a second one at once: %v", err)
	}
	if _, err := book.Call("other", "flaky"); err != nil {
		t.Errorf("one in another branch: %v", err)
	}
	book.Failed(failed)
	again, err := book.Call("", "flaky")
	if err != nil || again != failed || book.New(again).Occurrence != wanted.Occurrence {
		t.Errorf("tried again as %+v: %v", again, err)
	}
}

func TestPlacesAreAsLongAsTheControlPlaneTakesThem(t *testing.T) {
	book := steps.NewBook()
	for _, branch := range []string{strings.Repeat("b", 239), strings.Repeat("\u00e9", 238), "line\nbreak", "bad\xff"} {
		ticket, err := book.Call(branch, "one")
		if err != nil {
			t.Fatal(err)
		}
		folded := strings.HasPrefix(ticket.Place, "~") && len(ticket.Place) == 65
		if folded != (branch != strings.Repeat("\u00e9", 238)) {
			t.Errorf("%.20q stands at %q", branch, ticket.Place)
		}
	}
	for _, name := range []string{"", strings.Repeat("n", 201), "a\u2028b", "bad\xff"} {
		if _, err := book.Call("", name); !errors.Is(err, errs.ErrInvalidField) {
			t.Errorf("the name %.20q: %v", name, err)
		}
	}
}
