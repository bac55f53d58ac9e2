package tasks

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/cron/periodic"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func TestTaskTable(t *testing.T) {
	t.Parallel()
	got := List.Table([]api.Task{
		{Name: "tidy", Words: "every day at 14:00 Europe/Berlin", Zone: "Europe/Berlin",
			Next: []time.Time{noon, noon.Add(time.Hour)},
			Last: &api.TaskRun{ScheduledAt: noon.Add(-time.Hour), Outcome: "failed", Status: 500, Reason: "HTTP 500",
				DurationMS: 1500, Attempts: 3}},
		{Name: "a\x1b[31m", Words: "every minute UTC", Zone: "UTC", Paused: true, PauseReason: "audit", Failing: 2},
		{Name: "far", Zone: "No/Where", Next: []time.Time{noon.In(time.FixedZone("", 3600)).Add(time.Second)}},
	})
	want := [][]string{
		{"TASK", "SCHEDULE", "NEXT", "LAST RUN", "OUTCOME", "NOTE"},
		{"tidy", "every day at 14:00 Europe/Berlin", "2026-07-01 14:00 CEST", "2026-07-01 13:00 CEST",
			"failed 500: HTTP 500 in 1.5s (attempt 3)", ""},
		{`a\x1b[31m`, "every minute UTC", "-", "-", "-", "PAUSED: audit; ENQUEUEING FAILS, 2 times in a row"},
		{"far", "", "2026-07-01 13:00:01 +0100", "-", "-", ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestRunTable(t *testing.T) {
	t.Parallel()
	got := runList.Table([]api.TaskRun{
		{Task: "tidy", RunID: "x", ScheduledAt: noon, EnqueuedAt: noon, LatenessMS: 12, MessageID: "m1", Manual: true,
			Resent: true},
		{Task: "tidy", ScheduledAt: noon, MessageID: "m2", Attempts: 1, Outcome: "done", Status: 200, DurationMS: 41},
		{Task: "tidy", ScheduledAt: noon, Skipped: "paused"},
		{Task: "tidy", RunID: "y", ScheduledAt: noon, EnqueuedAt: noon, MessageID: "m3", Attempts: 1, Outcome: "unreached",
			Reason: "connection refused"},
	})[1:]
	want := [][]string{
		{"tidy", "2026-07-01 12:00 UTC", "12ms", "not delivered here yet", "m1", "run by hand, possibly sent twice"},
		{"tidy", "2026-07-01 12:00 UTC", "-", "done 200 in 41ms", "m2", "enqueued elsewhere"},
		{"tidy", "2026-07-01 12:00 UTC", "-", "skipped: paused", "-", ""},
		{"tidy", "2026-07-01 12:00 UTC", "0s", "unreached: connection refused in 0s", "m3", ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestStatusSaysWhoLeads(t *testing.T) {
	t.Parallel()
	tasks := []api.Task{{Name: "b", Zone: "UTC", Next: []time.Time{noon.Add(time.Hour)}},
		{Name: "a", Zone: "UTC", Next: []time.Time{noon}},
		{Name: "held", Zone: "UTC", Paused: true, Next: []time.Time{noon.Add(-time.Hour)}}}
	const next = "; next a, 2026-07-01 12:00 UTC; 1 PAUSED"
	for want, st := range map[string]api.TasksStatus{
		"3, led by this instance (term 4)" +
			next: {Leader: api.Leader{Leading: true, Term: 4, Holder: "me"}, Tasks: tasks},
		"3, led by web-2 (term 7), seen 3s ago" +
			next: {Leader: api.Leader{Term: 7, Holder: "web-2", AgeSeconds: 3.4}, Tasks: tasks},
		"3, led by this instance, declared the only one (--leader local)" +
			next: {Leader: api.Leader{Leading: true, Local: true}, Tasks: tasks},
		"3, no leader known; registry error: table jobs is missing" +
			next: {Leader: api.Leader{Error: "table jobs is missing"}, Tasks: tasks},
		"3, NOT SCHEDULED: no leader can be elected: add --registry-table NAME": {Off: "no leader can be elected: add " +
			"--registry-table NAME", Tasks: tasks},
		"0, led by this instance (term 1)": {Leader: api.Leader{Leading: true, Term: 1}},
		"3, led by this instance (term 4); registry error: timed out" +
			next: {Leader: api.Leader{Leading: true, Term: 4, Error: "timed out"}, Tasks: tasks},
	} {
		if got := Summary(&st); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestBadTasksAreAUsageError(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("starting: %w",
		&periodic.Error{Problems: []periodic.Problem{{Where: "cron.yaml:3", Text: "one", Hint: "do this"},
			{Where: "cron.yaml", Text: "two"}}})
	var out strings.Builder
	base.PrintError(&out, err)
	if want := "tendril: cron.yaml:3: one\nhint: do this\ntendril: cron.yaml: two\n"; out.String() != want ||
		base.ExitCode(err) != base.ExitUsage {
		t.Errorf("printed %q, exit %d; want %q, %d", out.String(), base.ExitCode(err), want, base.ExitUsage)
	}
}
