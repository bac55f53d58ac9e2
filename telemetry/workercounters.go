package telemetry

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"tendril/queue"
	"tendril/worker"
)

// The outcomes of deliveries, as a label. Messages with the last two were never
// delivered to the app.
const (
	outcomeOK = iota
	outcomeRetry
	outcomeUnreached
	outcomeThrottled
	outcomeExpired
	outcomeReturned
	outcomes
)

func outcomeName(o int) string {
	return [outcomes]string{"ok", "retry", "unreached", "throttled", "expired", "handed_back"}[o]
}

// workerMetrics are the metrics of all workers.
type workerMetrics struct {
	received, deliveries, polls, extensions, deletes *prometheus.CounterVec
	duplicates, late, lapsed, stalls                 *prometheus.CounterVec
	attributesDropped, connects, reconnects          *prometheus.CounterVec
	duration, wait, attempts                         *prometheus.HistogramVec
}

func newWorkerMetrics(c *catalogue) workerMetrics {
	return workerMetrics{
		received: c.counter("tendril_messages_received_total",
			"Messages received; a message that is received again counts again.", "queue"),
		deliveries: c.counter("tendril_deliveries_total",
			"Deliveries by outcome. ok: success. retry: failed, retried as the queue allows. "+
				"unreached: nothing was sent, the app was down. throttled: the target asked to slow down. "+
				"expired: past its retention, deleted undelivered. "+
				"handed_back: received and returned to the queue undelivered. "+
				"code is the class of the HTTP status, 1xx to 5xx, or none.", "queue", "target", "outcome", "code"),
		duration: c.histogram("tendril_delivery_duration_seconds",
			"Duration of deliveries that the app answered or failed.", seconds(), "queue", "target"),
		wait: c.histogram("tendril_message_wait_seconds",
			"Time from the send of a message to the start of its first attempt.", seconds(), "queue"),
		attempts: c.histogram("tendril_message_attempts", "Number of attempts until a message was done.",
			[]float64{1, 2, 3, 4, 5, 7, 10, 15, 20, 50, 100}, "queue"),
		polls: c.counter("tendril_queue_polls_total", "Receives by result: messages, empty, or failed.", "queue", "result"),
		extensions: c.counter("tendril_visibility_extensions_total",
			"Extensions of the visibility timeout of messages in work: ok, or failed.", "queue", "result"),
		deletes: c.counter("tendril_deletes_total",
			"Deletes by result: ok, failed and retried, or lost when retries ended; "+
				"a message whose delete is lost may be delivered again.", "queue", "result"),
		duplicates: c.counter("tendril_duplicates_total",
			"Messages that were received again while in work or after they were done, and were not delivered again.", "queue"),
		late: c.counter("tendril_late_deliveries_total",
			"Deliveries that ended after the visibility timeout of their message.", "queue"),
		lapsed: c.counter("tendril_receipts_lapsed_total", "Messages whose visibility timeout ended while they were held.",
			"queue"),
		stalls: c.counter("tendril_stalls_total",
			"How often the process was stalled: stopped, suspended or starved of CPU.", "queue"),
		attributesDropped: c.counter("tendril_attributes_dropped_total",
			"Message attributes that do not fit into a header.", "queue"),
		connects: c.counter("tendril_app_connects_total", "New connections to the app: ok, or failed.", "target", "result"),
		reconnects: c.counter("tendril_app_reconnects_total",
			"Deliveries for which a kept-alive connection turned out to be closed.", "target"),
	}
}

// Worker returns the listeners of the worker that delivers messages from a queue to a
// target. Listeners that have nothing to count are nil. Calling Settled allocates
// nothing and takes well below a microsecond.
func (t *Telemetry) Worker(queue, target string) *worker.Events {
	l := newWorkerCounters(&t.worker, queue, target)
	all := []*worker.Events{{
		Received: l.receivedMessages, PollFailed: l.pollFailed, Duplicate: l.duplicate, Settled: l.settled,
		Postponed: l.postponed, Deleted: l.deleted, DeleteFailed: l.deleteFailed, Extended: l.extended,
		ChangeFailed: l.changeFailed, Returned: l.returned, VisibilityExpired: l.receiptLapsed,
		Expired: l.expired, Stalled: l.stalled,
	}}
	if t.opts.CloudWatch != nil {
		all = append(all, t.opts.CloudWatch.Worker(queue))
	}
	if e := t.opts.OTLP.Worker(queue); e != nil {
		all = append(all, e)
	}
	return worker.JoinEvents(all...)
}

