package telemetry

import (
	"context"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"tendril/periodic"
	"tendril/supervisor"
)

// readings collects what the sources say.
type sourceCollector struct {
	workers   *cachedSource[[]WorkerStatus]
	queues    *cachedSource[[]Queue]
	processes *cachedSource[[]supervisor.Status]
	tasks     *cachedSource[[]periodic.TaskStatus]
	leader    *cachedSource[bool]
	limits    *cachedSource[[]Limit]
	sinks     func() []SinkStats
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
		tasks:     newCachedSource(s.Tasks != nil, func(context.Context) []periodic.TaskStatus { t, _ := s.Tasks(); return t }),
		leader:    newCachedSource(s.Leader != nil, func(context.Context) bool { return s.Leader() }),
		limits:    newCachedSource(s.Limits != nil, func(context.Context) []Limit { return s.Limits() }),
		sinks:     func() []SinkStats { return sinkStats(opts) },
		names:     &boundedNames{most: maxQueueNames, seen: map[string]bool{}},

		inFlight:    c.read(gauge, "tendril_inflight", "Deliveries that run now.", "queue", "target"),
		waiting:     c.read(gauge, "tendril_waiting", "Messages that were received and wait here for their turn.", "queue"),
		receiving:   c.read(gauge, "tendril_receiving", "Whether the worker receives, 1 or 0.", "queue"),
		blocked:     c.read(gauge, "tendril_receiving_blocked", "Why the worker does not receive, 1 for each reason, such as paused, not_ready, app_down, delete_refused, breaker, draining; absent when nothing is in the way.", "queue", "reason"),
		concurrency: c.read(gauge, "tendril_concurrency_limit", "The most deliveries at once to a target as of now: as configured, or lower after an outage of the app or by the adaptive limit.", "target"),
		longestWait: c.read(gauge, "tendril_queue_longest_wait_seconds", "The longest time from the sending of a message to its delivery, of those begun in the last minute; 0 when none was. "+
			"It grows where the order of the queues, or a limit, starves a queue.", "queue"),
		oldestReceived: c.read(gauge, "tendril_queue_oldest_in_hand_seconds", "Age of the oldest message that was received and is not done; 0 when there is none.", "queue"),
		messages:       c.read(gauge, "tendril_queue_messages", "Messages in a queue: visible, inflight or delayed. Amazon SQS tells approximate numbers.", "queue", "state"),
		oldest:         c.read(gauge, "tendril_queue_oldest_message_age_seconds", "Age of the oldest message in a queue, 0 when it is empty; only of embedded queues.", "queue"),
		up:             c.read(gauge, "tendril_app_up", "Whether a process of the app runs and passes its check, 1 or 0.", "process"),
		next:           c.read(gauge, "tendril_cron_next_run_timestamp_seconds", "When a periodic task is due next, in seconds since 1970; absent for a paused one.", "task"),
		leading:        c.read(gauge, "tendril_leader", "Whether this instance is in charge of periodic tasks, 1 or 0."),
		breaker:        c.read(gauge, "tendril_breaker_state", "State of a target's breaker: 1 for the one of closed, open and half_open that it is in, 0 for the others.", "target", "state"),
		rateLimited:    c.read(counter, "tendril_rate_limited_total", "How often a delivery had to wait because of the rate limit.", "target"),
		refusals:       c.read(counter, "tendril_limit_refusals_total", "How often a delivery had to wait because of a limit: rate, concurrency or breaker.", "target", "reason"),
		sinkErrors:     c.read(counter, "tendril_sink_errors_total", "Calls that failed of a way out for figures and spans: cloudwatch, otlp_traces or otlp_metrics.", "sink"),
		sinkDropped:    c.read(counter, "tendril_sink_dropped_total", "Spans, or figures for CloudWatch, that were given up.", "sink"),
	}
}

func sinkStats(opts *Options) []SinkStats {
	all := opts.OTLP.Stats()
	if opts.CloudWatch != nil {
		all = append(all, opts.CloudWatch.Stats())
	}
	return all
}

// Describe sends what may be collected.
func (r *sourceCollector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range []*sourceMetric{r.inFlight, r.waiting, r.receiving, r.blocked, r.concurrency, r.longestWait, r.oldestReceived, r.messages, r.oldest, r.up, r.next, r.leading,
		r.breaker, r.rateLimited, r.refusals, r.sinkErrors, r.sinkDropped} {
		out <- m.desc
	}
}

// Collect asks all sources at once and sends what they say in time.
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
		r.sinkErrors.send(out, float64(s.Errors), s.Sink)
		r.sinkDropped.send(out, float64(s.Dropped), s.Sink)
	}
}

// tellLines tells of the workers. What several of them share, a target or a
// queue, is told once.
func (r *sourceCollector) sendWorkers(out chan<- prometheus.Metric, workers []WorkerStatus, limits []Limit) {
	lowest := map[string]int{}
	for _, l := range limits {
		if l.Concurrency > 0 {
			lowest[l.Target] = l.Concurrency
		}
	}
	permitted, targets := map[string]int{}, []string{}
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
		if _, seen := permitted[l.Target]; !seen {
			targets = append(targets, l.Target)
		}
		permitted[l.Target] = max(permitted[l.Target], s.Limit)
	}
	for _, target := range targets {
		n := permitted[target]
		if adaptive, ok := lowest[target]; ok {
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

// tellQueues tells of the first queues, up to the bound, and leaves the others
// out: a sum of some of them would say nothing.
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
