package telemetry

import (
	"cmp"
	"sync"

	"tendril/broker"
	"tendril/internal/cron/leader"
	"tendril/internal/cron/periodic"
	"tendril/internal/delivery/deliver"
	"tendril/internal/supervisor"
	"tendril/queue"
)

// Deliver returns listeners that count deliveries to a target.
func (t *Telemetry) Deliver(queue, target string) deliver.Events {
	ok := t.catalogue.counter("tendril_app_connects_total", target, "ok")
	failed := t.catalogue.counter("tendril_app_connects_total", target, "failed")
	dropped := t.catalogue.counter("tendril_attributes_dropped_total", queue)
	return deliver.Events{
		Connected: func(c deliver.Connected) {
			if c.Err != nil {
				failed.Inc()
				return
			}
			ok.Inc()
		},
		AttributesDropped: func(d deliver.AttributesDropped) { dropped.Add(float64(d.Count)) },
		Reconnected:       t.catalogue.counter("tendril_app_reconnects_total", target).Inc,
	}
}

// Supervisor returns listeners that count the supervisor's events.
func (t *Telemetry) Supervisor() *supervisor.Events {
	var exitReasons sync.Map
	return &supervisor.Events{
		Exited: func(e supervisor.Exited) { exitReasons.Store(e.Process, exitReason(&e.Exit)) },
		Restarting: func(r supervisor.Restarting) {
			reason, _ := exitReasons.LoadOrStore(r.Process, "exit")
			t.catalogue.counter("tendril_app_restarts_total", r.Process, reason.(string)).Inc()
		},
		GaveUp: func(g supervisor.GaveUp) { t.catalogue.counter("tendril_app_given_up_total", g.Process).Inc() },
		LinesDropped: func(l supervisor.LinesDropped) {
			t.catalogue.counter("tendril_app_output_lines_dropped_total", l.Process).Add(float64(l.Lines))
		},
	}
}

func exitReason(e *supervisor.Exit) string {
	switch {
	case e.Err != nil:
		return "not_started"
	case e.Signal != "":
		return "signal"
	}
	return "exit"
}

// Periodic returns listeners that count the scheduler's events.
func (t *Telemetry) Periodic() *periodic.Events {
	reasons := map[periodic.Reason]string{
		periodic.ReasonMissed: "missed", periodic.ReasonOverlap: "overlap", periodic.ReasonPaused: "paused",
		periodic.ReasonUncertain: "uncertain", periodic.ReasonAlready: "already",
	}

	return &periodic.Events{
		Enqueued: func(f periodic.Enqueued) {
			t.catalogue.counter("tendril_cron_runs_total", f.Task, "enqueued").Inc()
			if !f.Manual {
				t.catalogue.histogram("tendril_cron_lateness_seconds").Observe(max(f.Lateness, 0).Seconds())
			}
		},
		Skipped: func(s periodic.Skipped) {
			outcome := cmp.Or(reasons[s.Reason], "other")
			t.catalogue.counter("tendril_cron_runs_total", s.Task, outcome).Add(float64(max(s.Count, 0)))
		},
		Failed: func(f periodic.Failed) {
			if f.Task == "" {
				t.catalogue.counter("tendril_cron_registry_errors_total").Inc()
				return
			}
			t.catalogue.counter("tendril_cron_runs_total", f.Task, "failed").Inc()
		},
	}
}

// Leader returns listeners that count the leader election's events.
func (t *Telemetry) Leader() *leader.Events {
	terms := t.catalogue.counter("tendril_leader_terms_total")
	failed := t.catalogue.counter("tendril_leader_store_errors_total")
	return &leader.Events{
		Elected: func(leader.Elected) { terms.Inc() },
		Failed:  func(leader.Failure) { failed.Inc() },
	}
}

const (
	reasonReceives = "receives"
	reasonApp      = "app"
	reasonStatus   = "status"
)

func deadLetterReason(i queue.Instruction) string {
	switch i {
	case queue.DeadLetterNow:
		return reasonApp
	case queue.TerminalStatus:
		return reasonStatus
	}
	return reasonReceives
}

// Broker returns listeners that count the embedded queues' events. The named queues' counters start at 0, so that their
// first event shows as an increase.
func (t *Telemetry) Broker(queues ...string) *broker.Events {
	events := &broker.Events{
		DeadLettered: func(from, _ string, ids []string) {
			t.catalogue.counter("tendril_dead_lettered_total", t.queues.label(from), reasonReceives).Add(float64(len(ids)))
		},
		Expired: func(name string, n int) {
			t.catalogue.counter("tendril_queue_expired_total", t.queues.label(name)).Add(float64(n))
		},
	}
	for _, name := range queues {
		events.DeadLettered(name, "", nil)
		events.Expired(name, 0)
	}
	return events
}
