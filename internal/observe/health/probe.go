package health

import (
	"cmp"
	"time"
)

// Check is one check of a probe. A probe passes if all its checks are OK.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}

const maxSilence = time.Minute

// liveChecks ignores problems that a restart cannot fix.
func liveChecks(last, now time.Time) []Check {
	c := Check{Name: "process", OK: last.IsZero() || now.Sub(last) < maxSilence}
	if !c.OK {
		c.Detail = "the main loop has not run for " + ago(now.Sub(last))
	}
	return []Check{c}
}

// readyChecks ignores shared queues that do not respond: failing would take all instances out of service.
func readyChecks(in inputs) []Check {
	checks := []Check{running(in), failing("app", !in.App.Ready, cmp.Or(in.App.Reason, "the app is not ready"))}
	checks = append(checks, store(in)...)
	return append(checks, queueCheck(in))
}

func queueCheck(in inputs) Check {
	check := Check{Name: "queue", OK: true}
	for i := range in.Queues {
		q := &in.Queues[i]
		if q.DeletesRefused.Reason != "" {
			return Check{Name: "queue", Detail: q.Name + ": " + q.DeletesRefused.Reason}
		}
		since := q.Poll.problem.Since
		if silence := in.Now.Sub(since); check.Detail == "" && !since.IsZero() && silence >= maxSilence {
			check.Detail = q.Name + " has not responded for " + ago(silence) + "; it is shared, so this instance keeps serving"
		}
	}
	return check
}

// startupChecks ignores queues, because startup itself fails if one is unreachable.
func startupChecks(in inputs) []Check {
	return []Check{
		failing("app", !in.App.Ready && !in.App.WasReady, cmp.Or(in.App.Reason, "the app has not become ready yet")),
		{Name: "queue", OK: true},
	}
}

func running(in inputs) Check { return failing("environment", in.Draining, "draining") }

func store(in inputs) []Check {
	if in.Store == "" {
		return nil
	}
	return []Check{failing("store", true, in.Store)}
}

func failing(name string, fails bool, reason string) Check {
	if !fails {
		return Check{Name: name, OK: true}
	}
	return Check{Name: name, Detail: reason}
}
