package telemetry

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"tendril/internal/worker"
	"tendril/queue"
)

// Up to outcomeDeadLetter, the delivery reached the app or failed. For the last three, no delivery was attempted.
const (
	outcomeOK = iota
	outcomeDropped
	outcomeRetry
	outcomeDeadLetter
	outcomeUnreached
	outcomeThrottled
	outcomeExpired
	outcomeReturned
	outcomeFiltered
)

var outcomes = [...]string{"ok", "dropped", "retry", "dead_letter", "unreached", "throttled", "expired", "handed_back",
	"filtered"}

// Worker returns listeners that count a worker's events.
func (t *Telemetry) Worker(queue, target string) *worker.Events {
	c := t.deliveryCounters(queue, target)
	counter := func(name string, labels ...string) prometheus.Counter {
		return t.catalogue.counter(name, append([]string{queue}, labels...)...)
	}

	received := counter("tendril_messages_received_total")
	fullPolls := counter("tendril_queue_polls_total", "messages")
	emptyPolls := counter("tendril_queue_polls_total", "empty")
	failedPolls := counter("tendril_queue_polls_total", "failed")
	extended := counter("tendril_visibility_extensions_total", "ok")
	notExtended := counter("tendril_visibility_extensions_total", "failed")
	deleted := counter("tendril_deletes_total", "ok")
	notDeleted := counter("tendril_deletes_total", "failed")
	lost := counter("tendril_deletes_total", "lost")
	duplicates := counter("tendril_duplicates_total")
	lapsed := counter("tendril_receipts_lapsed_total")
	stalls := counter("tendril_stalls_total")

	all := []*worker.Events{{
		Received: func(r worker.Received) {
			if r.Messages == 0 {
				emptyPolls.Inc()
				return
			}
			fullPolls.Inc()
			received.Add(float64(r.Messages))
		},
		PollFailed: func(worker.PollFailed) { failedPolls.Inc() },
		Duplicate:  func(worker.Duplicate) { duplicates.Inc() },
		Settled:    c.settled,
		Postponed: func(p worker.Postponed) {
			if p.Throttled {
				c.delivery(outcomeThrottled, p.Status).Inc()
			}
		},
		DeadLettered: func(d worker.DeadLettered) {
			if d.Err != nil {
				counter("tendril_dead_letter_send_failures_total").Inc()
				return
			}
			counter("tendril_dead_lettered_total", deadLetterReason(d.Instruction)).Inc()
		},
		Deleted: func(d worker.Deleted) { deleted.Add(float64(d.Messages)) },
		DeleteFailed: func(d worker.DeleteFailed) {
			if d.Final {
				lost.Inc()
				return
			}
			notDeleted.Inc()
		},
		Extended: func(e worker.Extended) { extended.Add(float64(e.Messages)) },
		ChangeFailed: func(f worker.ChangeFailed) {
			if f.Kind == "extend" {
				notExtended.Inc()
			}
		},
		Returned:          func(r worker.Returned) { c.delivery(outcomeReturned, 0).Add(float64(r.Messages)) },
		VisibilityExpired: func(worker.VisibilityExpired) { lapsed.Inc() },
		Expired:           func(worker.Expired) { c.delivery(outcomeExpired, 0).Inc() },
		Filtered:          func(worker.Filtered) { c.delivery(outcomeFiltered, 0).Inc() },
		Stalled:           func(worker.Stalled) { stalls.Inc() },
	}}

	if t.opts.CloudWatch != nil {
		all = append(all, t.opts.CloudWatch.Worker(queue))
	}
	if e := t.opts.OTLP.Worker(queue); e != nil {
		all = append(all, e)
	}
	return worker.JoinEvents(all...)
}

type deliveryCounters struct {
	catalogue                *catalogue
	queue, target            string
	late                     prometheus.Counter
	duration, wait, attempts prometheus.Observer
	// Counters are created on first use, because most combinations never occur.
	deliveries [len(outcomes)][len(codeClasses)]atomic.Pointer[prometheus.Counter]
}

func (t *Telemetry) deliveryCounters(queue, target string) *deliveryCounters {
	c := &deliveryCounters{catalogue: &t.catalogue, queue: queue, target: target,
		late:     t.catalogue.counter("tendril_late_deliveries_total", queue),
		duration: t.catalogue.histogram("tendril_delivery_duration_seconds", queue, target),
		wait:     t.catalogue.histogram("tendril_message_wait_seconds", queue),
		attempts: t.catalogue.histogram("tendril_message_attempts", queue)}
	c.delivery(outcomeOK, 200)
	c.delivery(outcomeRetry, 500)
	c.delivery(outcomeRetry, 0)
	c.delivery(outcomeExpired, 0)
	return c
}

func (c *deliveryCounters) delivery(outcome, status int) prometheus.Counter {
	code := codeClass(status)
	slot := &c.deliveries[outcome][code]
	if found := slot.Load(); found != nil {
		return *found
	}
	made := c.catalogue.counter("tendril_deliveries_total", c.queue, c.target, outcomes[outcome], codeClasses[code])
	slot.Store(&made)
	return made
}

func (c *deliveryCounters) settled(s worker.Settled) {
	outcome := outcomeRetry
	switch {
	case s.Outcome == queue.Done:
		outcome = outcomeOK
		if s.Instruction == queue.Drop {
			outcome = outcomeDropped
		}
		c.attempts.Observe(float64(max(s.Attempt, 1)))
	case s.Outcome == queue.Unreached:
		outcome = outcomeUnreached
	case s.Outcome == queue.Throttled:
		outcome = outcomeThrottled
	case s.DeadLettering && s.Instruction.DeadLetters():
		outcome = outcomeDeadLetter
	}

	c.delivery(outcome, s.Status).Inc()
	if s.Late {
		c.late.Inc()
	}

	if outcome > outcomeDeadLetter {
		return
	}

	c.duration.Observe(s.Duration.Seconds())
	if s.Attempt <= 1 {
		c.wait.Observe(s.Wait.Seconds())
	}
}
