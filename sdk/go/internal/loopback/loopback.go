// Package loopback serves HTTP on this machine, and knows whether a call left something behind. Only tests use it.
package loopback

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"
)

const enough = 10 * time.Second

// Server is an HTTP server that can go away and come back at the same address.
type Server struct {
	t       testing.TB
	address string
	server  *http.Server
}

// Serve serves until the test ends.
func Serve(t testing.TB, handler http.HandlerFunc) *Server {
	t.Helper()
	made := &Server{t: t, address: "127.0.0.1:0"}
	made.Start(handler)
	t.Cleanup(made.Stop)
	return made
}

// URL is where the server is, without a slash at its end.
func (s *Server) URL() string { return "http://" + s.address }

// Start listens again, at the address that it had before.
func (s *Server) Start(handler http.HandlerFunc) {
	s.t.Helper()
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.address = listener.Addr().String()
	s.server = &http.Server{Handler: received(handler), ReadHeaderTimeout: enough}
	go func(server *http.Server) { _ = server.Serve(listener) }(s.server)
}

// received hands a request over with its whole body: until that is read, a server does not see that its caller has
// gone.
func received(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		handler(w, r)
	}
}

// Stop closes the address and cuts every connection.
func (s *Server) Stop() { _ = s.server.Close() }

// Settled fails the test when there are not as few goroutines as before again, in time.
func Settled(t testing.TB, before int) {
	t.Helper()
	until := time.Now().Add(enough)
	for runtime.NumGoroutine() > before {
		if time.Now().After(until) {
			stacks := make([]byte, 1<<16)
			stacks = stacks[:runtime.Stack(stacks, true)]
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks)
		}
		time.Sleep(time.Millisecond)
	}
}

// Soon returns what comes from a channel, and fails the test when nothing does in time.
func Soon[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(enough):
		t.Fatal("nothing happened in time")
		panic("not reached")
	}
}
