package logging

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"tendril/broker"
	"tendril/internal/aws"
	"tendril/internal/delivery/limit"
	"tendril/internal/observe/event"
	"tendril/internal/worker"
	"tendril/queue"
)

const warningEvery = 10 * time.Second

// Worker returns listeners that log a worker's events, except settled messages.
func (l *Logger) Worker(name, target string) *worker.Events {
	log := l.With("component", "worker", "queue", name)
	about := func(id, task string) *slog.Logger { return aboutMessage(log, id, task) }
	throttled := Interval{Every: warningEvery}
	unsent := Interval{Every: warningEvery}
	return &worker.Events{
		GateChanged: (&gateLogger{log: log}).changed,
		PollFailed: func(p worker.PollFailed) {
			level := slog.LevelWarn
			if p.Permanent {
				level = slog.LevelError
			}
			log.Log(context.Background(), level, "receiving failed", "failures", p.Failures, slog.Duration("retry_in", p.RetryIn),
				"err", p.Err)
		},
		DeleteFailed: func(d worker.DeleteFailed) {
			switch {
			case d.Final && d.DeadLetter:
				about(d.ID, d.Task).Error("message dead-lettered but not deleted, it may be dead-lettered twice", "err", d.Err)
			case d.Final:
				about(d.ID, d.Task).Error("message done but not deleted, it may be attempted again", "err", d.Err)
			}
		},
		ChangeFailed: func(c worker.ChangeFailed) {
			about(c.ID, c.Task).Warn("visibility timeout not changed", "change", c.Kind, "err", c.Err)
		},
		DeadLettered: func(d worker.DeadLettered) {
			if d.Err != nil && unsent.Allow() {
				logUnsent(about(d.ID, d.Task), &d)
			}
		},
		VisibilityExpired: func(x worker.VisibilityExpired) {
			if x.InWork {
				about(x.ID, x.Task).Warn("visibility timeout expired in flight, the message may be attempted again")
			}
		},
		Expired: func(x worker.Expired) {
			about(x.ID, x.Task).Warn("message past its retention period deleted", "outcome", "expired",
				"first_received_at", x.FirstReceivedAt.UTC(), "receive_count", x.ReceiveCount)
		},
		Filtered: func(x worker.Filtered) {
			about(x.ID, x.Task).Debug("message filtered out and deleted", "outcome", "filtered")
		},
		Throttled: func(x worker.Throttled) {
			if throttled.Allow() {
				log.Warn("target throttled, receiving paused", "target", target, "reason", x.Reason, slog.Duration("pause", x.For))
			}
		},
		Limited: func(x worker.Limited) {
			log := l.With("component", "limit", "queue", name, "reason", x.Reason)
			if x.Over {
				log.Info("limit no longer delays messages", slog.Duration("duration", x.For))
			} else {
				log.Info("limit delays messages")
			}
		},
		Stalled: func(s worker.Stalled) {
			event.Health.Log(log, slog.LevelWarn, "process stalled, messages in flight may be attempted twice", slog.Duration("duration", s.For))
		},
		Duplicate: func(d worker.Duplicate) {
			about(d.ID, d.Task).Debug("message received again, not posted again", "stage", d.Stage)
		},
		Returned: func(g worker.Returned) { log.Debug("messages returned unposted", "messages", g.Messages) },
	}
}

func logUnsent(log *slog.Logger, d *worker.DeadLettered) {
	attrs := []any{"reason", d.Reason, "err", d.Err}
	if errors.Is(d.Err, queue.ErrDenied) {
		attrs = append(attrs, "hint", "allow sqs:SendMessage on the dead-letter queue")
	}
	if d.Instruction.DeadLetters() {
		log.Error("message not sent to the dead-letter queue, it may be attempted again", attrs...)
		return
	}
	log.Error("message not sent to the dead-letter queue, the server moves it without a reason", attrs...)
}

func aboutMessage(log *slog.Logger, id, task string) *slog.Logger {
	log = log.With("message_id", id)
	if task != "" {
		log = log.With("task", task)
	}
	return log
}

