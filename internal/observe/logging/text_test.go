package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tendril/internal/worker"
	"tendril/queue"
)

func text(opts Options) (*Logger, *bytes.Buffer) {
	var out bytes.Buffer
	opts.Out, opts.Format = &out, max(opts.Format, Text)
	return New(opts), &out
}

func TestUntrustedTextStaysInItsLine(t *testing.T) {
	t.Parallel()
	l, out := text(Options{})
	const hostile = "\x1b[2Jx\n12:00:00 · all is well\u202e"
	l.Warn(hostile, "err", errors.New(hostile), "a\x1b[8m", hostile)
	l.With("queue", hostile).WithGroup(hostile).Info("done", "id", hostile)
	l.Settled("jobs", "app", &worker.Settled{ID: "m1", Outcome: queue.Failed, Attempt: 2, Reason: hostile,
		Answer: "\u202e"}, Redelivery{})
	got := out.String()
	if strings.ContainsAny(got, "\x1b\u202e") || strings.Contains(got, "\n12:00:00 · all") {
		t.Errorf("printed %q", got)
	}
	for _, want := range []string{`! \x1b[2Jx` + "\n  12:00:00", `err="\x1b[2Jx\n12:00:00`, `attempt 2: \x1b[2Jx\n12:00:00`} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
}

func TestEventsOnATerminal(t *testing.T) {
	t.Parallel()
	for want, log := range map[string]func(*slog.Logger){
		"· receiving started  queue=jobs": func(l *slog.Logger) {
			l.Info("receiving started", "component", "worker", "queue", "jobs")
		},
		`! request failed  err="say \"no\"" retry_in=1.5s  hint: type 'tendril'`: func(l *slog.Logger) {
			l.With("component", "aws", "hint", "type 'tendril'").Warn("request failed", "err", errors.New(`say "no"`),
				"retry_in_ms", 1500)
		},
		`! failed  file="" app.pid=7 app.at=2026-01-02T03:04:05Z`: func(l *slog.Logger) {
			l.Error("failed", "file", "", slog.Group("app", "pid", 7, "at", time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)))
		},
		"· queue paused  who=owner queue=mail": func(l *slog.Logger) {
			l.Info("console action", "method", "POST", "path", "/x", "who", "owner", "remote", "::1", "status", 200, "request_id",
				"r", "act", "queue paused", "queue", "mail")
		},
		`! console action rejected  who=nobody act="queue paused" reason=no`: func(l *slog.Logger) {
			l.Warn("console action rejected", "method", "POST", "who", "nobody", "act", "queue paused", "reason", "no")
		},
		"· done": func(l *slog.Logger) { l.Debug("left out"); l.Info("done") },
	} {
		l, out := text(Options{})
		log(l.Logger)
		clock, line, _ := strings.Cut(strings.TrimSuffix(out.String(), "\n"), " ")
		if _, err := time.Parse(time.TimeOnly, clock); err != nil || line != want {
			t.Errorf("printed %q, want %q: %v", line, want, err)
		}
	}
	l, out := text(Options{Color: true})
	l.Error("failed", "n", 1)
	if want := "\x1b[31m ! \x1b[0mfailed  \x1b[2mn=\x1b[0m1\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("in colour: %q, want %q", out.String(), want)
	}
}

func TestQuietKeepsWarningsAndTheAppsOutput(t *testing.T) {
	t.Parallel()
	for _, format := range []Format{Text, SQSD} {
		l, out := text(Options{Format: format, Level: slog.LevelWarn})
		l.Info("receiving started")
		l.Settled("jobs", "app", &worker.Settled{ID: "m1", Outcome: queue.Done}, Redelivery{})
		l.Sent(func() string { return "http://localhost:80/" })
		if !l.Banner("tendril", "env", nil) || out.Len() > 0 {
			t.Errorf("printed %q", out)
		}
		l.AppOutput("web.1", "stdout", []byte("hello"))
		l.Warn("careful")
		if got := out.String(); !strings.HasPrefix(got, "web.1 | hello\n") || !strings.HasSuffix(got, " ! careful\n") {
			t.Errorf("printed %q", got)
		}
	}
}

func TestBanner(t *testing.T) {
	t.Parallel()
	l, out := text(Options{})
	if !l.Banner("tendril 1.0", "jobs", [][2]string{{"console", "off"}}) ||
		out.String() != "tendril 1.0  jobs\n  console      off\n" {
		t.Errorf("printed %q", out)
	}
	if New(Options{Out: out}).Banner("", "", nil) {
		t.Error("JSON has a banner")
	}
}

func TestLastAttemptIsNamed(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := worker.Settled{ID: "m1", Status: 500, Reason: "HTTP 500", Attempt: 3, Answer: "no such order",
		Task: "tidy", NextRetry: now.Add(5*time.Minute - time.Millisecond)}
	last := Redelivery{Known: true, MaxReceives: 3, DeadLetterQueue: "jobs-dead"}
	for _, tt := range []struct {
		next  Redelivery
		now   bool
		says  queue.Instruction
		level slog.Level
		want  string
	}{
		{Redelivery{Known: true}, false, 0, 0, `m1  jobs task tidy  attempt 3: HTTP 500 "no such order"; next in 5m0s`},
		{last, false, 0, 0, `attempt 3: HTTP 500 "no such order"; last of 3, moving to jobs-dead in 5m0s`},
		{last, true, 0, 0, `attempt 3: HTTP 500 "no such order"; last of 3, moving to jobs-dead now`},
		{Redelivery{DeadLetterQueue: "jobs-dead"}, true, queue.TerminalStatus, 0,
			`attempt 3: HTTP 500 "no such order"; moving to jobs-dead now`},
		{Redelivery{}, false, 0, slog.LevelWarn, `attempt 3: HTTP 500; visible again in 5m0s`},
	} {
		var b bytes.Buffer
		s.DeadLettering, s.Instruction = tt.now, tt.says
		New(Options{Level: tt.level}).appendSettled(false, &b, "jobs", &s, tt.next, now)
		if !strings.HasSuffix(b.String(), tt.want) {
			t.Errorf("%+v: got %q, want %q", tt.next, b.String(), tt.want)
		}
	}
}

