// Package answers holds what an agent answers over HTTP, before it is sent.
package answers

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

// Answer is an HTTP answer before it is sent; Body becomes JSON.
type Answer struct {
	Status int
	Body   map[string]any
	Header map[string]string
}

// Problem is an error answer (RFC 9457) with its stable code; more are further members.
func Problem(status int, code, message string, more map[string]any) Answer {
	body := map[string]any{
		"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": message,
		"error": code, "message": message,
	}
	for name, value := range more {
		body[name] = value
	}
	return Answer{Status: status, Body: body}
}

// WrongMethod is 405, with the method that this path takes.
func WrongMethod(allowed string) Answer {
	answer := Problem(http.StatusMethodNotAllowed, "method_not_allowed", "use "+allowed, nil)
	answer.Header = map[string]string{"Allow": allowed}
	return answer
}

// Invalid is 422: a field and the rule it breaks.
func Invalid(field, rule string) Answer {
	listed := []map[string]string{{"field": field, "rule": rule}}
	return Problem(http.StatusUnprocessableEntity, "invalid_input", field+": "+rule, map[string]any{"errors": listed})
}

// NotMeant is 503: the process that this was sent to is not here any more; the control plane will know that soon.
func NotMeant() Answer {
	return Problem(http.StatusServiceUnavailable, "other_instance",
		"another process was at this address when the run was sent; send it again", nil)
}

// Stopping is 503: this process stops, and another one (or this one, started again) goes on with the run. end is why,
// nil where no run had begun; more are further members.
func Stopping(end *errs.Error, more map[string]any) Answer {
	if end == nil {
		end = errs.ErrHandedBack.New("this agent is stopping; call it again when it is back")
	}
	answer := Problem(http.StatusServiceUnavailable, end.Code, end.Message, map[string]any{"execution_status": "waiting"})
	for name, value := range more {
		answer.Body[name] = value
	}
	answer.Header = map[string]string{"Retry-After": "1"}
	return answer
}

// Send writes the answer.
func (a Answer) Send(w http.ResponseWriter) {
	var content bytes.Buffer
	encoder := json.NewEncoder(&content)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(a.Body); err != nil {
		a = Problem(http.StatusInternalServerError, "internal_error", "the answer is no JSON", nil)
		content.Reset()
		_ = encoder.Encode(a.Body)
	}
	body := bytes.TrimSuffix(content.Bytes(), []byte("\n"))
	for name, value := range a.Header {
		w.Header().Set(name, value)
	}
	w.Header().Set("Content-Type", kindOf(a.Status))
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(a.Status)
	_, _ = w.Write(body)
}

func kindOf(status int) string {
	if status >= http.StatusBadRequest {
		return "application/problem+json"
	}
	return "application/json"
}
