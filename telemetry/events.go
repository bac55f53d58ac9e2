package telemetry

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tendril/broker"
	"tendril/deliver"
	"tendril/leader"
	"tendril/periodic"
	"tendril/supervisor"
)

// Deliver returns the listeners of the deliveries from a queue to a target.
func (t *Telemetry) Deliver(queue, target string) deliver.Events {
	m := &t.worker
	ok, failed := m.connects.WithLabelValues(target, "ok"), m.connects.WithLabelValues(target, "failed")
	again, dropped := m.reconnects.WithLabelValues(target), m.attributesDropped.WithLabelValues(queue)
	return deliver.Events{
		Connected: func(c deliver.Connected) {
			if c.Err != nil {
				failed.Inc()
				return
			}
			ok.Inc()
		},
		AttributesDropped: func(d deliver.AttributesDropped) { dropped.Add(float64(d.Count)) },
		Reconnected:       again.Inc,
	}
}

// appMetrics are the metrics of the app's processes.
type appMetrics struct {
	restarts, gaveUp, linesDropped *prometheus.CounterVec
}

func newAppMetrics(c *catalogue) appMetrics {
	return appMetrics{
		restarts: c.counter("tendril_app_restarts_total",
			"Restarts of a process after it failed, by how it exited: exit, signal, or not_started.", "process", "reason"),
		gaveUp: c.counter("tendril_app_given_up_total", "Processes that failed too often and are not restarted.", "process"),
		linesDropped: c.counter("tendril_app_output_lines_dropped_total",
			"Lines of the app's output that were dropped because they came too fast.", "process"),
	}
}

// Supervisor returns the listeners of the app's supervisor.
func (t *Telemetry) Supervisor() *supervisor.Events {
	m, exits := &t.app, lastExits{byProcess: map[string]string{}}
	return &supervisor.Events{
		Exited:       func(e supervisor.Exited) { exits.set(e.Process, exitReason(&e.Exit)) },
		Restarting:   func(r supervisor.Restarting) { m.restarts.WithLabelValues(r.Process, exits.get(r.Process)).Inc() },
		GaveUp:       func(g supervisor.GaveUp) { m.gaveUp.WithLabelValues(g.Process).Inc() },
		LinesDropped: func(l supervisor.LinesDropped) { m.linesDropped.WithLabelValues(l.Process).Add(float64(l.Lines)) },
	}
}

// lastExits remembers how each process exited the last time.
type lastExits struct {
	mu        sync.Mutex
	byProcess map[string]string
}

func (l *lastExits) set(process, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byProcess[process] = reason
}

