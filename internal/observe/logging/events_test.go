package logging

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tendril/internal/aws"
	"tendril/internal/delivery/limit"
	"tendril/internal/worker"
	"tendril/queue"
)

func TestThrottlingIsLoggedAtIntervals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, out := text(Options{})
		jobs, mails := l.Worker("jobs", "lambda:f"), l.Worker("mails", "lambda:f")
		for range 25 {
			jobs.Throttled(worker.Throttled{For: time.Second, Reason: "too many requests"})
			time.Sleep(time.Second)
		}
		mails.Throttled(worker.Throttled{For: time.Second})
		for queue, want := range map[string]int{"jobs": 3, "mails": 1} {
			if n := strings.Count(out.String(), "target throttled, receiving paused  queue="+queue); n != want {
				t.Errorf("%d lines about %s in 25 s, want %d:\n%s", n, queue, want, out)
			}
		}
	})
}

func TestGateReasonIsLoggedOnce(t *testing.T) {
	t.Parallel()
	l, out := text(Options{})
	changed := l.Worker("jobs", "app").GateChanged
	pause := func(block worker.Block, text string) {
		changed(worker.GateChanged{Reasons: []worker.Reason{{Block: block, Text: text}}})
	}
	pause(worker.NotReady, "waiting")
	pause(worker.AppDown, "refused")
	changed(worker.GateChanged{Open: true})
	pause(worker.NotReady, "exited")
	pause(worker.NotReady, "exited")
	pause(worker.AppDown, "refused")
	pause(worker.Draining, "draining")
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, line[len("15:04:05"):])
	}
	const paused = " receiving paused  queue=jobs reason="
	want := []string{" !" + paused + "\"app down\" detail=refused\n", " · receiving started  queue=jobs\n",
		" ·" + paused + "\"not ready\" detail=exited\n", " !" + paused + "\"app down\" detail=refused\n"}
	if strings.Join(got, "") != strings.Join(want, "") {
		t.Errorf("logged %q, want %q", got, want)
	}
}

// Programs depend on these messages and keys.
func TestEventsBecomeLines(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for want, report := range map[string]func(*Logger){
		`"WARN","msg":"receiving failed","component":"worker","queue":"jobs","failures":2,"retry_in_ms":1000,"err":"broken"`: func(
			l *Logger) {
			l.Worker("jobs", "app").PollFailed(worker.PollFailed{Err: broken, Failures: 2, RetryIn: time.Second})
		},
		`"ERROR","msg":"receiving failed"`: func(l *Logger) {
			l.Worker("jobs", "app").PollFailed(worker.PollFailed{Err: broken, Permanent: true})
		},
		`"WARN","msg":"message dead-lettered","component":"broker","queue":"jobs","message_id":"m1"`: func(l *Logger) {
			l.Broker().DeadLettered("jobs", "jobs-dead", []string{"m1"})
		},
		`"WARN","msg":"message dead-lettered","component":"worker","queue":"jobs","message_id":"m1","outcome":"dead-lettered",` +
			`"dead_letter_queue":"jobs-dead","reason":"HTTP 500"`: func(l *Logger) {
			l.DeadLettered("jobs", "jobs-dead", worker.DeadLettered{ID: "m1", Reason: "HTTP 500"})
			l.DeadLettered("jobs", "jobs-dead", worker.DeadLettered{ID: "m2", Err: broken})
		},
		`"ERROR","msg":"message not sent to the dead-letter queue, the server moves it without a reason",` +
			`"component":"worker","queue":"jobs","message_id":"m1","reason":"HTTP 500","err":"AccessDenied",` +
			`"hint":"allow sqs:SendMessage on the dead-letter queue"`: func(l *Logger) {
			e := l.Worker("jobs", "app")
			e.DeadLettered(worker.DeadLettered{ID: "m1", Reason: "HTTP 500", Err: queue.ErrDenied})
			e.DeadLettered(worker.DeadLettered{ID: "m2", Reason: "HTTP 500", Err: broken})
		},
		`"ERROR","msg":"message dead-lettered but not deleted, it may be dead-lettered twice","component":"worker",` +
			`"queue":"jobs","message_id":"m1","err":"broken"`: func(l *Logger) {
			l.Worker("jobs", "app").DeleteFailed(worker.DeleteFailed{ID: "m1", Err: broken, Final: true, DeadLetter: true})
		},
		`"WARN","msg":"system clock wrong, signatures compensate for it","component":"aws","offset_ms":3600000`: func(l *Logger) {
			l.AWS().ClockAdjusted(time.Hour)
		},
		`"ERROR","msg":"message damaged, its checksum does not match","component":"aws","queue":"jobs"`: func(l *Logger) {
			l.AWS().Corrupted(aws.Corruption{Queue: "jobs", Part: "body"})
		},
		`"WARN","msg":"breaker open","component":"limit","target":"app","failures":6,"deliveries":10,"trial_in_ms":5000`: func(
			l *Logger) {
			l.Limiter("app").Opened(limit.Opened{Failures: 6, Deliveries: 10, Delay: 5 * time.Second})
		},
		`"INFO","msg":"limit delays messages","component":"limit","queue":"jobs","reason":"rate"`: func(l *Logger) {
			l.Worker("jobs", "app").Limited(worker.Limited{Reason: "rate"})
		},
		`"INFO","msg":"limit no longer delays messages","component":"limit","queue":"jobs","reason":"rate","duration_ms":9`: func(
			l *Logger) {
			l.Worker("jobs", "app").Limited(worker.Limited{Reason: "rate", Over: true, For: 9 * time.Millisecond})
		},
	} {
		var out bytes.Buffer
		report(New(Options{Out: &out}))
		if !strings.Contains(out.String(), want) {
			t.Errorf("logged %s, want %s", out.String(), want)
		}
	}
}

