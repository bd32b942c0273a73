package agent_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

func (p *plane) register(w http.ResponseWriter, r *http.Request) {
	told := members(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	made := &instance{
		node: told["node_id"].(string), id: told["instance_id"].(string), base: told["base_url"].(string),
		status: "live", told: told,
	}
	p.instances = append(slices.DeleteFunc(p.instances, func(each *instance) bool { return each.base == made.base }), made)
	p.change()
	say(w, 200, map[string]any{"lease_seconds": p.lease, "heartbeat_seconds": p.beat})
}

func (p *plane) known(w http.ResponseWriter, told map[string]any) *instance {
	for _, each := range p.instances {
		if each.id == told["instance_id"] && each.status != "gone" {
			return each
		}
	}
	refuse(w, 404, "node_not_found", nil)
	return nil
}

func (p *plane) takeBeat(w http.ResponseWriter, r *http.Request) {
	told := members(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	if each := p.known(w, told); each != nil {
		each.status = map[string]string{"ready": "live", "draining": "draining"}[told["status"].(string)]
		p.change()
		say(w, 200, map[string]any{"lease_seconds": p.lease})
	}
}

func (p *plane) takeBack(w http.ResponseWriter, r *http.Request) {
	told := members(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known(w, told) == nil {
		return
	}
	for _, each := range told["executions"].([]any) {
		run := each.(map[string]any)
		p.handedBack = append(p.handedBack, fmt.Sprintf("%v under %v", run["execution_id"], run["fence"]))
	}
	p.change()
	say(w, 200, map[string]any{"handed_back": []string{}})
}

func (p *plane) shutdown(w http.ResponseWriter, r *http.Request) {
	told := members(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	if each := p.known(w, told); each != nil {
		each.status = "gone"
		p.change()
		say(w, 200, map[string]any{})
	}
}

// live is the instance that registered last and is there; the caller holds the lock.
func (p *plane) live() *instance {
	for i := range p.instances {
		each := p.instances[len(p.instances)-1-i]
		if each.status == "live" {
			return each
		}
	}
	return nil
}

func (p *plane) registered() instance {
	p.t.Helper()
	p.until("an instance", func() bool { return p.live() != nil })
	p.mu.Lock()
	defer p.mu.Unlock()
	return *p.live()
}

// queue makes a run that waits for an agent.
func (p *plane) queue(id, reasoner, input string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.executions[id] = &execution{ID: id, Status: "running", reasoner: reasoner, input: json.RawMessage(input)}
}

// give claims a run for the newest instance and sends it there.
func (p *plane) give(id string, more ...string) (int, map[string]any) {
	p.t.Helper()
	at := p.registered()
	p.mu.Lock()
	run := p.executions[id]
	run.fence++
	header := http.Header{
		"X-Execution-Id": {id}, "X-Holdshort-Fence": {fmt.Sprint(run.fence)},
		"X-Holdshort-Steps": {fmt.Sprint(len(run.steps))}, "X-Holdshort-Instance": {at.id},
	}
	p.mu.Unlock()
	for i := 0; i < len(more); i += 2 {
		header.Set(more[i], more[i+1])
	}
	return p.post(at.base+"/reasoners/"+run.reasoner, header, run.input)
}

// start queues a run, and an agent takes it.
func (p *plane) start(id, reasoner, input string) {
	p.t.Helper()
	p.queue(id, reasoner, input)
	if status, answer := p.give(id); status != http.StatusAccepted {
		p.t.Fatalf("the run was not taken: %d %v", status, answer)
	}
}

// takeOver gives a run to somebody else: whoever had it does not know.
func (p *plane) takeOver(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.executions[id].fence++
}

// cancel ends a run as an operator, and tells its agent.
func (p *plane) cancel(id, reason string) (int, map[string]any) {
	p.t.Helper()
	p.mu.Lock()
	run := p.executions[id]
	if reason != "execution_timeout" {
		run.Status, run.Reason = "cancelled", reason
	}
	fence := run.fence
	p.mu.Unlock()
	return p.tellCancel(id, reason, fence)
}

func (p *plane) tellCancel(id, reason string, fence int64) (int, map[string]any) {
	p.t.Helper()
	body, _ := json.Marshal(map[string]any{"reason": reason})
	header := http.Header{"X-Holdshort-Fence": {fmt.Sprint(fence)}}
	return p.post(p.registered().base+"/_internal/executions/"+id+"/cancel", header, body)
}

// ended waits until the end of a run is reported.
func (p *plane) ended(id string) execution {
	p.t.Helper()
	p.until("the end of "+id, func() bool { return p.executions[id] != nil && p.executions[id].outcomeIsTold })
	return p.run(id)
}

func (p *plane) run(id string) execution {
	p.mu.Lock()
	defer p.mu.Unlock()
	return *p.executions[id]
}

func (p *plane) stepsOf(id string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	names := []string{}
	for _, kept := range p.executions[id].steps {
		names = append(names, fmt.Sprintf("%v#%v at %v", kept["name"], kept["occurrence"], kept["previous"]))
	}
	return names
}

// moved waits until the one question's answer is to be pushed to the instance that is there.
func (p *plane) moved() {
	p.t.Helper()
	p.until("the callback to be moved", func() bool {
		return len(p.approvals) == 1 && p.live() != nil && p.approvals[0].callbackURL == p.live().base+"/webhooks/approval"
	})
}