func (l *lastExits) get(process string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if reason, ok := l.byProcess[process]; ok {
		return reason
	}
	return "exit"
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

// periodicMetrics are the metrics of periodic tasks.
type periodicMetrics struct {
	runs     *prometheus.CounterVec
	errors   *prometheus.CounterVec
	lateness prometheus.Observer
}

func newPeriodicMetrics(c *catalogue) periodicMetrics {
	m := periodicMetrics{
		runs: c.counter("tendril_cron_runs_total",
			"Scheduled runs by what this instance did: enqueued, or why not: "+
				"missed, overlap, paused, uncertain, already, or other. "+
				"failed counts sends that were not confirmed and are repeated.", "task", "outcome"),
		errors: c.counter("tendril_cron_registry_errors_total", "Failed reads of the registry of periodic tasks."),
	}
	late := c.histogram("tendril_cron_lateness_seconds", "How much later than due scheduled runs were enqueued.",
		seconds())
	m.lateness = late.WithLabelValues()
	m.errors.WithLabelValues()
	return m
}

// Periodic returns the listeners of the scheduler of periodic tasks.
func (t *Telemetry) Periodic() *periodic.Events {
	m := &t.periodic
	return &periodic.Events{
		Enqueued: func(f periodic.Enqueued) {
			m.runs.WithLabelValues(f.Task, "enqueued").Inc()
			if !f.Manual {
				m.lateness.Observe(max(f.Lateness, 0).Seconds())
			}
		},
		Skipped: func(s periodic.Skipped) {
			m.runs.WithLabelValues(s.Task, skipName(s.Reason)).Add(float64(max(s.Count, 0)))
		},
		Failed: func(f periodic.Failed) {
			if f.Task == "" {
				m.errors.WithLabelValues().Inc()
				return
			}
			m.runs.WithLabelValues(f.Task, "failed").Inc()
		},
	}
}

// skipName returns a reason as a label.
func skipName(r periodic.Reason) string {
	switch r {
	case periodic.ReasonMissed:
		return "missed"
	case periodic.ReasonOverlap:
		return "overlap"
	case periodic.ReasonPaused:
		return "paused"
	case periodic.ReasonUncertain:
		return "uncertain"
	case periodic.ReasonAlready:
		return "already"
	}
	return "other"
}

// leaderMetrics are the metrics of the leader election.
type leaderMetrics struct {
	terms, errors *prometheus.CounterVec
}

func newLeaderMetrics(c *catalogue) leaderMetrics {
	m := leaderMetrics{
		terms: c.counter("tendril_leader_terms_total", "How often this instance became the leader."),
		errors: c.counter("tendril_leader_store_errors_total",
			"Failed calls of the lease store. While they fail, no new leader is elected."),
	}
	m.terms.WithLabelValues()
	m.errors.WithLabelValues()
	return m
}

// Leader returns the listeners of the elector.
func (t *Telemetry) Leader() *leader.Events {
	terms, failed := t.leader.terms.WithLabelValues(), t.leader.errors.WithLabelValues()
	return &leader.Events{
		Elected: func(leader.Elected) { terms.Inc() },
		Failed:  func(leader.Failure) { failed.Inc() },
	}
}

// reasonReceives is the reason of messages that were received too often.
const reasonReceives = "receives"

// brokerMetrics are the metrics of the embedded queues.
type brokerMetrics struct {
	dead, expired *prometheus.CounterVec
	names         *boundedNames
}

func newBrokerMetrics(c *catalogue) brokerMetrics {
	return brokerMetrics{
		dead: c.counter("tendril_dead_lettered_total",
			"Messages that an embedded queue moved to its dead-letter queue, by reason: receives means received too often.",
			"queue", "reason"),
		expired: c.counter("tendril_queue_expired_total",
			"Messages that an embedded queue deleted at the end of their retention period.", "queue"),
		names: &boundedNames{limit: maxQueueNames, seen: map[string]bool{}},
	}
}

// Broker returns the listeners of the embedded queues. The counters of the named
// queues start at 0, so that their first dead-lettered message shows as a change. Other
// queues appear with their first event.
func (t *Telemetry) Broker(queues ...string) *broker.Events {
	m := &t.broker
	for _, name := range queues {
		m.dead.WithLabelValues(m.names.label(name), reasonReceives)
		m.expired.WithLabelValues(m.names.label(name))
	}
	return &broker.Events{
		DeadLettered: func(from, _ string, ids []string) {
			m.dead.WithLabelValues(m.names.label(from), reasonReceives).Add(float64(len(ids)))
		},
		Expired: func(name string, n int) { m.expired.WithLabelValues(m.names.label(name)).Add(float64(n)) },
	}
}

// maxQueueNames limits the label values for queue names, because any client that may
// create queues chooses them.
const maxQueueNames = 200

// boundedNames keeps the first names and replaces all others by "other".
type boundedNames struct {
	mu    sync.Mutex
	limit int
	seen  map[string]bool
}

func (b *boundedNames) label(name string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.seen[name] {
		if len(b.seen) >= b.limit {
			return "other"
		}
		b.seen[name] = true
	}
	return name
}

// timestamp returns a time in seconds since 1970.
func timestamp(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
