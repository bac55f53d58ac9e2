package telemetry

import (
	"strings"
	"sync"
	"time"

	"tendril/internal/cron/periodic"
	"tendril/internal/supervisor"
	"tendril/internal/worker"
)

// Sources return the current state. Each is called at most once per second, concurrently with others. A source that is
// nil or takes more than two seconds has no metrics.
type Sources struct {
	Workers      func() []WorkerStatus
	Queues       func() []Queue
	Processes    func() []supervisor.Status
	Tasks        func() []periodic.TaskStatus
	Leader       func() bool
	Limits       func() []Limit
	Desired      func() int // processes, instances or pods that the load requires
	Certificates func() []Certificate
}

// WorkerStatus is the status of a worker, with its labels.
type WorkerStatus struct {
	Queue, Target string
	Status        worker.Status
	AdaptiveLimit int
}

// Queue is the state of one queue.
type Queue struct {
	Name                       string
	Visible, InFlight, Delayed int64
	// OldestAge is 0 for an empty queue, and valid if HasAge.
	OldestAge time.Duration
	HasAge    bool
}

// Limit is the state of a target's limiter.
type Limit struct {
	Target string
	// Breaker is "closed", "open", "half-open", or "" without a breaker.
	Breaker string
	// These count deliveries that had to wait since startup.
	RateRefused, ConcurrencyRefused, BreakerRefused int64
}

// Certificate is a file used for TLS.
type Certificate struct {
	Option, File string
	Expires      time.Time
}

func (s *Sources) collect(c *catalogue, sinks func() []sinkStats) {
	collect(c, s.Workers, sendWorkers)
	var names boundedNames
	collect(c, s.Queues, func(out samples, queues []Queue) { sendQueues(out, queues, &names) })

	collect(c, s.Processes, func(out samples, processes []supervisor.Status) {
		for _, p := range processes {
			if p.State == supervisor.Finished {
				continue
			}
			out.send("tendril_app_up", boolValue(p.State == supervisor.Running && p.Ready), p.Name)
		}
	})

	collect(c, s.Tasks, func(out samples, tasks []periodic.TaskStatus) {
		for _, t := range tasks {
			if !t.Paused && !t.Next.IsZero() {
				out.send("tendril_cron_next_run_timestamp_seconds", timestamp(t.Next), t.Task.Name)
			}
		}
	})

	collect(c, s.Leader, func(out samples, leads bool) { out.send("tendril_leader", boolValue(leads)) })
	collect(c, s.Limits, sendLimits)
	collect(c, s.Desired, func(out samples, n int) { out.send("tendril_desired_capacity", float64(n)) })

	collect(c, s.Certificates, func(out samples, all []Certificate) {
		for _, one := range all {
			out.send("tendril_certificate_expiry_timestamp_seconds", timestamp(one.Expires), one.Option, one.File)
		}
	})

	collect(c, sinks, func(out samples, all []sinkStats) {
		for _, s := range all {
			out.send("tendril_sink_errors_total", float64(s.errors), s.sink)
			out.send("tendril_sink_dropped_total", float64(s.dropped), s.sink)
		}
	})
}

func sendWorkers(out samples, workers []WorkerStatus) {
	limits := map[string]int{}
	for i := range workers {
		w, s := &workers[i], &workers[i].Status
		out.send("tendril_inflight", float64(s.InWork), w.Queue, w.Target)
		out.send("tendril_waiting", float64(s.Prefetched+s.Waiting), w.Queue)
		out.send("tendril_receiving", boolValue(s.Receiving), w.Queue)
		out.send("tendril_queue_longest_wait_seconds", s.LongestWait.Seconds(), w.Queue)
		out.send("tendril_queue_oldest_inflight_seconds", s.Oldest.Seconds(), w.Queue)
		for _, reason := range s.Reasons {
			out.send("tendril_receiving_blocked", 1, w.Queue, strings.ReplaceAll(string(reason.Block), " ", "_"))
		}

		limit := s.Limit
		if w.AdaptiveLimit > 0 {
			limit = min(limit, w.AdaptiveLimit)
		}
		limits[w.Target] = max(limits[w.Target], limit)
	}

	for target, n := range limits {
		out.send("tendril_concurrency_limit", float64(n), target)
	}
}

// Queues beyond the limit are omitted: a partial sum would mislead.
func sendQueues(out samples, queues []Queue, names *boundedNames) {
	for _, q := range queues {
		if names.label(q.Name) != q.Name {
			continue
		}
		out.send("tendril_queue_messages", float64(q.Visible), q.Name, "visible")
		out.send("tendril_queue_messages", float64(q.InFlight), q.Name, "inflight")
		out.send("tendril_queue_messages", float64(q.Delayed), q.Name, "delayed")
		if q.HasAge {
			out.send("tendril_queue_oldest_message_age_seconds", q.OldestAge.Seconds(), q.Name)
		}
	}
}

func sendLimits(out samples, limits []Limit) {
	for _, l := range limits {
		out.send("tendril_rate_limited_total", float64(l.RateRefused), l.Target)
		out.send("tendril_limit_refusals_total", float64(l.RateRefused), l.Target, "rate")
		out.send("tendril_limit_refusals_total", float64(l.ConcurrencyRefused), l.Target, "concurrency")
		out.send("tendril_limit_refusals_total", float64(l.BreakerRefused), l.Target, "breaker")
		if l.Breaker == "" {
			continue
		}
		for _, state := range []string{"closed", "open", "half-open"} {
			out.send("tendril_breaker_state", boolValue(l.Breaker == state), l.Target, strings.ReplaceAll(state, "-", "_"))
		}
	}
}

func timestamp(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

const maxQueueNames = 200

// Clients can create queues, so names after the first maxQueueNames become "other".
type boundedNames struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (b *boundedNames) label(name string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.seen[name] && len(b.seen) >= maxQueueNames {
		return "other"
	}
	if b.seen == nil {
		b.seen = map[string]bool{}
	}
	b.seen[name] = true
	return name
}
