package telemetry

import (
	"context"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"tendril/periodic"
	"tendril/supervisor"
)

// sourceCollector is a Prometheus collector of the values of all sources.
type sourceCollector struct {
	workers   *cachedSource[[]WorkerStatus]
	queues    *cachedSource[[]Queue]
	processes *cachedSource[[]supervisor.Status]
	tasks     *cachedSource[[]periodic.TaskStatus]
	leader    *cachedSource[bool]
	limits    *cachedSource[[]Limit]
	sinks     func() []sinkStats
	names     *boundedNames

	inFlight, waiting, receiving, blocked, concurrency *sourceMetric
	longestWait, oldestReceived                        *sourceMetric
	messages, oldest                                   *sourceMetric
	up                                                 *sourceMetric
	next, leading                                      *sourceMetric
	breaker, rateLimited, refusals                     *sourceMetric
	sinkErrors, sinkDropped                            *sourceMetric
}

func newSourceCollector(c *catalogue, opts *Options) *sourceCollector {
	s := &opts.Sources
	gauge, counter := prometheus.GaugeValue, prometheus.CounterValue
	return &sourceCollector{
		workers:   newCachedSource(s.Workers != nil, func(context.Context) []WorkerStatus { return s.Workers() }),
		queues:    newCachedSource(s.Queues != nil, func(ctx context.Context) []Queue { return s.Queues(ctx) }),
		processes: newCachedSource(s.Processes != nil, func(context.Context) []supervisor.Status { return s.Processes() }),
		tasks: newCachedSource(s.Tasks != nil, func(context.Context) []periodic.TaskStatus {
			tasks, _ := s.Tasks()
			return tasks
		}),
		leader: newCachedSource(s.Leader != nil, func(context.Context) bool { return s.Leader() }),
		limits: newCachedSource(s.Limits != nil, func(context.Context) []Limit { return s.Limits() }),
		sinks:  func() []sinkStats { return allSinkStats(opts) },
		names:  &boundedNames{limit: maxQueueNames, seen: map[string]bool{}},

		inFlight:  c.fromSource(gauge, "tendril_inflight", "Deliveries in work now.", "queue", "target"),
		waiting:   c.fromSource(gauge, "tendril_waiting", "Messages that were received and wait for a free slot.", "queue"),
		receiving: c.fromSource(gauge, "tendril_receiving", "Whether the worker is receiving, 1 or 0.", "queue"),
		blocked: c.fromSource(gauge, "tendril_receiving_blocked",
			"Why the worker is not receiving, 1 for each reason, such as paused, not_ready, "+
				"app_down, delete_refused, breaker, draining; absent while it is receiving.", "queue", "reason"),
		concurrency: c.fromSource(gauge, "tendril_concurrency_limit",
			"Current maximum of concurrent deliveries to a target: as configured, or lower "+
				"after an outage of the app or because of the adaptive limit.", "target"),
		longestWait: c.fromSource(gauge, "tendril_queue_longest_wait_seconds",
			"Longest time from the send of a message to the start of its delivery, over the last minute; 0 without deliveries. "+
				"It grows when other queues or a limit starve this queue.", "queue"),
		oldestReceived: c.fromSource(gauge, "tendril_queue_oldest_in_hand_seconds",
			"Age of the oldest message that was received and is not done; 0 when there is none.", "queue"),
		messages: c.fromSource(gauge, "tendril_queue_messages",
			"Messages in a queue: visible, inflight or delayed. Amazon SQS reports approximate numbers.", "queue", "state"),
		oldest: c.fromSource(gauge, "tendril_queue_oldest_message_age_seconds",
			"Age of the oldest message in a queue, 0 when it is empty; only of embedded queues.", "queue"),
		up: c.fromSource(gauge, "tendril_app_up", "Whether a process of the app is running and healthy, 1 or 0.", "process"),
		next: c.fromSource(gauge, "tendril_cron_next_run_timestamp_seconds",
			"When a periodic task is due next, in seconds since 1970; absent while it is paused.", "task"),
		leading: c.fromSource(gauge, "tendril_leader",
			"Whether this instance is the leader and sends the scheduled runs, 1 or 0."),
		breaker: c.fromSource(gauge, "tendril_breaker_state",
			"State of a target's breaker: 1 for the current state of closed, open and half_open, 0 for the others.", "target",
			"state"),
		rateLimited: c.fromSource(counter, "tendril_rate_limited_total",
			"How often a delivery had to wait because of the rate limit.", "target"),
		refusals: c.fromSource(counter, "tendril_limit_refusals_total",
			"How often a delivery had to wait because of a limit: rate, concurrency or breaker.", "target", "reason"),
		sinkErrors: c.fromSource(counter, "tendril_sink_errors_total",
			"Failed calls of a telemetry sink: cloudwatch, otlp_traces or otlp_metrics.", "sink"),
		sinkDropped: c.fromSource(counter, "tendril_sink_dropped_total",
			"Spans, or statistic sets for CloudWatch, that were dropped.", "sink"),
	}
}

