package core

import (
	"net/http"
	"testing"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/vectors"
)

type retryVector struct {
	Name  string `json:"name"`
	Reply *struct {
		Status  int               `json:"status"`
		Headers map[string]string `json:"headers"`
	} `json:"reply"`
	Tries       int      `json:"tries"`
	LeftSeconds *float64 `json:"left_seconds"`
	Jitter      float64  `json:"jitter"`
	Expect      struct {
		Then    string  `json:"then"`
		Seconds float64 `json:"seconds"`
	} `json:"expect"`
}

type retryFile struct {
	Retried []int         `json:"retried"`
	Cases   []retryVector `json:"cases"`
}

func readRetries(t *testing.T) retryFile {
	t.Helper()
	var file retryFile
	vectors.Load(t, "retries", &file)
	return file
}

func TestCallsAreSentAgainAsInAllLanguages(t *testing.T) {
	file := readRetries(t)
	for _, given := range file.Cases {
		t.Run(given.Name, func(t *testing.T) { judgedAsSaid(t, given) })
	}
	vectors.Ran(t, "retries", len(file.Cases), 52)
}

func judgedAsSaid(t *testing.T, given retryVector) {
	var reply *Reply
	if given.Reply != nil {
		reply = &Reply{Status: given.Reply.Status, Header: http.Header{}}
		for name, value := range given.Reply.Headers {
			reply.Header.Set(name, value)
		}
	}
	left := anyTime
	if given.LeftSeconds != nil {
		left = seconds(*given.LeftSeconds)
	}
	delay, again := judge(reply, given.Tries, left, given.Jitter)
	if then := nameOf(reply, again); then != given.Expect.Then {
		t.Fatalf("it would %s", then)
	}
	if again && (delay-seconds(given.Expect.Seconds)).Abs() > time.Microsecond {
		t.Errorf("after %v", delay)
	}
}

func nameOf(reply *Reply, again bool) string {
	switch {
	case again:
		return "again"
	case reply == nil:
		return "fail"
	}
	return "answer"
}

func TestNoOtherStatusIsSentAgain(t *testing.T) {
	retried := map[int]bool{}
	for _, status := range readRetries(t).Retried {
		retried[status] = true
	}
	for status := 200; status < 600; status++ {
		if triedAgain(status) != retried[status] {
			t.Errorf("%d", status)
		}
	}
}

func TestPatienceOfAnyLengthIsKept(t *testing.T) {
	long := 200 * 365 * 24 * time.Hour
	if left := leftOf(long, time.Now().Add(long)); left < long-time.Hour {
		t.Errorf("%v are left of %v", left, long)
	}
	if leftOf(Endless, time.Now()) != anyTime {
		t.Error("endless patience ends")
	}
}
