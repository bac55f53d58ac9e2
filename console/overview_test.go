package console

import (
	"testing"
	"time"
)

func TestStateOfAQueueNamesTheReason(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		worker     Worker
		state, why string
	}{
		{Worker{Receiving: true}, "Running", ""},
		{Worker{Receiving: true, LimitedBy: "rate"}, "Running", "rate"},
		{Worker{Paused: true, PauseReason: "audit", LastError: "x"}, "Paused", "audit"},
		{Worker{GateReasons: []string{"app not ready", "breaker"}}, "Waiting", "app not ready"},
		{Worker{Receiving: true, LastError: "access denied"}, "Failing", "access denied"},
	} {
		if state, why := c.worker.State(); state != c.state || why != c.why {
			t.Errorf("%+v: %q %q, want %q %q", c.worker, state, why, c.state, c.why)
		}
	}
	w := Worker{WorkerCounts: WorkerCounts{Done: 3, Failed: 1}}
	if got := w.FailingShare(); got != 0.25 {
		t.Errorf("%v of 4 deliveries failed, want 0.25", got)
	}
	if got := (&Worker{}).FailingShare(); got != 0 {
		t.Errorf("%v of no deliveries failed", got)
	}
}

func TestDueRunsAreInTheirOrderWithoutPausedTasks(t *testing.T) {
	t.Parallel()
	at := func(minutes int) time.Time { return time.Unix(int64(60*minutes), 0) }
	st := &TasksStatus{Tasks: []Task{{Name: "a", Next: []time.Time{at(5), at(15)}}, {Name: "b", Next: []time.Time{at(7)}},
		{Name: "c", Paused: true, Next: []time.Time{at(1)}}}}
	names := ""
	for _, run := range st.Due(5) {
		names += run.Task.Name
	}
	if names != "aba" || len(st.Due(2)) != 2 || (*TasksStatus)(nil).Due(5) != nil {
		t.Errorf("due are %q", names)
	}
}