// DeadLettered logs that a worker dead-lettered a message. It ignores failures.
func (l *Logger) DeadLettered(name, to string, d worker.DeadLettered) {
	if d.Err == nil {
		aboutMessage(l.With("component", "worker", "queue", name), d.ID, d.Task).Warn("message dead-lettered",
			"outcome", "dead-lettered", "dead_letter_queue", to, "reason", d.Reason)
	}
}

// OutcomeIgnored returns a listener for invalid Tendril-Outcome headers. It logs each kind of problem once.
func (l *Logger) OutcomeIgnored(queue string) func(problem string) {
	var logged sync.Map
	return func(problem string) {
		if _, again := logged.LoadOrStore(problem, true); !again {
			l.Warn("invalid Tendril-Outcome header ignored, using the status", "component", "worker", "queue", queue,
				"reason", problem, "hint", `use a value such as Tendril-Outcome: retry; after=90s; reason="text"`)
		}
	}
}

type gateLogger struct {
	log *slog.Logger

	mu       sync.Mutex
	reason   string // last one logged; "" while the gate is open
	received bool
}

func (l *gateLogger) changed(g worker.GateChanged) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g.Open {
		l.reason = ""
		l.received = true
		l.log.Info("receiving started")
		return
	}

	reason, level := g.Reasons[0], slog.LevelInfo
	if reason.Text == l.reason || reason.Block == worker.Draining || reason.Block == worker.NotReady && !l.received {
		return
	}
	l.reason = reason.Text
	if reason.Block == worker.DeleteRefused || reason.Block == worker.AppDown {
		level = slog.LevelWarn
	}
	l.log.Log(context.Background(), level, "receiving paused", "reason", string(reason.Block), "detail", reason.Text)
}

// Broker returns listeners that log the embedded queues' events.
func (l *Logger) Broker() *broker.Events {
	log := l.With("component", "broker")
	return &broker.Events{
		DeadLettered: func(from, to string, ids []string) {
			for _, id := range ids {
				log.Warn("message dead-lettered", "queue", from, "message_id", id, "outcome", "dead-lettered",
					"dead_letter_queue", to)
			}
		},
		Expired: func(name string, n int) {
			log.Warn("messages past their retention period deleted", "queue", name, "outcome", "expired", "messages", n)
		},
	}
}

// AWS returns listeners that log package aws's events.
func (l *Logger) AWS() *aws.Events {
	log := l.With("component", "aws")
	return &aws.Events{
		Corrupted: func(c aws.Corruption) {
			log.Error("message damaged, its checksum does not match", "queue", c.Queue, "message_id", c.MessageID,
				"part", c.Part, "sent", c.Sent)
		},
		ClockAdjusted: func(offset time.Duration) {
			log.Warn("system clock wrong, signatures compensate for it", slog.Duration("offset", offset), "hint", "set the clock")
		},
	}
}

// Limiter returns listeners that log a target's limiter's events.
func (l *Logger) Limiter(target string) *limit.Events {
	log := l.With("component", "limit", "target", target)
	return &limit.Events{
		Opened: func(o limit.Opened) {
			if o.TrialFailed {
				event.Breaker.Log(log, slog.LevelWarn, "trial failed, breaker open", slog.Duration("trial_in", o.Delay))
				return
			}
			event.Breaker.Log(log, slog.LevelWarn, "breaker open", "failures", o.Failures, "deliveries", o.Deliveries, slog.Duration("trial_in", o.Delay))
		},
		HalfOpened: func(limit.HalfOpened) { event.Breaker.Log(log, slog.LevelInfo, "breaker half-open, trial started") },
		Closed: func(c limit.Closed) {
			event.Breaker.Log(log, slog.LevelInfo, "breaker closed", slog.Duration("duration", c.After))
		},
		LimitChanged: func(c limit.Resized) { log.Debug("concurrency limit changed", "from", c.From, "to", c.To) },
	}
}
