package supervisor

import (
	"fmt"
	"time"
)

// Options set how processes are kept. The zero value, and a nil *Options, are
// the defaults.
type Options struct {
	// Grace is how long a process may take to end after TERM before its whole
	// group gets KILL; 0 means 10 s.
	Grace time.Duration

	// RestartMin and RestartMax bound the pause before a restart, which
	// doubles with every failure in RestartWindow; 0 means 500 ms and 30 s.
	RestartMin, RestartMax time.Duration
	// RestartLimit is how many restarts RestartWindow may hold; one failure
	// more and the process is given up. 0 means 10; negative means that a
	// process is never restarted.
	RestartLimit int
	// RestartWindow is the time over which failures count; 0 means 300 s.
	RestartWindow time.Duration

	// ReadyInterval is the time between two checks of a process that is not
	// ready; 0 means 100 ms. Ten seconds after its start it becomes 1 s, where
	// that is longer.
	ReadyInterval time.Duration
	// HealthInterval is the time between two checks of a ready process; 0 means
	// 5 s. Three failed checks in a row, 1 s apart, make it not ready.
	HealthInterval time.Duration
	// ReadyLateAfter is when a process that is still not ready is reported by
	// [Events.ReadyLate], and again after twice, four times... as long; it is
	// never killed for it. 0 means 30 s.
	ReadyLateAfter time.Duration

	// Output takes every line that a process writes, without its end of line
	// and with control characters escaped; stream is "stdout" or "stderr". It
	// is called by one goroutine at a time and must not keep line. A sink that
	// stalls costs lines, which are counted, and never stops a process. nil
	// throws output away.
	Output func(process, stream string, line []byte)
	// MaxLine is the longest line in bytes; the rest of a longer one is cut and
	// its length told in its place. 0 means 16 KiB.
	MaxLine int
	// LinesPerSecond is how many lines a process may write per second, averaged
	// over five seconds; more are dropped and counted. 0 means 1000.
	LinesPerSecond int

	// Events are called as things happen.
	Events Events
}

// withDefaults returns a copy in which no zero is left.
func (o *Options) withDefaults() (Options, error) {
	var set Options
	if o != nil {
		set = *o
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		zero  time.Duration
	}{
		{"Grace", &set.Grace, 10 * time.Second},
		{"RestartMin", &set.RestartMin, 500 * time.Millisecond},
		{"RestartMax", &set.RestartMax, 30 * time.Second},
		{"RestartWindow", &set.RestartWindow, 300 * time.Second},
		{"ReadyInterval", &set.ReadyInterval, 100 * time.Millisecond},
		{"HealthInterval", &set.HealthInterval, 5 * time.Second},
		{"ReadyLateAfter", &set.ReadyLateAfter, 30 * time.Second},
	} {
		if *d.value < 0 {
			return set, fmt.Errorf("%s is %s: it cannot be negative; 0 means %s", d.name, *d.value, d.zero)
		}
		if *d.value == 0 {
			*d.value = d.zero
		}
	}
	for _, n := range []struct {
		name  string
		value *int
		zero  int
	}{{"MaxLine", &set.MaxLine, 16 << 10}, {"LinesPerSecond", &set.LinesPerSecond, 1000}} {
		if *n.value < 0 {
			return set, fmt.Errorf("%s is %d: it cannot be negative; 0 means %d", n.name, *n.value, n.zero)
		}
		if *n.value == 0 {
			*n.value = n.zero
		}
	}
	if set.RestartMin > set.RestartMax {
		return set, fmt.Errorf("RestartMin %s is longer than RestartMax %s: make it the same or shorter", set.RestartMin, set.RestartMax)
	}
	if set.RestartLimit == 0 {
		set.RestartLimit = 10
	}
	set.RestartLimit = max(set.RestartLimit, 0)
	return set, nil
}