func TestJSONHasTheKeysThatProgramsRead(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := New(Options{Out: &out})
	for _, tt := range []struct {
		log  func()
		want map[string]any
	}{
		{func() {
			l.Settled("jobs", "http://app/", &worker.Settled{ID: "m1", Outcome: queue.Failed, Attempt: 3, ReceiveCount: 4,
				Status: 500, Reason: "HTTP 500", Answer: "no", Task: "tidy", Late: true, Err: errors.New("broken"),
				Duration: time.Second, Wait: time.Minute}, Redelivery{DeadLetterQueue: "jobs-dead"})
		}, map[string]any{"level": "WARN", "msg": "settled", "component": "worker", "queue": "jobs", "message_id": "m1",
			"target": "http://app/", "attempt": 3.0, "receive_count": 4.0, "outcome": "failed", "duration_ms": 1000.0,
			"wait_ms": 60000.0, "status": 500.0, "reason": "HTTP 500", "answer": "no", "task": "tidy", "last_attempt": true,
			"dead_letter_queue": "jobs-dead", "late": true, "err": "broken"}},
		{func() { l.SDK(slog.LevelDebug, "attempt 2"); l.SDK(slog.LevelWarn, "failed to close") },
			map[string]any{"level": "WARN", "msg": "AWS SDK message", "component": "aws", "text": "failed to close"}},
		{func() { l.AppOutput("web.1", "stderr", []byte("oops")) },
			map[string]any{"level": "INFO", "msg": "app output", "component": "web.1", "stream": "stderr", "line": "oops"}},
	} {
		out.Reset()
		tt.log()
		got := map[string]any{}
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
		if delete(got, "time"); len(got) != len(tt.want) {
			t.Errorf("logged %v, want %v", got, tt.want)
		}
		for key, want := range tt.want {
			if got[key] != want {
				t.Errorf("%s is %v, want %v", key, got[key], want)
			}
		}
	}
}

func TestSampledLinesAreReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, out := text(Options{PerSecond: 1})
		fail := func() { l.Settled("jobs", "app", &worker.Settled{ID: "m1", Outcome: queue.Failed}, Redelivery{}) }
		for range 3 {
			fail()
		}
		time.Sleep(time.Second)
		fail()
		fail()
		l.Postponed("jobs")(&queue.Message{ID: "m2"}, time.Second, errors.New("S3 is away"))
		l.sampler.reportOmitted(time.Now().Add(time.Second), l.logOmitted)
		for want, n := range map[string]int{"log lines omitted  outcome=failed lines=2": 1,
			"log lines omitted  outcome=failed lines=1": 1, "m1": 2, "message_id=m2": 1} {
			if strings.Count(out.String(), want) != n {
				t.Errorf("%q is not there %d times: %s", want, n, out)
			}
		}
	})
}

func TestIntervalAllowsOneEach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i, allowed := Interval{Every: 10 * time.Second}, 0
		for range 25 {
			if i.Allow() {
				allowed++
			}
			time.Sleep(time.Second)
		}
		if allowed != 3 {
			t.Errorf("%d lines in 25 s, want 3", allowed)
		}
	})
}

func TestJSONDurationsAreMilliseconds(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := New(Options{Out: &out})
	l.With("age", 1500*time.Millisecond).WithGroup("run").Info("run enqueued", "lateness", 7240*time.Millisecond,
		slog.Group("next", "in", time.Minute), "duration_ms", 12)
	l.Postponed("jobs")(&queue.Message{ID: "m1"}, 2*time.Second, errors.New("later"))
	var lines []map[string]any
	for line := range strings.Lines(out.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		delete(fields, "time")
		lines = append(lines, fields)
	}
	want := []map[string]any{
		{"level": "INFO", "msg": "run enqueued", "age_ms": 1500.0, "run": map[string]any{"lateness_ms": 7240.0,
			"next": map[string]any{"in_ms": 60000.0}, "duration_ms": 12.0}},
		{"level": "WARN", "msg": "delivery postponed", "component": "worker", "queue": "jobs", "message_id": "m1", "outcome": "postponed",
			"retry_in_ms": 2000.0, "err": "later"},
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}

func TestDoneMessageWithReasonIsAWarning(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]Options{"JSON": {}, "text": {Format: Text}, "aws-sqsd": {Format: SQSD},
		"quiet": {Level: slog.LevelWarn}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			opts.Out = &out
			New(opts).Settled("jobs", "lambda:f", &worker.Settled{ID: "m1", Outcome: queue.Done, Reason: "in the body"}, Redelivery{})
			if !strings.Contains(out.String(), "message deleted, failures in response ignored") || !strings.Contains(out.String(), "in the body") {
				t.Errorf("logged %q", out.String())
			}
		})
	}
}
