package core

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/errs"
	"github.com/holdshort/holdshort/sdk/go/internal/loopback"
)

const canary = "canary"

func TestARedirectIsNotFollowed(t *testing.T) {
	for _, given := range []*http.Client{nil, {}, http.DefaultClient} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			t.Run(fmt.Sprint(given != nil, status), func(t *testing.T) { staysHere(t, given, status) })
		}
	}
}

func staysHere(t *testing.T, given *http.Client, status int) {
	var elsewhere atomic.Int32
	other := loopback.Serve(t, func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	server := loopback.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer hs_1_canary" {
			t.Errorf("the key is %q", r.Header.Get("Authorization"))
		}
		w.Header().Set("Location", other.URL())
		w.WriteHeader(status)
	})
	sender, err := NewSender(Options{BaseURL: server.URL(), APIKey: "hs_1_canary", HTTPClient: given})
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	err = sender.Send(context.Background(), Call{Method: "GET", Path: "/api/v1/x"}, Patience, nil)
	var refused *errs.Error
	if !errors.As(err, &refused) || refused.Kind != "Refused" || refused.Status != status {
		t.Errorf("it ended with %v", err)
	}
	if elsewhere.Load() != 0 {
		t.Error("the redirect was followed")
	}
}

func TestAnIdLeadsToNoOtherRoute(t *testing.T) {
	var heard atomic.Int32
	server := loopback.Serve(t, func(http.ResponseWriter, *http.Request) { heard.Add(1) })
	sender, err := NewSender(Options{BaseURL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	for _, id := range []string{"", ".", ".."} {
		call := Call{Method: "POST", Path: APIPath("approvals", id, "withdraw")}
		if err := sender.Send(context.Background(), call, Patience, nil); !errors.Is(err, errs.ErrInvalidField) {
			t.Errorf("%q ended with %v", id, err)
		}
	}
	if heard.Load() != 0 {
		t.Error("a call was sent")
	}
}

func TestNoErrorShowsTheKey(t *testing.T) {
	gone := loopback.Serve(t, func(http.ResponseWriter, *http.Request) {})
	gone.Stop()
	refusing := loopback.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	unclear := loopback.Serve(t, func(http.ResponseWriter, *http.Request) {})
	for _, url := range []string{gone.URL(), refusing.URL(), unclear.URL(), "http://user:canary@127.0.0.1:1"} {
		var into map[string]any
		err := senderTo(t, url).Send(context.Background(), Call{Method: "GET", Path: "/api/v1/x"}, 0, &into)
		if err == nil || strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), canary) {
			t.Errorf("%s: %+v", url, err)
		}
	}
}

func TestAKeyThatCannotBeOneIsRefusedUnseen(t *testing.T) {
	for _, key := range []string{"hs_1 canary", "hs_1_canary\nX: y", "hs_1_cänary", "hs\x00canary", "hs_canary\x7f"} {
		_, err := NewSender(Options{APIKey: key})
		if !errors.Is(err, errs.ErrKeyRefused) || strings.Contains(err.Error(), "anary") {
			t.Errorf("%q: %v", key, err)
		}
	}
	if key, err := KeyOf(" hs_1_canary\n"); err != nil || key != "hs_1_canary" {
		t.Errorf("%q, %v", key, err)
	}
	t.Setenv("HOLDSHORT_API_KEY", "hs_2_environment")
	if key, err := KeyOf(""); err != nil || key != "hs_2_environment" {
		t.Errorf("%q, %v", key, err)
	}
}

func TestAnAddressThatCannotBeOneIsRefusedAtOnce(t *testing.T) {
	for _, address := range []string{"127.0.0.1:8080", "ftp://a", "http://", "//a", "http://[::1", "nobody:canary@here"} {
		_, err := NewSender(Options{BaseURL: address})
		if !errors.Is(err, errs.ErrConnectionFailed) || strings.Contains(err.Error(), canary) {
			t.Errorf("%q: %v", address, err)
		}
	}
	t.Setenv("HOLDSHORT_URL", "https://there.example/under//")
	if address, err := BaseURL(""); err != nil || address != "https://there.example/under" {
		t.Errorf("%q, %v", address, err)
	}
	t.Setenv("HOLDSHORT_URL", "")
	if address, err := BaseURL(""); err != nil || address != DefaultURL {
		t.Errorf("%q, %v", address, err)
	}
	if address, err := BaseURL("HTTPS://Given.example"); err != nil || address != "HTTPS://Given.example" {
		t.Errorf("%q, %v", address, err)
	}
}

func TestAKeyThatOthersCanReadIsWarnedOfOnce(t *testing.T) {
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	host := fmt.Sprintf("warned-%d.example", time.Now().UnixNano()) // it is known for as long as the process
	for _, url := range []string{"http://" + host, "http://" + host + ":81", "https://quiet.example"} {
		if _, err := NewSender(Options{BaseURL: url, APIKey: "hs_1_canary", Log: log}); err != nil {
			t.Fatal(err)
		}
	}
	for _, url := range []string{"http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "http://a.localhost"} {
		if _, err := NewSender(Options{BaseURL: url, APIKey: "hs_1_canary", Log: log}); err != nil || !IsHere(url) {
			t.Fatal(url, err)
		}
	}
	lines := strings.Count(said.String(), "\n")
	if lines != 1 || !strings.Contains(said.String(), host) || strings.Contains(said.String(), canary) {
		t.Errorf("it says %q", said.String())
	}
}
