// Package steps knows which stored step a call of a step is. It keeps books only: no clock, no goroutine, no network.
//
// A step is known by its branch, its name, and its how-many-eth of that name in that branch, counted when it is called.
// So steps may be added and taken away while runs are open, and branches may run in any order.
package steps

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sort"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

const (
	// Largest is how many bytes of JSON a step's result may be.
	Largest = 1024 * 1024

	longestName  = 200
	longestPlace = 240
)

// Step is one stored step: Previous is the place that it stands at, Result its JSON.
type Step struct {
	Name       string          `json:"name"`
	Occurrence int             `json:"occurrence"`
	Previous   string          `json:"previous"`
	Result     json.RawMessage `json:"result"`
}

// Ticket is one call of a step: where it stands, and which number it has there.
type Ticket struct {
	Branch string
	Name   string
	Count  int
	Place  string
}

type spot struct{ at, name string }

// Book holds the steps of one run. Open it with what is stored before the first step is looked for.
type Book struct {
	mu      sync.Mutex
	counts  map[spot]int
	busy    map[spot]bool
	stored  map[spot]Step
	known   map[string]int
	numbers map[spot]int
	asked   map[spot]bool
}

// NewBook makes an empty book.
func NewBook() *Book {
	return &Book{
		counts: map[spot]int{}, busy: map[spot]bool{}, stored: map[spot]Step{}, known: map[string]int{},
		numbers: map[spot]int{}, asked: map[spot]bool{},
	}
}

// Open takes in what earlier tries of the run stored.
func (b *Book) Open(stored []Step) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, step := range stored {
		b.known[step.Name] = max(b.known[step.Name], step.Occurrence)
		at := spot{step.Previous, step.Name}
		if _, there := b.stored[at]; !there {
			b.stored[at] = step
		}
	}
}

// Call counts a call; end it with Done or Failed.
//
// InvalidField: the name is none. StepsSideBySide: another call of this name goes on in this branch.
func (b *Book) Call(branch, name string) (Ticket, error) {
	if length := utf8.RuneCountInString(name); length < 1 || length > longestName || breaks(name) {
		rule := fmt.Sprintf("1-%d characters, no control characters", longestName)
		refused := errs.ErrInvalidField.New("a step's name: " + rule)
		refused.Details = map[string]any{"errors": []map[string]string{{"field": "name", "rule": rule}}}
		return Ticket{}, refused
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	at := spot{branch, name}
	if b.busy[at] {
		return Ticket{}, errs.ErrStepsSideBySide.New(fmt.Sprintf("the step %q is being done in this branch; two of one"+
			" name at once could be taken for each other after a restart: put what tells them apart into the name, or"+
			" use a branch", name))
	}
	b.busy[at] = true
	b.counts[at]++
	return Ticket{branch, name, b.counts[at], placeOf(branch, b.counts[at])}, nil
}

// Find is the stored step that a call is; false for one that was never stored.
func (b *Book) Find(ticket Ticket) (Step, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := spot{ticket.Place, ticket.Name}
	b.asked[at] = true
	step, there := b.stored[at]
	return step, there
}

// New is what a call is to be kept as: the next number of its name that nobody has, and the same when it is tried again.
func (b *Book) New(ticket Ticket) Step {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := spot{ticket.Place, ticket.Name}
	if b.numbers[at] == 0 {
		b.known[ticket.Name]++
		b.numbers[at] = b.known[ticket.Name]
	}
	return Step{Name: ticket.Name, Occurrence: b.numbers[at], Previous: ticket.Place}
}

// Done ends a call whose result is stored.
func (b *Book) Done(ticket Ticket) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.busy, spot{ticket.Branch, ticket.Name})
	delete(b.numbers, spot{ticket.Place, ticket.Name})
}

// Failed ends a call that stored nothing. Its number is given back: the call right after it is the same step.
func (b *Book) Failed(ticket Ticket) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := spot{ticket.Branch, ticket.Name}
	delete(b.busy, at)
	if b.counts[at] == ticket.Count {
		b.counts[at]--
	}
}

// NotAsked names the stored steps that no call was, in order.
func (b *Book) NotAsked() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var left []string
	for at, step := range b.stored {
		if !b.asked[at] {
			left = append(left, fmt.Sprintf("%s#%d", step.Name, step.Occurrence))
		}
	}
	sort.Strings(left)
	return left
}

// placeOf is where the count-th step of a name stands in its branch, as short as the control plane takes it.
func placeOf(branch string, count int) string {
	place := fmt.Sprintf("%s:%d", branch, count)
	if utf8.RuneCountInString(place) <= longestPlace && !breaks(place) {
		return place
	}
	sum := sha256.Sum256([]byte(place))
	return "~" + hex.EncodeToString(sum[:])
}

// breaks is true where there is a control character, a line break or what is no character: the control plane takes none.
func breaks(text string) bool {
	for _, letter := range text {
		if unicode.In(letter, unicode.Cc, unicode.Zl, unicode.Zp) {
			return true
		}
	}
	return !utf8.ValidString(text)
}
