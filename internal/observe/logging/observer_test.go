package logging

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"tendril/internal/observe/event"
	"tendril/internal/worker"
	"tendril/queue"
)

func TestObserverReceivesPrintedLines(t *testing.T) {
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
			got = append(got, fmt.Sprintf("%s %s %s %s", r.Level, r.Process, r.Stream, r.Text))
		}, happened(func(e event.Event) { got = append(got, fmt.Sprintf("%s: %s %v", e.Kind, e.Text, e.Fields)) }))
		event.Breaker.Log(l.With("component", "limit"), slog.LevelWarn, "breaker open", "target", "app\x1b[2J", "trial_in_ms", 5000)
		event.Pause.Log(l.Logger, slog.LevelInfo, "task paused", "task", "tidy")
		event.Health.Log(l.Logger, slog.LevelDebug, "left out")
		l.AppOutput("web.1", "stdout", []byte("ready"))
		l.Settled("jobs", "app", &worker.Settled{ID: "message-1", Outcome: queue.Failed, Status: 500, Attempt: 2,
			Reason: "HTTP 500", Duration: time.Second}, Redelivery{})
		want := []string{`WARN   breaker open  target=app\x1b[2J trial_in=5s`,
			"breaker: breaker open map[target:app\x1b[2J trial_in:5s]",
			`INFO   task paused  task=tidy`, `pause: task paused map[task:tidy]`, `INFO web.1 stdout ready`,
			`WARN   ✗ 500      1s  message-1  jobs  attempt 2: HTTP 500`}
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

type happened func(event.Event)

func (h happened) Happened(e event.Event) { h(e) }
