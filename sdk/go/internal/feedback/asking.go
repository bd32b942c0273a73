package feedback

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/core"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
	"github.com/holdshort/holdshort/sdk/go/internal/seals"
)

const (
	// lastWord is for the call that withdraws the question or acknowledges its answer: whoever waits for it wants to
	// go on.
	lastWord = 2 * time.Second
	heldFor  = 55 * time.Second
	pace     = time.Second
	// grace is what the control plane may need to say that the time is up.
	grace = 15 * time.Second
)

// Ask asks and waits for the answer. The key that opens it is made here for this one question and is nowhere else.
//
// Restarts of the control plane are not noticed. When ctx ends, the question is withdrawn by a call that has a time
// of its own of 2 s, and the error is ctx's.
func Ask(ctx context.Context, sender *core.Sender, question Question) (string, error) {
	if err := question.Check(); err != nil {
		return "", err
	}
	if ctx.Err() != nil {
		return "", core.Ended(ctx)
	}
	lock, err := seals.NewLock()
	if err != nil {
		return "", err
	}
	asking := &asking{question: question, sender: sender, lock: lock}
	defer asking.end(ctx)
	for {
		answer, answered, err := asking.tried(ctx)
		if err != nil || answered {
			return answer, err
		}
	}
}

// asking is one question on its way.
type asking struct {
	question Question
	sender   *core.Sender
	lock     *seals.Lock
	// registered is set while the control plane knows the question, as far as is known here.
	registered bool
	// stands is set while something of this question is there that the last word is about.
	stands      bool
	joinedAnew  bool
	used        error
	openedUntil time.Time
}

// tried does the next call and takes its answer.
func (a *asking) tried(ctx context.Context) (answer string, answered bool, err error) {
	if !a.registered && a.used == nil {
		return "", false, a.refused(a.register(ctx))
	}
	asked := time.Now()
	said, err := a.look(ctx)
	if err != nil {
		return "", false, a.refused(err)
	}
	if said.Outcome == "pending" {
		// A control plane that stops answers at once; that must not become a busy loop.
		return "", false, core.Sleep(ctx, pace-time.Since(asked))
	}
	answer, err = a.opened(said)
	return answer, err == nil, err
}

func (a *asking) register(ctx context.Context) error {
	body, err := core.JSON("body", a.members())
	if err != nil {
		return err
	}
	call := core.Call{Method: http.MethodPost, Path: core.APIPath("human-feedback"), Body: body}
	if err := a.sender.Send(ctx, call, a.patience(), new(registered)); err != nil {
		return err
	}
	a.registered, a.stands = true, true
	a.openedUntil = time.Now().Add(a.question.Timeout + grace)
	return nil
}

// look waits for the answer; under an id that is used up it only looks.
func (a *asking) look(ctx context.Context) (*looked, error) {
	call := core.Call{Method: http.MethodGet, Path: core.APIPath("human-feedback", a.question.UniqueID, "answer")}
	call.Query = url.Values{"wait": {"0"}}
	if a.used == nil {
		call.Query, call.Hold = url.Values{"wait": {"55"}}, heldFor
	}
	said := new(looked)
	return said, a.sender.Send(ctx, call, a.patience(), said)
}

// patience is that of a plain call while the question is asked, and then as long as the question may be open.
func (a *asking) patience() time.Duration {
	if a.openedUntil.IsZero() {
		return core.Patience
	}
	return max(core.Patience, time.Until(a.openedUntil))
}

func (a *asking) opened(said *looked) (string, error) {
	answer, err := a.lock.Open(a.question.UniqueID, said.Sealed.Enc, said.Sealed.Ct)
	if err != nil && a.used != nil {
		return "", a.used
	}
	a.stands = a.stands || err == nil
	return answer, err
}

// refused goes on after a refusal that another call mends; each is tried once.
//
// A control plane that knows nothing of the question is asked again. An id that is used up may be this very question's,
// answered while the reply to its asking was lost: then the answer opens with this key alone.
func (a *asking) refused(err error) error {
	var known *errs.Error
	if err == nil || !errors.As(err, &known) {
		return err
	}
	if a.used != nil {
		return a.used
	}
	if errors.Is(err, errs.ErrFeedbackEnded) {
		a.stands = false
	}
	switch {
	case errors.Is(err, errs.ErrRequestIDUsed) && !a.registered:
		a.used = err
	case errors.Is(err, errs.ErrNotFound) && a.registered && !a.joinedAnew:
		a.registered, a.joinedAnew = false, true
	default:
		return err
	}
	return nil
}

// end forgets the key, and says the last word: it acknowledges the answer, or withdraws the question. It says nothing
// when nothing of this question is there, as under its id may stand another call's.
func (a *asking) end(ctx context.Context) {
	a.lock.Forget()
	if !a.stands {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWord)
	defer cancel()
	call := core.Call{Method: http.MethodDelete, Path: core.APIPath("human-feedback", a.question.UniqueID)}
	_ = a.sender.Send(ctx, call, lastWord, nil) // the question ends by itself when nobody asks for its answer
}

type members struct {
	UniqueID       string   `json:"unique_id"`
	MessageForUser string   `json:"message_for_user"`
	Kind           string   `json:"kind"`
	Options        []string `json:"options,omitempty"`
	YesLabel       string   `json:"yes_label,omitempty"`
	NoLabel        string   `json:"no_label,omitempty"`
	TimeoutSeconds float64  `json:"timeout_seconds"`
	ExecutionID    string   `json:"execution_id,omitempty"`
	PublicKey      string   `json:"public_key"`
}

func (a *asking) members() members {
	asked := a.question
	return members{
		UniqueID: asked.UniqueID, MessageForUser: asked.Message, Kind: asked.Choices.Kind,
		Options: asked.Choices.Options, YesLabel: asked.Choices.YesLabel, NoLabel: asked.Choices.NoLabel, TimeoutSeconds: asked.Timeout.Seconds(),
		ExecutionID: asked.ExecutionID, PublicKey: a.lock.PublicKey(),
	}
}

type registered struct {
	UniqueID string `json:"unique_id"`
}

// looked is how a question stands: pending, or answered with what is sealed.
type looked struct {
	Outcome string `json:"outcome"`
	Sealed  struct {
		Enc string `json:"enc"`
		Ct  string `json:"ct"`
	} `json:"sealed"`
}

// UnmarshalJSON refuses what says nothing of how the question stands.
func (l *looked) UnmarshalJSON(raw []byte) error {
	type plain looked
	if err := json.Unmarshal(raw, (*plain)(l)); err != nil {
		return err
	}
	if l.Outcome == "" {
		return errors.New("outcome is missing")
	}
	return nil
}
