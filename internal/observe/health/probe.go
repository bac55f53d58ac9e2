package health

import (
	"cmp"
	"time"
)

// Check is one condition of a probe. The probe passes if all its checks are OK.
type Check struct {
	// Name is one word: "app", "queue".
	Name string `json:"name"`
	// OK is whether the condition holds now.
	OK bool `json:"ok"`
	// Detail says in a few words why it does not, or what was seen.
	Detail string `json:"detail,omitempty"`
}

// maxSilence is how long the process may show no sign of life.
const maxSilence = time.Minute

// live answers whether the process works at all: last is when the monitor's loop last
// came round. It looks at nothing that a restart would not fix. Before the first round it
// passes.
func live(last, now time.Time) []Check {
	c := Check{Name: "process", OK: last.IsZero() || now.Sub(last) < maxSilence}
	if !c.OK {
		c.Detail = "the main loop has not run for " + ago(now.Sub(last))
	}
	return []Check{c}
}

// ready answers whether this instance should be counted on: the app is ready, the queue
// was reached, and no stop is under way. A queue that does not answer now is no reason to
// take the instance out of use: it is shared, and all instances would be taken out at
// once. The store of an embedded queue is this instance's own.
func ready(in inputs) []Check {
	checks := []Check{running(in), failing("app", !in.App.Ready, cmp.Or(in.App.Reason, "the app is not ready"))}
	checks = append(checks, store(in)...)
	queue := failing("queue", in.Queue.DeletesRefused != "", in.Queue.DeletesRefused)
	if silence := in.Now.Sub(in.Poll.problem.Since); queue.OK && !in.Poll.problem.Since.IsZero() && silence >= maxSilence {
		queue.Detail = "the queue has not answered for " + ago(silence) + "; it is shared, so this instance stays in use"
	}
	return append(checks, queue)
}

// startup answers whether the start is over: the app was ready once. The start itself
// fails when a queue is not reached.
func startup(in inputs) []Check {
	return []Check{
		failing("app", !in.App.Ready && !in.App.WasReady, cmp.Or(in.App.Reason, "the app has not been ready yet")),
		{Name: "queue", OK: true},
	}
}

// running is the condition that no stop is under way.
func running(in inputs) Check { return failing("environment", in.Draining, "draining") }

// store is the condition that the embedded queues accept messages, nil while they do.
func store(in inputs) []Check {
	if in.Queue.Failed == "" {
		return nil
	}
	return []Check{failing("store", true, in.Queue.Failed)}
}

func failing(name string, fails bool, reason string) Check {
	if !fails {
		return Check{Name: name, OK: true}
	}
	return Check{Name: name, Detail: reason}
}
