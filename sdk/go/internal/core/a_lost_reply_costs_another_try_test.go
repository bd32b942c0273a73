package core

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/errs"
	"github.com/holdshort/holdshort/sdk/go/internal/loopback"
)

var aCall = Call{
	Method: "POST", Path: APIPath("notes", "a/b ?"), Query: url.Values{"q": {"x y"}}, Body: []byte(`{"a":1}`),
	Header: http.Header{"x-holdshort-fence": {"3"}},
}

// lossy serves an answer after so many tries went wrong in a way.
func lossy(t *testing.T, times int32, wrong http.HandlerFunc) (*loopback.Server, *atomic.Int32) {
	tries := new(atomic.Int32)
	return loopback.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != string(aCall.Body) || r.URL.EscapedPath() != "/api/v1/notes/a%2Fb%20%3F" ||
			r.URL.Query().Get("q") != "x y" || r.Header.Get("X-Holdshort-Fence") != "3" ||
			r.Header.Get("Content-Type") != "application/json" || r.Header.Get("User-Agent") != "holdshort-go/"+Version {
			t.Errorf("%s %s %v: %q (%v)", r.Method, r.URL, r.Header, body, err)
		}
		if tries.Add(1) <= times {
			wrong(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"found": true}`)
	}), tries
}

func cut(w http.ResponseWriter, _ *http.Request) {
	connection, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = connection.Close()
	}
}

func cutInTheMiddle(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "100")
	_, _ = io.WriteString(w, `{"found"`)
}

func answering(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

func TestWhatIsLostIsSentAgain(t *testing.T) {
	ways := map[string]http.HandlerFunc{
		"cut": cut, "cut in the middle": cutInTheMiddle, "429": answering(429), "502": answering(502),
		"503": answering(503), "504": answering(504),
	}
	for name, wrong := range ways {
		t.Run(name, func(t *testing.T) {
			server, tries := lossy(t, 2, wrong)
			var into struct{ Found bool }
			err := senderTo(t, server.URL()).Send(context.Background(), aCall, Patience, &into)
			if err != nil || !into.Found || tries.Load() != 3 {
				t.Errorf("%v after %d tries, found %v", err, tries.Load(), into.Found)
			}
		})
	}
}

func TestWhatIsAnsweredIsNotSentAgain(t *testing.T) {
	server, tries := lossy(t, 1, answering(500))
	err := senderTo(t, server.URL()).Send(context.Background(), aCall, Patience, nil)
	if !errors.Is(err, errs.ErrUnavailable) || tries.Load() != 1 {
		t.Errorf("%v after %d tries", err, tries.Load())
	}
}

func TestPatienceEnds(t *testing.T) {
	server, _ := lossy(t, 1000, answering(503))
	err := senderTo(t, server.URL()).Send(context.Background(), aCall, 300*time.Millisecond, nil)
	if !errors.Is(err, errs.ErrUnavailable) {
		t.Errorf("an answer ended with %v", err)
	}
	server.Stop()
	err = senderTo(t, server.URL()).Send(context.Background(), aCall, 300*time.Millisecond, nil)
	if !errors.Is(err, errs.ErrConnectionFailed) || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("silence ended with %v", err)
	}
}

func TestAnAnswerThatIsNotTheRoutesIsAnError(t *testing.T) {
	for _, body := range []string{"", "<html>hello canary</html>", `["canary"]`, `{"found": "canary"}`, `{} {}`} {
		server := loopback.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Request-ID", "req_7")
			_, _ = io.WriteString(w, body)
		})
		var into struct{ Found bool }
		err := senderTo(t, server.URL()).Send(context.Background(), aCall, Patience, &into)
		var refused *errs.Error
		if !errors.As(err, &refused) || refused.Kind != "Refused" || refused.Code != "unexpected_reply" ||
			refused.RequestID != "req_7" || refused.Status != 200 {
			t.Errorf("%q: %v", body, err)
		}
		if strings.Contains(err.Error(), canary) {
			t.Errorf("%q shows its content: %v", body, err)
		}
	}
}

func TestSilenceIsALostReplyAndALongAnswerIsNone(t *testing.T) {
	server := loopback.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/silent" {
			<-r.Context().Done()
			return
		}
		for range 20 {
			_, _ = io.WriteString(w, "0123456789")
			_ = http.NewResponseController(w).Flush()
			_ = Sleep(r.Context(), 20*time.Millisecond)
		}
	})
	sender := senderTo(t, server.URL())
	reply, err := sender.exchange(context.Background(), Call{Method: "GET", Path: "/long"}, 250*time.Millisecond)
	if err != nil || len(reply.Body) != 200 {
		t.Errorf("a long answer: %v", err)
	}
	_, err = sender.exchange(context.Background(), Call{Method: "GET", Path: "/silent"}, 50*time.Millisecond)
	if !errors.Is(err, errSilent) {
		t.Errorf("silence: %v", err)
	}
}

func TestATimeOfTheGivenClientsOwnEndsNoWait(t *testing.T) {
	server := loopback.Serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_ = Sleep(r.Context(), 200*time.Millisecond)
	})
	given := &http.Client{Timeout: 50 * time.Millisecond}
	sender, err := NewSender(Options{BaseURL: server.URL(), HTTPClient: given})
	if err != nil {
		t.Fatal(err)
	}
	if err := sender.Send(context.Background(), Call{Method: "GET", Path: "/x", Hold: time.Second}, 0, nil); err != nil {
		t.Error(err)
	}
	if given.Timeout != 50*time.Millisecond || given.CheckRedirect != nil {
		t.Error("the given client was changed")
	}
	given.CloseIdleConnections()
}
