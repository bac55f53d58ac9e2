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
	silence := now.Sub(last)
	return []Check{failedIf(!last.IsZero() && silence >= maxSilence, "process",
		"the main loop has not run for "+ago(silence))}
}

// readyChecks ignores shared queues that do not respond: failing would take all instances out of service.
func readyChecks(in inputs) []Check {
	checks := []Check{drainCheck(in), failedIf(!in.App.Ready, "app", cmp.Or(in.App.Reason, "the app is not ready"))}
	checks = append(checks, storeChecks(in)...)
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
		failedIf(!in.App.Ready && !in.App.WasReady, "app", cmp.Or(in.App.Reason, "the app has not become ready yet")),
		{Name: "queue", OK: true},
	}
}

func drainCheck(in inputs) Check { return failedIf(in.Draining, "environment", "draining") }

func storeChecks(in inputs) []Check {
	if in.Store == "" {
		return nil
	}
	return []Check{{Name: "store", Detail: in.Store}}
}

func failedIf(fails bool, name, reason string) Check {
	if !fails {
		return Check{Name: name, OK: true}
	}
	return Check{Name: name, Detail: reason}
}
