package nodes

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"reflect"
	"time"

	"github.com/holdshort/holdshort/sdk/go/internal/core"
	"github.com/holdshort/holdshort/sdk/go/internal/errs"
)

// Registration is what a process says of itself when it comes.
type Registration struct {
	NodeID        string          `json:"node_id"`
	BaseURL       string          `json:"base_url"`
	InstanceID    string          `json:"instance_id"`
	Version       string          `json:"version"`
	Reasoners     []Reasoner      `json:"reasoners"`
	Features      map[string]bool `json:"features"`
	LeaseSeconds  float64         `json:"lease_seconds"`
	MaxConcurrent int             `json:"max_concurrent,omitempty"`
}

// Reasoner is one function that is served. TimeoutSeconds is nil where it has no limit.
type Reasoner struct {
	Name           string   `json:"name"`
	TimeoutSeconds *float64 `json:"timeout_seconds,omitempty"`
	Resume         string   `json:"resume"`
}

func (r *Registration) same(other *Registration) bool { return reflect.DeepEqual(r, other) }

type leased struct {
	LeaseSeconds     float64 `json:"lease_seconds"`
	HeartbeatSeconds float64 `json:"heartbeat_seconds"`
}

func registerCall(told *Registration) core.Call {
	return post(core.APIPath("nodes", "register"), told)
}

func beatCall(known *Registration, status string) core.Call {
	members := map[string]any{"instance_id": known.InstanceID, "status": status}
	return post(core.APIPath("nodes", known.NodeID, "heartbeat"), members)
}

func handBackCall(known *Registration, runs []Run) core.Call {
	members := map[string]any{"instance_id": known.InstanceID, "executions": runs}
	return post(core.APIPath("nodes", known.NodeID, "hand-back"), members)
}

func shutdownCall(known *Registration) core.Call {
	members := map[string]any{"instance_id": known.InstanceID}
	return post(core.APIPath("nodes", known.NodeID, "shutdown"), members)
}

func post(path string, members any) core.Call {
	// Texts, numbers and lists of them: nothing that JSON does not have.
	body, _ := json.Marshal(members)
	return core.Call{Method: http.MethodPost, Path: path, Body: body}
}

func codeOf(err error) string {
	var refused *errs.Error
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

func seconds(value float64) time.Duration {
	if !(value > 0) || value > math.MaxInt64/float64(time.Second) {
		return 0
	}
	return time.Duration(value * float64(time.Second))
}
