package logging

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"tendril/internal/worker"
	"tendril/queue"
)

// TestObserverGetsWhatIsPrinted, in every format the same, and events that the level keeps from being printed.
func TestObserverGetsWhatIsPrinted(t *testing.T) {
	t.Parallel()
	for _, opts := range []Options{{}, {Format: Text, Color: true}, {Format: SQSD}, {Level: slog.LevelWarn}} {
		var out bytes.Buffer
		opts.Out = &out
		l := New(opts)
		l.Info("before anybody listens")
		var got []string
		l.Observe(func(r *Record) {
			if r.At.IsZero() {
				t.Errorf("%q has no time", r.Text)
			}
			got = append(got, fmt.Sprintf("%s %s %s [%s] %s %d", r.Level, r.Process, r.Stream, r.Message, r.Text, len(r.Attrs)))
		})
		l.With("component", "limit").Warn("breaker open", "target", "app\x1b[2J", "trial_in_ms", 5000)
		l.Info("task paused", "task", "tidy")
		l.Debug("left out")
		l.AppOutput("web.1", "stdout", []byte("ready"))
		l.Settled("jobs", "app", &worker.Settled{ID: "message-1", Outcome: queue.Failed, Status: 500, Attempt: 2,
			Reason: "status 500", Duration: time.Second}, Redelivery{})
		want := []string{`WARN   [breaker open] breaker open  target=app\x1b[2J trial_in=5s 3`,
			`INFO   [task paused] task paused  task=tidy 1`, `INFO web.1 stdout [] ready 0`,
			`WARN   [] ✗ 500      1s  message-1  attempt 2: status 500 0`}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%+v: observed\n%s\nwant\n%s", opts, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if quiet := opts.Level > slog.LevelInfo; strings.Contains(out.String(), "task paused") == quiet {
			t.Errorf("%+v: printed %s", opts, &out)
		}
		if n := strings.Count(out.String(), "message-1"); n != 1 {
			t.Errorf("%+v: a delivery is printed %d times", opts, n)
		}
	}
}
