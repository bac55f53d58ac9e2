package health

import (
	"fmt"
	"time"
)

// Check is one line of a probe's answer.
type Check struct {
	Name string
	OK   bool
	// Reason is why not; it is also set where a check is not OK and the probe
	// passes all the same.
	Reason string
}

// Probe is the answer to a supervisor that asks whether to restart, or to use,
// this instance.
type Probe struct {
	OK     bool
	Checks []Check
}

// silent is how long the process may show no sign of life.
const silent = time.Minute

// Live answers whether the process works at all: beat is when its main loop
// last came round. It looks at nothing that a restart would not fix. The zero
// time is no loop, and passes.
func Live(beat, now time.Time) Probe {
	c := Check{Name: "process", OK: beat.IsZero() || now.Sub(beat) < silent}
	if !c.OK {
		c.Reason = "the main loop has not come round for " + ago(now.Sub(beat))
	}
	return Probe{OK: c.OK, Checks: []Check{c}}
}

// Ready answers whether this instance should be counted on: the app is ready,
// the queue was reached, and no stop is under way. A queue that was reached once
// and does not answer now is a check that fails and a probe that passes: it is
// shared, and would take all instances out at once. The store of an embedded
// queue is this instance's own.
func Ready(in Inputs, now time.Time) Probe {
	p := Probe{OK: true}
	if in.App.Checked {
		p.add("app", in.App.Ready, true, in.App.Reason, "the app is not ready")
	}
	switch {
	case !in.Poll.Reached:
		p.add("queue", false, true, in.Poll.Error, "no receive was answered yet")
	case !in.Poll.FailingSince.IsZero() && now.Sub(in.Poll.FailingSince) >= stale:
		reason := fmt.Sprintf("the queue has not answered for %s; it is shared, so that this instance stays in use",
			ago(now.Sub(in.Poll.FailingSince)))
		p.add("queue", false, false, reason, "")
	default:
		p.add("queue", true, true, "", "")
	}
	if in.Queue.Failed != "" {
		p.add("store", false, true, in.Queue.Failed, "")
	}
	if in.Draining {
		p.add("stop", false, true, "this instance is draining", "")
	}
	return p
}

// Startup answers whether the start is over: the app was ready once, where that
// is known, and the queue was reached once.
func Startup(in Inputs) Probe {
	p := Probe{OK: true}
	if in.App.Checked {
		p.add("app", in.App.Ready || in.App.WasReady, true, in.App.Reason, "the app has not been ready yet")
	}
	p.add("queue", in.Poll.Reached, true, in.Poll.Error, "no receive was answered yet")
	return p
}

// add notes a check; one that counts and is not OK fails the probe.
func (p *Probe) add(name string, ok, counts bool, reason, otherwise string) {
	c := Check{Name: name, OK: ok}
	if !ok {
		c.Reason = reason
		if reason == "" {
			c.Reason = otherwise
		}
	}
	p.Checks = append(p.Checks, c)
	p.OK = p.OK && (ok || !counts)
}
