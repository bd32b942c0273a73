package pauses

import (
	"fmt"
	"sync"
)

// longestName is how many characters of a place go into a made id; the end of it tells more than its beginning.
const longestName = 200

// Rounds counts asks under each id, and ids that are made at each place, from 1 on in start order: the same whenever
// the code runs again.
type Rounds struct {
	mu    sync.Mutex
	asks  map[string]int
	names map[string]int
}

// NewRounds makes counters that stand at nothing.
func NewRounds() *Rounds {
	return &Rounds{asks: map[string]int{}, names: map[string]int{}}
}

// MadeID is the next id made for the place that asks: its reasoner, and the branch where there is one.
//
// A number is not given back: two questions without an id must never be taken for each other.
func (r *Rounds) MadeID(place string) string {
	if letters := []rune(place); len(letters) > longestName {
		place = string(letters[len(letters)-longestName:])
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names[place]++
	return fmt.Sprintf("pause:%s:%d", place, r.names[place])
}

// Next is the key of the next ask under this id.
func (r *Rounds) Next(executionID, approvalRequestID string) Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asks[approvalRequestID]++
	return Key{executionID, approvalRequestID, r.asks[approvalRequestID]}
}

// GiveBack takes back a round that brought no answer, so that trying again asks the same one; where a later round was
// begun already, it stays counted. True when nothing is counted any more.
func (r *Rounds) GiveBack(key Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asks[key.ApprovalRequestID] == key.Round {
		r.asks[key.ApprovalRequestID]--
	}
	if r.asks[key.ApprovalRequestID] == 0 {
		delete(r.asks, key.ApprovalRequestID)
	}
	return len(r.asks) == 0 && len(r.names) == 0
}