// workerCounters count for one queue and one target. The counters that every message
// needs are looked up once.
type workerCounters struct {
	all           *workerMetrics
	queue, target string

	received, pollsFull, pollsEmpty, pollsFailed prometheus.Counter
	extensions, extensionsFailed                 prometheus.Counter
	deletes, deletesFailed, deletesLost          prometheus.Counter
	duplicates, late, lapsed, stalls             prometheus.Counter
	duration, wait, attempts                     prometheus.Observer
	// deliveries are created when first needed: most pairs never occur.
	deliveries [outcomes][6]atomic.Pointer[prometheus.Counter]
}

func newWorkerCounters(m *workerMetrics, queue, target string) *workerCounters {
	l := &workerCounters{
		all: m, queue: queue, target: target,
		received:  m.received.WithLabelValues(queue),
		pollsFull: m.polls.WithLabelValues(queue, "messages"), pollsEmpty: m.polls.WithLabelValues(queue,
			"empty"), pollsFailed: m.polls.WithLabelValues(queue, "failed"),
		extensions: m.extensions.WithLabelValues(queue, "ok"), extensionsFailed: m.extensions.WithLabelValues(queue,
			"failed"),
		deletes: m.deletes.WithLabelValues(queue, "ok"), deletesFailed: m.deletes.WithLabelValues(queue,
			"failed"), deletesLost: m.deletes.WithLabelValues(queue, "lost"),
		duplicates: m.duplicates.WithLabelValues(queue), late: m.late.WithLabelValues(queue),
		lapsed: m.lapsed.WithLabelValues(queue), stalls: m.stalls.WithLabelValues(queue),
		duration: m.duration.WithLabelValues(queue,
			target), wait: m.wait.WithLabelValues(queue), attempts: m.attempts.WithLabelValues(queue),
	}
	// These start at 0, so that the first failure shows as a change.
	l.delivery(outcomeOK, 200)
	l.delivery(outcomeRetry, 500)
	l.delivery(outcomeRetry, 0)
	l.delivery(outcomeExpired, 0)
	return l
}

// delivery returns the counter of one outcome and one class of status.
func (l *workerCounters) delivery(outcome, status int) prometheus.Counter {
	code := codeIndex(status)
	slot := &l.deliveries[outcome][code]
	if c := slot.Load(); c != nil {
		return *c
	}
	c := l.all.deliveries.WithLabelValues(l.queue, l.target, outcomeName(outcome), codeClass(status))
	slot.Store(&c)
	return c
}

func (l *workerCounters) receivedMessages(r worker.Received) {
	if r.Messages == 0 {
		l.pollsEmpty.Inc()
		return
	}
	l.pollsFull.Inc()
	l.received.Add(float64(r.Messages))
}

func (l *workerCounters) pollFailed(worker.PollFailed) { l.pollsFailed.Inc() }

func (l *workerCounters) duplicate(worker.Duplicate) { l.duplicates.Inc() }

func (l *workerCounters) settled(s worker.Settled) {
	outcome := outcomeRetry
	switch s.Outcome {
	case queue.Done:
		outcome = outcomeOK
		l.attempts.Observe(float64(max(s.Attempt, 1)))
	case queue.Unreached:
		outcome = outcomeUnreached
	case queue.Throttled:
		outcome = outcomeThrottled
	}
	l.delivery(outcome, s.Status).Inc()
	if s.Late {
		l.late.Inc()
	}
	if outcome > outcomeRetry {
		return
	}
	l.duration.Observe(s.Duration.Seconds())
	if s.Attempt <= 1 {
		l.wait.Observe(s.Wait.Seconds())
	}
}

// postponed counts a message that the target throttled and the worker keeps for a later
// try. Without a request to the target there was no delivery.
func (l *workerCounters) postponed(p worker.Postponed) {
	if p.Throttled {
		l.delivery(outcomeThrottled, p.Status).Inc()
	}
}

func (l *workerCounters) deleted(d worker.Deleted) { l.deletes.Add(float64(d.Messages)) }

func (l *workerCounters) deleteFailed(d worker.DeleteFailed) {
	if d.Final {
		l.deletesLost.Inc()
		return
	}
	l.deletesFailed.Inc()
}

func (l *workerCounters) extended(e worker.Extended) { l.extensions.Add(float64(e.Messages)) }

func (l *workerCounters) changeFailed(c worker.ChangeFailed) {
	if c.Kind == "extend" {
		l.extensionsFailed.Inc()
	}
}

func (l *workerCounters) returned(g worker.Returned) {
	l.delivery(outcomeReturned, 0).Add(float64(g.Messages))
}

func (l *workerCounters) receiptLapsed(worker.VisibilityExpired) { l.lapsed.Inc() }

func (l *workerCounters) expired(worker.Expired) { l.delivery(outcomeExpired, 0).Inc() }

func (l *workerCounters) stalled(worker.Stalled) { l.stalls.Inc() }
