package console

import (
	"fmt"
	"testing"
	"time"

	"tendril/api"
)

func TestFailingShareIsThatOfTheRecentDeliveries(t *testing.T) {
	t.Parallel()
	w := api.Worker{RecentDeliveries: 4, RecentFailed: 1, WorkerCounts: api.WorkerCounts{Done: 30, Failed: 70}}
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
		{Name: "failing", FailedRuns: 20, LastFailure: "HTTP 500", Next: []time.Time{at(7)}},
		{Name: "both", Paused: true, FailedRuns: 1, Problem: "no queue", Next: []time.Time{at(8)}}}}
	got := ""
	for _, task := range st.First(9) {
		got += fmt.Sprintf("%s: %s, %s\n", task.Name, task.State(), task.Why())
	}
	want := `failing: Failing, its last 20 runs failed: HTTP 500
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
