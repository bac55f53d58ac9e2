package telemetry

import (
	"context"
	"strings"
	"time"

	"tendril/periodic"
	"tendril/supervisor"
	"tendril/worker"
)

// Sources return the current state. They are called when the metrics are read, each on
// its own goroutine, and not again while a call is running or its result is younger
// than a second. The metrics of a source that takes longer than two seconds are absent
// from that reading. Each may be nil; then its metrics are always absent.
type Sources struct {
	// Workers returns the status of all workers.
	Workers func() []WorkerStatus
	// Queues returns the number of messages in the queues. A remote queue may answer
	// late or not at all: ctx limits the call.
	Queues func(ctx context.Context) []Queue
	// Processes returns the status of the app's processes.
	Processes func() []supervisor.Status
	// Tasks returns the periodic tasks.
	Tasks func() []periodic.TaskStatus
	// Leader reports whether this instance is the leader.
	Leader func() bool
	// Limits returns the state of the limits of all targets.
	Limits func() []Limit
}

// WorkerStatus is the status of one worker.
type WorkerStatus struct {
	// Queue and Target are the arguments of [Telemetry.Worker].
	Queue, Target string
	Status        worker.Status
	// AdaptiveLimit is the limit of concurrent deliveries to the target that follows
	// its speed; 0 for none.
	AdaptiveLimit int
}

// Queue is the state of one queue.
type Queue struct {
	Name string
	// Visible, InFlight and Delayed are numbers of messages.
	Visible, InFlight, Delayed int64
	// OldestAge is the age of the oldest message, 0 when there is none. HasAge is false
	// when the queue does not report it.
	OldestAge time.Duration
	HasAge    bool
}

// Limit is the state of the limits of one target. The zero value has no limits.
type Limit struct {
	Target string
	// Breaker is "closed", "open" or "half-open"; "" for no breaker.
	Breaker string
	// RateRefused, ConcurrencyRefused and BreakerRefused count how often a delivery had
	// to wait since the start, by reason.
	RateRefused, ConcurrencyRefused, BreakerRefused int64
}

// register creates the metrics of all sources.
func (s *Sources) register(c *catalogue, sinks func() []sinkStats) {
	collect(c, withoutContext(s.Workers), workerStatusMetrics)
	collect(c, s.Queues, queueMetrics)
	collect(c, withoutContext(s.Processes), processMetrics)
	collect(c, withoutContext(s.Tasks), taskMetrics)
	collect(c, withoutContext(s.Leader), func(m *sourceMetrics) func(samples, bool) {
		leading := m.gauge("tendril_leader", "Whether this instance is the leader and sends the scheduled runs, 1 or 0.")
		return func(out samples, leads bool) { leading.send(out, boolValue(leads)) }
	})
	collect(c, withoutContext(s.Limits), limitMetrics)
	collect(c, withoutContext(sinks), sinkMetrics)
}

func withoutContext[T any](read func() T) func(context.Context) T {
	if read == nil {
		return nil
	}
	return func(context.Context) T { return read() }
}

// workerStatusMetrics are those of workers. The limit of a target that several workers
// share is sent once.
func workerStatusMetrics(m *sourceMetrics) func(samples, []WorkerStatus) {
	inFlight := m.gauge("tendril_inflight", "Deliveries in work now.", "queue", "target")
	waiting := m.gauge("tendril_waiting", "Messages that were received and wait for a free slot.", "queue")
	receiving := m.gauge("tendril_receiving", "Whether the worker is receiving, 1 or 0.", "queue")
	blocked := m.gauge("tendril_receiving_blocked",
		"Why the worker is not receiving, 1 for each reason, such as paused, not_ready, "+
			"app_down, delete_refused, breaker, draining; absent while it is receiving.", "queue", "reason")
	concurrency := m.gauge("tendril_concurrency_limit",
		"Current maximum of concurrent deliveries to a target: as configured, or lower "+
			"after an outage of the app or because of the adaptive limit.", "target")
	longestWait := m.gauge("tendril_queue_longest_wait_seconds",
		"Longest time from the send of a message to the start of its delivery, over the last minute; 0 without deliveries. "+
			"It grows when other queues or a limit starve this queue.", "queue")
	oldestReceived := m.gauge("tendril_queue_oldest_in_hand_seconds",
		"Age of the oldest message that was received and is not done; 0 when there is none.", "queue")
	return func(out samples, workers []WorkerStatus) {
		limits := map[string]int{} // by target
		for i := range workers {
			w, s := &workers[i], &workers[i].Status
			inFlight.send(out, float64(s.InWork), w.Queue, w.Target)
			waiting.send(out, float64(s.Prefetched+s.Waiting), w.Queue)
			receiving.send(out, boolValue(s.Receiving), w.Queue)
			longestWait.send(out, s.LongestWait.Seconds(), w.Queue)
			oldestReceived.send(out, s.Oldest.Seconds(), w.Queue)
			for _, reason := range s.Reasons {
				blocked.send(out, 1, w.Queue, strings.ReplaceAll(string(reason.Block), " ", "_"))
			}
			limit := s.Limit
			if w.AdaptiveLimit > 0 {
				limit = min(limit, w.AdaptiveLimit)
			}
			limits[w.Target] = max(limits[w.Target], limit)
		}
		for target, n := range limits {
			concurrency.send(out, float64(n), target)
		}
	}
}