func TestLinesAboutAMessageNameItsQueueAndTask(t *testing.T) {
	t.Parallel()
	const id, task = "m1", "tidy"
	broken := errors.New("broken")
	for name, report := range map[string]func(*Logger, *worker.Events){
		"settled": func(l *Logger, _ *worker.Events) {
			l.Settled("jobs", "app", &worker.Settled{ID: id, Task: task, Outcome: queue.Failed}, Redelivery{})
		},
		"failures in response": func(l *Logger, _ *worker.Events) {
			l.Settled("jobs", "app", &worker.Settled{ID: id, Task: task, Outcome: queue.Done, Reason: "one failed"}, Redelivery{})
		},
		"postponed": func(l *Logger, _ *worker.Events) {
			l.Postponed("jobs")(&queue.Message{ID: id, Attributes: []queue.Attribute{{Name: queue.AttributeTask, Value: task}}}, 0, broken)
		},
		"dead-lettered": func(l *Logger, _ *worker.Events) {
			l.DeadLettered("jobs", "dead", worker.DeadLettered{ID: id, Task: task})
		},
		"not dead-lettered": func(_ *Logger, e *worker.Events) {
			e.DeadLettered(worker.DeadLettered{ID: id, Task: task, Err: broken})
		},
		"not deleted": func(_ *Logger, e *worker.Events) {
			e.DeleteFailed(worker.DeleteFailed{ID: id, Task: task, Err: broken, Final: true})
		},
		"not changed": func(_ *Logger, e *worker.Events) {
			e.ChangeFailed(worker.ChangeFailed{ID: id, Task: task, Err: broken})
		},
		"visibility expired": func(_ *Logger, e *worker.Events) {
			e.VisibilityExpired(worker.VisibilityExpired{ID: id, Task: task, InWork: true})
		},
		"expired":   func(_ *Logger, e *worker.Events) { e.Expired(worker.Expired{ID: id, Task: task}) },
		"filtered":  func(_ *Logger, e *worker.Events) { e.Filtered(worker.Filtered{ID: id, Task: task}) },
		"duplicate": func(_ *Logger, e *worker.Events) { e.Duplicate(worker.Duplicate{ID: id, Task: task}) },
	} {
		var out bytes.Buffer
		l := New(Options{Out: &out, Level: slog.LevelDebug})
		report(l, l.Worker("jobs", "app"))
		for line := range strings.Lines(out.String()) {
			for _, want := range []string{`"queue":"jobs"`, `"message_id":"m1"`, `"task":"tidy"`} {
				if !strings.Contains(line, want) {
					t.Errorf("%s: %s is missing in %s", name, want, line)
				}
			}
		}
		if out.Len() == 0 {
			t.Errorf("%s: nothing was logged", name)
		}
	}
}
