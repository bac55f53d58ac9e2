package console

import (
	"fmt"
	"testing"
	"time"

	"tendril/api"
)

func TestStateOfAQueueNamesTheReason(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		worker     api.Worker
		state, why string
	}{
		{api.Worker{Receiving: true}, "Running", ""},
		{api.Worker{Receiving: true, LimitedBy: "rate"}, "Running", "rate"},
		{api.Worker{Paused: true, PauseReason: "audit", LastError: "x"}, "Paused", "audit"},
		{api.Worker{GateReasons: []string{"app not ready", "breaker"}}, "Waiting", "app not ready"},
		{api.Worker{Receiving: true, LastError: "access denied"}, "Failing", "access denied"},
	} {
		if state, why := c.worker.State(); state != c.state || why != c.why {
			t.Errorf("%+v: %q %q, want %q %q", c.worker, state, why, c.state, c.why)
		}
	}
	w := api.Worker{WorkerCounts: api.WorkerCounts{Done: 3, Failed: 1}}
	if got := w.FailingShare(); got != 0.25 {
		t.Errorf("%v of 4 deliveries failed, want 0.25", got)
	}
	if got := (&api.Worker{}).FailingShare(); got != 0 {
		t.Errorf("%v of no deliveries failed", got)
	}
}

func TestFirstTasksAreThoseThatFailThenThoseDueNext(t *testing.T) {
	t.Parallel()
	at := func(minutes int) time.Time { return time.Unix(int64(60*minutes), 0) }
	st := &api.TasksStatus{Tasks: []api.Task{{Name: "later", Next: []time.Time{at(5), at(15)}},
		{Name: "paused", Paused: true, PauseReason: "too slow", Next: []time.Time{at(1)}},
		{Name: "next", Next: []time.Time{at(4)}}, {Name: "off"},
		{Name: "failing", FailedRuns: 20, LastFailure: "status 500", Next: []time.Time{at(7)}},
		{Name: "both", Paused: true, FailedRuns: 1, Problem: "no queue", Next: []time.Time{at(8)}}}}
	got := ""
	for _, task := range st.First(9) {
		got += fmt.Sprintf("%s: %s, %s\n", task.Name, task.State(), task.Why())
	}
	want := `failing: Failing, its last 20 runs failed: status 500
both: Failing, paused; its last run failed; no queue
next: Scheduled, 
later: Scheduled, 
off: Scheduled, 
paused: Paused, paused: too slow
`
	if got != want || len(st.First(2)) != 2 || (*api.TasksStatus)(nil).First(5) != nil {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