// queueMetrics are those of the first queues, up to the bound. The others are left out,
// because a sum of some of them would be misleading.
func queueMetrics(m *sourceMetrics) func(samples, []Queue) {
	names := &boundedNames{limit: maxQueueNames, seen: map[string]bool{}}
	messages := m.gauge("tendril_queue_messages",
		"Messages in a queue: visible, inflight or delayed. Amazon SQS reports approximate numbers.", "queue", "state")
	oldest := m.gauge("tendril_queue_oldest_message_age_seconds",
		"Age of the oldest message in a queue, 0 when it is empty; only of embedded queues.", "queue")
	return func(out samples, queues []Queue) {
		for _, q := range queues {
			if names.label(q.Name) != q.Name {
				continue
			}
			messages.send(out, float64(q.Visible), q.Name, "visible")
			messages.send(out, float64(q.InFlight), q.Name, "inflight")
			messages.send(out, float64(q.Delayed), q.Name, "delayed")
			if q.HasAge {
				oldest.send(out, q.OldestAge.Seconds(), q.Name)
			}
		}
	}
}

func processMetrics(m *sourceMetrics) func(samples, []supervisor.Status) {
	up := m.gauge("tendril_app_up", "Whether a process of the app is running and healthy, 1 or 0.", "process")
	return func(out samples, processes []supervisor.Status) {
		for _, p := range processes {
			up.send(out, boolValue(p.State == supervisor.Running && p.Ready), p.Name)
		}
	}
}

func taskMetrics(m *sourceMetrics) func(samples, []periodic.TaskStatus) {
	next := m.gauge("tendril_cron_next_run_timestamp_seconds",
		"When a periodic task is due next, in seconds since 1970; absent while it is paused.", "task")
	return func(out samples, tasks []periodic.TaskStatus) {
		for _, t := range tasks {
			if !t.Paused && !t.Next.IsZero() {
				next.send(out, timestamp(t.Next), t.Task.Name)
			}
		}
	}
}

func limitMetrics(m *sourceMetrics) func(samples, []Limit) {
	breaker := m.gauge("tendril_breaker_state",
		"State of a target's breaker: 1 for the current state of closed, open and half_open, 0 for the others.", "target",
		"state")
	rateLimited := m.counter("tendril_rate_limited_total",
		"How often a delivery had to wait because of the rate limit.", "target")
	refusals := m.counter("tendril_limit_refusals_total",
		"How often a delivery had to wait because of a limit: rate, concurrency or breaker.", "target", "reason")
	return func(out samples, limits []Limit) {
		for _, l := range limits {
			rateLimited.send(out, float64(l.RateRefused), l.Target)
			refusals.send(out, float64(l.RateRefused), l.Target, "rate")
			refusals.send(out, float64(l.ConcurrencyRefused), l.Target, "concurrency")
			refusals.send(out, float64(l.BreakerRefused), l.Target, "breaker")
			if l.Breaker == "" {
				continue
			}
			for _, state := range []string{"closed", "open", "half-open"} {
				breaker.send(out, boolValue(l.Breaker == state), l.Target, strings.ReplaceAll(state, "-", "_"))
			}
		}
	}
}

func sinkMetrics(m *sourceMetrics) func(samples, []sinkStats) {
	errors := m.counter("tendril_sink_errors_total",
		"Failed calls of a telemetry sink: cloudwatch, otlp_traces or otlp_metrics.", "sink")
	dropped := m.counter("tendril_sink_dropped_total",
		"Spans, or statistic sets for CloudWatch, that were dropped.", "sink")
	return func(out samples, all []sinkStats) {
		for _, s := range all {
			errors.send(out, float64(s.errors), s.sink)
			dropped.send(out, float64(s.dropped), s.sink)
		}
	}
}
