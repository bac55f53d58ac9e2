package supervisor

import (
	"testing"
	"time"
)

func TestReadiness(t *testing.T) {
	t.Parallel()
	opts := (*Options)(nil).withDefaults()
	start := time.Unix(0, 0)
	state := readiness{since: start, lateAfter: opts.ReadyLateAfter}
	steps := []struct {
		name          string
		at            time.Duration
		passed        bool
		ready         bool
		changed, late bool
		wait          time.Duration
	}{
		{"not yet", 0, false, false, false, false, 100 * time.Millisecond},
		{"looked at often while new", 9 * time.Second, false, false, false, false, 100 * time.Millisecond},
		{"then every second", 10 * time.Second, false, false, false, false, time.Second},
		{"late", 30 * time.Second, false, false, false, true, time.Second},
		{"late is not repeated at once", 31 * time.Second, false, false, false, false, time.Second},
		{"late again after twice the time", 60 * time.Second, false, false, false, true, time.Second},
		{"ready", 61 * time.Second, true, true, true, false, 5 * time.Second},
		{"still", 66 * time.Second, true, true, false, false, 5 * time.Second},
		{"one failure is forgiven", 71 * time.Second, false, true, false, false, time.Second},
		{"a pass forgets it", 73 * time.Second, true, true, false, false, 5 * time.Second},
		{"one", 78 * time.Second, false, true, false, false, time.Second},
		{"the second counts", 80 * time.Second, false, false, true, false, 0},
		{"late counts from when it was last ready", 104 * time.Second, false, false, false, true, time.Second},
		{"ready again", 105 * time.Second, true, true, true, false, 5 * time.Second},
	}
	for _, s := range steps {
		got := state.next(s.passed, start.Add(s.at), &opts)
		if s.wait == 0 {
			s.wait = time.Second
		}
		if state.ready != s.ready || got.changed != s.changed || got.late != s.late || got.wait != s.wait {
			t.Errorf("%s: ready %t, step %+v; want ready %t, changed %t, late %t, wait %s",
				s.name, state.ready, got, s.ready, s.changed, s.late, s.wait)
		}
	}
}
