package tasks

import (
	"log/slog"
	"time"

	"tendril/internal/cron/leader"
	"tendril/internal/cron/periodic"
	"tendril/internal/observe/event"
)

// Observers receive events for metrics. Each may be nil.
type Observers struct {
	Scheduler periodic.Events
	Leader    leader.Events
	Reloaded  func(error)
}

func leaderEvents(log *slog.Logger, observers leader.Events, stopping func() bool) *leader.Events {
	return &leader.Events{
		Elected: func(e leader.Elected) {
			call(observers.Elected, e)
			event.Leadership.Log(log, slog.LevelInfo, "leadership acquired", "lease", e.Name, "term", e.Term)
		},
		Lost: func(e leader.Lost) {
			level := slog.LevelWarn
			if stopping() {
				level = slog.LevelInfo
			}
			event.Leadership.Log(log, level, "leadership lost", "lease", e.Name, "term", e.Term, "reason", e.Reason)
		},
		Following: func(e leader.Following) {
			event.Leadership.Log(log, slog.LevelInfo, "following another leader", "lease", e.Name, "term", e.Term,
				"leader", e.Owner)
		},
		Failed: func(e leader.Failure) {
			call(observers.Failed, e)
			log.Warn("lease store failed", "lease", e.Name, "failures", e.Consecutive, "retry_in", rounded(e.Retry),
				"err", e.Err)
		},
	}
}

func schedulerEvents(log *slog.Logger, observers periodic.Events, pauses func() map[string]pause) periodic.Events {
	return periodic.Events{
		Enqueued: func(e periodic.Enqueued) {
			call(observers.Enqueued, e)
			log.Info("scheduled run enqueued", "task", e.Task, "run_id", e.ID, "queue", e.Queue, "message_id", e.MessageID,
				"scheduled_at", e.ScheduledAt.Format(time.RFC3339), "lateness", rounded(e.Lateness), "resent", e.Resent)
		},
		Skipped: func(e periodic.Skipped) {
			call(observers.Skipped, e)
			level := slog.LevelWarn
			if e.Reason == periodic.ReasonPaused || e.Reason == periodic.ReasonAlready {
				level = slog.LevelDebug
			}
			event.Task.Log(log, level, "scheduled runs skipped", "task", e.Task, "runs", e.Count,
				"last", e.To.Format(time.RFC3339), "reason", string(e.Reason))
		},
		Failed: func(e periodic.Failed) {
			call(observers.Failed, e)
			if e.Task == "" {
				log.Warn("reading the registry failed", "retry_in", rounded(e.Retry), "err", e.Err)
				return
			}
			attrs := []any{"task", e.Task, "run_id", e.ID}
			if e.Retry > 0 {
				attrs = append(attrs, "retry_in", rounded(e.Retry))
			}
			event.Task.Log(log, slog.LevelWarn, "enqueueing a scheduled run failed", append(attrs, "err", e.Err)...)
		},
		Refused: func(e periodic.Refused) {
			event.Leadership.Log(log, slog.LevelWarn, "registry rejected the leader's runs", "term", e.Term, "err", e.Err,
				"hint", "check whether other instances run with --leader local on the same registry")
		},
		Reloaded: func(e periodic.Reloaded) {
			event.Deploy.Log(log, slog.LevelInfo, "periodic tasks reloaded", "tasks", e.Tasks, "added", e.Added,
				"removed", e.Removed, "changed", e.Changed)
		},
		ClockStepped: func(e periodic.ClockStepped) {
			event.Health.Log(log, slog.LevelWarn, "clock was set, or the machine was suspended", "by", rounded(e.By))
		},
		PauseChanged: func(e periodic.PauseChanged) {
			if !e.Paused {
				event.Pause.Log(log, slog.LevelInfo, "task resumed", "task", e.Task)
				return
			}
			event.Pause.Log(log, slog.LevelInfo, "task paused", append([]any{"task", e.Task}, pauses()[e.Task].attrs()...)...)
		},
	}
}

func (p pause) attrs() (attrs []any) {
	if p.By != "" {
		attrs = append(attrs, "by", p.By)
	}
	if p.Reason != "" {
		attrs = append(attrs, "reason", p.Reason)
	}
	return attrs
}

func call[E any](listener func(E), event E) {
	if listener != nil {
		listener(event)
	}
}

func rounded(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
