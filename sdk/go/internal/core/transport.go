package core

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	connectWithin = 5 * time.Second
	idleFor       = 30 * time.Second
	// atOnce is how many short calls are in flight at a time; held ones do not count.
	atOnce = 32
)

var errSilent = errors.New("no answer in time")

// httpClient is the given one, or one of our own; neither follows a redirect, as the key goes nowhere else, nor ends a
// held call by a time of its own.
func httpClient(given *http.Client) *http.Client {
	used := http.Client{Transport: ownTransport()}
	if given != nil {
		used = *given
	}
	used.Timeout = 0
	used.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &used
}

func ownTransport() *http.Transport {
	dialer := net.Dialer{Timeout: connectWithin, KeepAlive: idleFor}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   connectWithin,
		ExpectContinueTimeout: time.Second,
		MaxIdleConnsPerHost:   atOnce,
		IdleConnTimeout:       idleFor,
		// With HTTP/2 a connection that died in silence would be used again for the next try, and for the next.
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
}

// exchange sends a request once. silence is how long may pass without a sign of the answer until it counts as lost.
func (s *Sender) exchange(ctx context.Context, call Call, silence time.Duration) (*Reply, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer watch.Stop()
	reply, err := s.roundTrip(ctx, call, func() { watch.Reset(silence) })
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return nil, errSilent
	}
	return reply, reason(err)
}

func (s *Sender) roundTrip(ctx context.Context, call Call, alive func()) (*Reply, error) {
	request, err := s.request(ctx, call)
	if err != nil {
		return nil, err
	}
	answer, err := s.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(watched{answer.Body, alive})
	if err != nil {
		return nil, err
	}
	return &Reply{Status: answer.StatusCode, Header: answer.Header, Body: body}, nil
}

func (s *Sender) request(ctx context.Context, call Call) (*http.Request, error) {
	var body io.Reader
	if call.Body != nil {
		body = bytes.NewReader(call.Body)
	}
	request, err := http.NewRequestWithContext(ctx, call.Method, call.address(s.base), body)
	if err != nil {
		return nil, err
	}
	if call.Body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, values := range call.Header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	request.Header.Set("User-Agent", "holdshort-go/"+Version)
	if s.key != "" {
		request.Header.Set("Authorization", "Bearer "+s.key)
	}
	return request, nil
}

// reason is what went wrong without the address, which the caller's message names already.
func reason(err error) error {
	var around *url.Error
	if errors.As(err, &around) {
		return around.Err
	}
	return err
}

// watched tells of every piece of an answer, as a long one may take longer than a short silence.
type watched struct {
	from  io.Reader
	alive func()
}

func (w watched) Read(into []byte) (int, error) {
	count, err := w.from.Read(into)
	w.alive()
	return count, err
}
