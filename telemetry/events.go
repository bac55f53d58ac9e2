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

// Deliver returns the listeners of the way from a queue to an app.
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

// appMetrics are those of the app's processes.
type appMetrics struct {
	restarts, gaveUp, linesDropped *prometheus.CounterVec
}

func newAppMetrics(c *catalogue) appMetrics {
	return appMetrics{
		restarts:     c.counter("tendril_app_restarts_total", "Restarts of a process after it failed, by how it ended: exit, signal, or not_started.", "process", "reason"),
		gaveUp:       c.counter("tendril_app_given_up_total", "Processes that failed too often and stay down.", "process"),
		linesDropped: c.counter("tendril_app_output_lines_dropped_total", "Lines of the app's output that were lost because they came too fast.", "process"),
	}
}

// Supervisor returns the listeners of the app's supervisor.
func (t *Telemetry) Supervisor() *supervisor.Events {
	m, ends := &t.app, lastExits{by: map[string]string{}}
	return &supervisor.Events{
		Exited:       func(e supervisor.Exited) { ends.set(e.Process, exitReason(&e.Exit)) },
		Restarting:   func(r supervisor.Restarting) { m.restarts.WithLabelValues(r.Process, ends.get(r.Process)).Inc() },
		GaveUp:       func(g supervisor.GaveUp) { m.gaveUp.WithLabelValues(g.Process).Inc() },
		LinesDropped: func(l supervisor.LinesDropped) { m.linesDropped.WithLabelValues(l.Process).Add(float64(l.Lines)) },
	}
}

// lastEnds remembers how each process last ended.
type lastExits struct {
	mu sync.Mutex
	by map[string]string
}

func (l *lastExits) set(process, end string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.by[process] = end
}

func (l *lastExits) get(process string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if end, ok := l.by[process]; ok {
		return end
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

// periodicMetrics are those of periodic tasks.
type periodicMetrics struct {
	runs     *prometheus.CounterVec
	errors   *prometheus.CounterVec
	lateness prometheus.Observer
}

func newPeriodicMetrics(c *catalogue) periodicMetrics {
	m := periodicMetrics{
		runs: c.counter("tendril_cron_runs_total", "Times of periodic tasks by what this instance did: enqueued, or why not: missed, overlap, paused, uncertain, already, or other. "+
			"failed counts tries that were not confirmed and are repeated.", "task", "outcome"),
		errors: c.counter("tendril_cron_registry_errors_total", "Times that the registry of periodic tasks could not be read."),
	}
	late := c.histogram("tendril_cron_lateness_seconds", "How much later than due runs of periodic tasks were enqueued.", seconds())
	m.lateness = late.WithLabelValues()
	m.errors.WithLabelValues()
	return m
}

// Periodic returns the listeners of the scheduler of periodic tasks.
func (t *Telemetry) Periodic() *periodic.Events {
	m := &t.periodic
	return &periodic.Events{
		Fired: func(f periodic.Fired) {
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

// skipName is a reason as a label.
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

// leaderMetrics are those of the lease.
type leaderMetrics struct {
	terms, errors *prometheus.CounterVec
}

func newLeaderMetrics(c *catalogue) leaderMetrics {
	m := leaderMetrics{
		terms:  c.counter("tendril_leader_terms_total", "How often this instance was put in charge."),
		errors: c.counter("tendril_leader_store_errors_total", "Calls of the lease's store that failed. As long as they do, nobody new is put in charge."),
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

// reasonReceives is why a message was dead-lettered: it was received too often.
const reasonReceives = "receives"

// brokerMetrics are those of the embedded queues.
type brokerMetrics struct {
	dead, expired *prometheus.CounterVec
	names         *boundedNames
}

func newBrokerMetrics(c *catalogue) brokerMetrics {
	return brokerMetrics{
		dead:    c.counter("tendril_dead_lettered_total", "Messages that an embedded queue moved to its dead-letter queue; the reason is receives: they were received too often.", "queue", "reason"),
		expired: c.counter("tendril_queue_expired_total", "Messages that an embedded queue dropped because its retention was over.", "queue"),
		names:   &boundedNames{most: maxQueueNames, seen: map[string]bool{}},
	}
}

// Broker returns the listeners of the embedded queues. The queues named are
// counted from 0 on, so that their first dead letter shows as a change; others
// appear when something happens to them.
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

// maxQueueNames bounds the names of queues that are shown apart: anybody who may
// create queues chooses them.
const maxQueueNames = 200

// boundedNames lets the first names through and calls all others "other".
type boundedNames struct {
	mu   sync.Mutex
	most int
	seen map[string]bool
}

func (b *boundedNames) label(name string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.seen[name] {
		if len(b.seen) >= b.most {
			return "other"
		}
		b.seen[name] = true
	}
	return name
}

// timestamp is a time in seconds since 1970.
func timestamp(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