func allSinkStats(opts *Options) []sinkStats {
	all := opts.OTLP.stats()
	if opts.CloudWatch != nil {
		all = append(all, opts.CloudWatch.stats())
	}
	return all
}

// Describe sends the descriptions of all metrics.
func (r *sourceCollector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range []*sourceMetric{r.inFlight, r.waiting, r.receiving, r.blocked, r.concurrency, r.longestWait,
		r.oldestReceived, r.messages, r.oldest, r.up, r.next, r.leading,
		r.breaker, r.rateLimited, r.refusals, r.sinkErrors, r.sinkDropped} {
		out <- m.desc
	}
}

// Collect calls all sources at once and sends the values that arrive in time.
func (r *sourceCollector) Collect(out chan<- prometheus.Metric) {
	r.workers.refresh()
	r.queues.refresh()
	r.processes.refresh()
	r.tasks.refresh()
	r.leader.refresh()
	r.limits.refresh()
	ctx, cancel := context.WithTimeout(context.Background(), sourceTimeout)
	defer cancel()
	limits, _ := r.limits.get(ctx)
	r.sendLimits(out, limits)
	if workers, ok := r.workers.get(ctx); ok {
		r.sendWorkers(out, workers, limits)
	}
	if processes, ok := r.processes.get(ctx); ok {
		for _, p := range processes {
			r.up.send(out, boolValue(p.State == supervisor.Running && p.Ready), p.Name)
		}
	}
	if tasks, ok := r.tasks.get(ctx); ok {
		for _, t := range tasks {
			if !t.Paused && !t.Next.IsZero() {
				r.next.send(out, timestamp(t.Next), t.Task.Name)
			}
		}
	}
	if leading, ok := r.leader.get(ctx); ok {
		r.leading.send(out, boolValue(leading))
	}
	if queues, ok := r.queues.get(ctx); ok {
		r.sendQueues(out, queues)
	}
	for _, s := range r.sinks() {
		r.sinkErrors.send(out, float64(s.errors), s.sink)
		r.sinkDropped.send(out, float64(s.dropped), s.sink)
	}
}

// sendWorkers sends the metrics of workers. The limit of a target that several
// workers share is sent once.
func (r *sourceCollector) sendWorkers(out chan<- prometheus.Metric, workers []WorkerStatus, limits []Limit) {
	adaptiveLimits := map[string]int{}
	for _, l := range limits {
		if l.Concurrency > 0 {
			adaptiveLimits[l.Target] = l.Concurrency
		}
	}
	configured, targets := map[string]int{}, []string{}
	for _, l := range workers {
		s := &l.Status
		r.inFlight.send(out, float64(s.InWork), l.Queue, l.Target)
		r.waiting.send(out, float64(s.Prefetched+s.Waiting), l.Queue)
		r.receiving.send(out, boolValue(s.Receiving), l.Queue)
		r.longestWait.send(out, s.LongestWait.Seconds(), l.Queue)
		r.oldestReceived.send(out, s.Oldest.Seconds(), l.Queue)
		for _, reason := range s.Reasons {
			r.blocked.send(out, 1, l.Queue, strings.ReplaceAll(string(reason.Block), " ", "_"))
		}
		if _, seen := configured[l.Target]; !seen {
			targets = append(targets, l.Target)
		}
		configured[l.Target] = max(configured[l.Target], s.Limit)
	}
	for _, target := range targets {
		n := configured[target]
		if adaptive, ok := adaptiveLimits[target]; ok {
			n = min(n, adaptive)
		}
		r.concurrency.send(out, float64(n), target)
	}
}

func (r *sourceCollector) sendLimits(out chan<- prometheus.Metric, limits []Limit) {
	for _, l := range limits {
		r.rateLimited.send(out, float64(l.RateRefused), l.Target)
		r.refusals.send(out, float64(l.RateRefused), l.Target, "rate")
		r.refusals.send(out, float64(l.ConcurrencyRefused), l.Target, "concurrency")
		r.refusals.send(out, float64(l.BreakerRefused), l.Target, "breaker")
		if l.Breaker == "" {
			continue
		}
		for _, state := range []string{"closed", "open", "half-open"} {
			r.breaker.send(out, boolValue(l.Breaker == state), l.Target, strings.ReplaceAll(state, "-", "_"))
		}
	}
}

// sendQueues sends the metrics of the first queues, up to the bound. The others are
// left out, because a sum of some of them would be misleading.
func (r *sourceCollector) sendQueues(out chan<- prometheus.Metric, queues []Queue) {
	for _, q := range queues {
		if r.names.label(q.Name) != q.Name {
			continue
		}
		r.messages.send(out, float64(q.Visible), q.Name, "visible")
		r.messages.send(out, float64(q.InFlight), q.Name, "inflight")
		r.messages.send(out, float64(q.Delayed), q.Name, "delayed")
		if q.HasAge {
			r.oldest.send(out, q.OldestAge.Seconds(), q.Name)
		}
	}
}
