// Package core sends calls to the control plane until they are answered; the client and the agent are made of it.
//
// Every route is safe to repeat: the control plane recognises an ask by its round, an execution, note and decision by
// its id, so a lost reply costs nothing but another try.
package core

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

// Version is this SDK's, as the control plane is told it.
const Version = "0.1.0"

// Call is one call of a route.
type Call struct {
	// Method is GET, POST, PATCH or DELETE.
	Method string
	// Path begins with /api/ and is escaped already, see APIPath.
	Path  string
	Query url.Values
	// Body is JSON unless Header says otherwise; nil for none.
	Body []byte
	// Header is sent besides what every call carries.
	Header http.Header
	// Hold is how long the server may keep the call open until it answers.
	Hold time.Duration
}

// Reply is an answer as it came.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
}

// APIPath is a path under /api/v1, each part escaped.
func APIPath(parts ...string) string {
	escaped := make([]string, len(parts))
	for i, part := range parts {
		escaped[i] = strings.ReplaceAll(url.QueryEscape(part), "+", "%20")
	}
	return "/api/v1/" + strings.Join(escaped, "/")
}

func (c Call) leadsElsewhere() bool {
	parts := strings.Split(strings.TrimPrefix(c.Path, "/"), "/")
	return slices.ContainsFunc(parts, func(part string) bool { return part == "" || part == "." || part == ".." })
}

// named is how a call is called in errors and logs: without its query and body, which may hold what a person answered.
func (c Call) named() string { return c.Method + " " + c.Path }

func (c Call) address(base string) string {
	if len(c.Query) == 0 {
		return base + c.Path
	}
	return base + c.Path + "?" + c.Query.Encode()
}

// JSON is a value as it is sent. It fails with ErrInvalidField, which names the field, when the value is none: JSON has
// no NaN, no infinity, no channel and no function.
func JSON(field string, value any) (json.RawMessage, error) {
	var written bytes.Buffer
	to := json.NewEncoder(&written)
	to.SetEscapeHTML(false)
	if err := to.Encode(value); err != nil {
		return nil, errs.Invalid(field, "must be JSON: "+err.Error()).Because(err)
	}
	return bytes.TrimSuffix(written.Bytes(), []byte("\n")), nil
}
