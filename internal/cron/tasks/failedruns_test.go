package tasks

import (
	"testing"

	"tendril/internal/cron/periodic"
	"tendril/queue"
)

func TestFailedRunsAreThoseInARow(t *testing.T) {
	t.Parallel()
	run := func(outcome queue.Outcome, reason string) periodic.Run {
		return periodic.Run{Attempts: 1, Result: queue.Result{Outcome: outcome, Reason: reason}}
	}
	pending, skipped := periodic.Run{}, periodic.Run{Skipped: periodic.ReasonOverlap}
	failed, older, done := run(queue.Failed, "HTTP 500"), run(queue.Unreached, "refused"), run(queue.Done, "")
	answered := run(queue.Failed, "HTTP 503")
	answered.Result.Answer = "the report service is down"
	for name, c := range map[string]struct {
		runs   []periodic.Run
		failed int
		reason string
	}{
		"none":                         {nil, 0, ""},
		"done":                         {[]periodic.Run{done, failed}, 0, ""},
		"failed before a success":      {[]periodic.Run{failed, older, done, failed}, 2, "HTTP 500"},
		"failed with an answer":        {[]periodic.Run{answered, failed}, 2, "HTTP 503 the report service is down"},
		"always failed":                {[]periodic.Run{failed, failed, failed}, 3, "HTTP 500"},
		"unfinished and left-out runs": {[]periodic.Run{pending, skipped, older, pending, failed}, 2, "refused"},
		"nothing delivered yet":        {[]periodic.Run{pending, skipped}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if n, reason := failedRuns(c.runs); n != c.failed || reason != c.reason {
				t.Errorf("%d failed for %q, want %d for %q", n, reason, c.failed, c.reason)
			}
		})
	}
}
