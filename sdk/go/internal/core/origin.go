package core

import (
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

// DefaultURL is where the control plane is when nobody says where.
const DefaultURL = "http://127.0.0.1:8080"

var warned sync.Map

// BaseURL is the control plane's address without a slash at its end: given, HOLDSHORT_URL, or this machine's port 8080.
//
// It fails with ErrConnectionFailed when that is no http(s) address, so that no try could ever reach anything.
func BaseURL(given string) (string, error) {
	address := strings.TrimRight(firstOf(given, os.Getenv("HOLDSHORT_URL"), DefaultURL), "/")
	parts, err := url.Parse(address)
	if err == nil && parts.Host != "" && (parts.Scheme == "http" || parts.Scheme == "https") {
		return address, nil
	}
	message := "the control plane's address must begin with http:// or https:// and name a host"
	if !strings.Contains(address, "@") { // what stands before it may be a password
		message += ", not " + strconv.Quote(address)
	}
	return "", errs.ErrConnectionFailed.New(message)
}

// KeyOf is the API key: given or HOLDSHORT_API_KEY, without the space around it that a file or a shell adds; "" for
// none.
//
// It fails with ErrKeyRefused when the key cannot stand in a header; the message does not show it.
func KeyOf(given string) (string, error) {
	key := strings.TrimSpace(firstOf(given, os.Getenv("HOLDSHORT_API_KEY")))
	for _, character := range key {
		if character < '!' || character > '~' {
			return "", errs.ErrKeyRefused.New("the API key holds a space, a line break or another character that no" +
				" key has; copy it again from where `holdshort keys create` printed it")
		}
	}
	return key, nil
}

// IsHere reports whether an address is this machine's own, which another machine would take for its own.
func IsHere(address string) bool {
	parts, err := url.Parse(address)
	if err != nil {
		return false
	}
	host := strings.ToLower(parts.Hostname())
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// warnIfReadable warns, once for each host, of a key that goes over plain http to another machine.
func warnIfReadable(log *slog.Logger, base, key string) {
	parts, err := url.Parse(base)
	if err != nil || key == "" || parts.Scheme != "http" || IsHere(base) {
		return
	}
	if _, before := warned.LoadOrStore(parts.Hostname(), true); !before {
		log.Warn("the API key is sent unencrypted, for everybody on the way to read; use https",
			"host", parts.Hostname())
	}
}

func firstOf(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}
