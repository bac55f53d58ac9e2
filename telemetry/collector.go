package telemetry

import (
	"context"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"tendril/periodic"
	"tendril/supervisor"
)

// readings collects what the sources say.
type readings struct {
	lines     *reading[[]Line]
	queues    *reading[[]Queue]
	processes *reading[[]supervisor.Status]
	tasks     *reading[[]periodic.TaskStatus]
	leader    *reading[bool]
	limits    *reading[[]Limit]
	sinks     func() []SinkStats
	names     *boundedNames

	inFlight, waiting, receiving, blocked, concurrency *readMetric
	longestWait, oldestInHand                          *readMetric
	messages, oldest                                   *readMetric
	up                                                 *readMetric
	next, leading                                      *readMetric
	breaker, rateLimited, refusals                     *readMetric
	sinkErrors, sinkDropped                            *readMetric
}

func newReadings(c *catalogue, opts *Options) *readings {
	s := &opts.Sources
	gauge, counter := prometheus.GaugeValue, prometheus.CounterValue
	return &readings{
		lines:     newReading(s.Lines != nil, func(context.Context) []Line { return s.Lines() }),
		queues:    newReading(s.Queues != nil, func(ctx context.Context) []Queue { return s.Queues(ctx) }),
		processes: newReading(s.Processes != nil, func(context.Context) []supervisor.Status { return s.Processes() }),
		tasks:     newReading(s.Tasks != nil, func(context.Context) []periodic.TaskStatus { t, _ := s.Tasks(); return t }),
		leader:    newReading(s.Leader != nil, func(context.Context) bool { return s.Leader() }),
		limits:    newReading(s.Limits != nil, func(context.Context) []Limit { return s.Limits() }),
		sinks:     func() []SinkStats { return sinkStats(opts) },
		names:     &boundedNames{most: maxQueueNames, seen: map[string]bool{}},

		inFlight:    c.read(gauge, "tendril_inflight", "Deliveries that run now.", "queue", "target"),
		waiting:     c.read(gauge, "tendril_waiting", "Messages that were received and wait here for their turn.", "queue"),
		receiving:   c.read(gauge, "tendril_receiving", "Whether the worker receives, 1 or 0.", "queue"),
		blocked:     c.read(gauge, "tendril_receiving_blocked", "Why the worker does not receive, 1 for each reason, such as paused, not_ready, app_down, delete_refused, breaker, draining; absent when nothing is in the way.", "queue", "reason"),
		concurrency: c.read(gauge, "tendril_concurrency_limit", "The most deliveries at once to a target as of now: as configured, or lower after an outage of the app or by the adaptive limit.", "target"),
		longestWait: c.read(gauge, "tendril_queue_longest_wait_seconds", "The longest time from the sending of a message to its delivery, of those begun in the last minute; 0 when none was. "+
			"It grows where the order of the queues, or a limit, starves a queue.", "queue"),
		oldestInHand: c.read(gauge, "tendril_queue_oldest_in_hand_seconds", "Age of the oldest message that was received and is not done; 0 when there is none.", "queue"),
		messages:     c.read(gauge, "tendril_queue_messages", "Messages in a queue: visible, inflight or delayed. Amazon SQS tells approximate numbers.", "queue", "state"),
		oldest:       c.read(gauge, "tendril_queue_oldest_message_age_seconds", "Age of the oldest message in a queue, 0 when it is empty; only of embedded queues.", "queue"),
		up:           c.read(gauge, "tendril_app_up", "Whether a process of the app runs and passes its check, 1 or 0.", "process"),
		next:         c.read(gauge, "tendril_cron_next_run_timestamp_seconds", "When a periodic task is due next, in seconds since 1970; absent for a paused one.", "task"),
		leading:      c.read(gauge, "tendril_leader", "Whether this instance is in charge of periodic tasks, 1 or 0."),
		breaker:      c.read(gauge, "tendril_breaker_state", "State of a target's breaker: 1 for the one of closed, open and half_open that it is in, 0 for the others.", "target", "state"),
		rateLimited:  c.read(counter, "tendril_rate_limited_total", "How often a delivery had to wait because of the rate limit.", "target"),
		refusals:     c.read(counter, "tendril_limit_refusals_total", "How often a delivery had to wait because of a limit: rate, concurrency or breaker.", "target", "reason"),
		sinkErrors:   c.read(counter, "tendril_sink_errors_total", "Calls that failed of a way out for figures and spans: cloudwatch, otlp_traces or otlp_metrics.", "sink"),
		sinkDropped:  c.read(counter, "tendril_sink_dropped_total", "Spans, or figures for CloudWatch, that were given up.", "sink"),
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
func (r *readings) Describe(out chan<- *prometheus.Desc) {
	for _, m := range []*readMetric{r.inFlight, r.waiting, r.receiving, r.blocked, r.concurrency, r.longestWait, r.oldestInHand, r.messages, r.oldest, r.up, r.next, r.leading,
		r.breaker, r.rateLimited, r.refusals, r.sinkErrors, r.sinkDropped} {
		out <- m.desc
	}
}

// Collect asks all sources at once and sends what they say in time.
func (r *readings) Collect(out chan<- prometheus.Metric) {
	r.lines.begin()
	r.queues.begin()
	r.processes.begin()
	r.tasks.begin()
	r.leader.begin()
	r.limits.begin()
	ctx, cancel := context.WithTimeout(context.Background(), readPatience)
	defer cancel()
	limits, _ := r.limits.answer(ctx)
	r.tellLimits(out, limits)
	if lines, ok := r.lines.answer(ctx); ok {
		r.tellLines(out, lines, limits)
	}
	if processes, ok := r.processes.answer(ctx); ok {
		for _, p := range processes {
			r.up.tell(out, oneIf(p.State == supervisor.Running && p.Ready), p.Name)
		}
	}
	if tasks, ok := r.tasks.answer(ctx); ok {
		for _, t := range tasks {
			if !t.Paused && !t.Next.IsZero() {
				r.next.tell(out, timestamp(t.Next), t.Task.Name)
			}
		}
	}
	if leading, ok := r.leader.answer(ctx); ok {
		r.leading.tell(out, oneIf(leading))
	}
	if queues, ok := r.queues.answer(ctx); ok {
		r.tellQueues(out, queues)
	}
	for _, s := range r.sinks() {
		r.sinkErrors.tell(out, float64(s.Errors), s.Sink)
		r.sinkDropped.tell(out, float64(s.Dropped), s.Sink)
	}
}

// tellLines tells of the workers. What several of them share, a target or a
// queue, is told once.
func (r *readings) tellLines(out chan<- prometheus.Metric, lines []Line, limits []Limit) {
	lowest := map[string]int{}
	for _, l := range limits {
		if l.Concurrency > 0 {
			lowest[l.Target] = l.Concurrency
		}
	}
	permitted, targets := map[string]int{}, []string{}
	for _, l := range lines {
		s := &l.Status
		r.inFlight.tell(out, float64(s.InWork), l.Queue, l.Target)
		r.waiting.tell(out, float64(s.Prefetched+s.Waiting), l.Queue)
		r.receiving.tell(out, oneIf(s.Receiving), l.Queue)
		r.longestWait.tell(out, s.LongestWait.Seconds(), l.Queue)
		r.oldestInHand.tell(out, s.Oldest.Seconds(), l.Queue)
		for _, reason := range s.Reasons {
			r.blocked.tell(out, 1, l.Queue, strings.ReplaceAll(string(reason.Block), " ", "_"))
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
		r.concurrency.tell(out, float64(n), target)
	}
}

func (r *readings) tellLimits(out chan<- prometheus.Metric, limits []Limit) {
	for _, l := range limits {
		r.rateLimited.tell(out, float64(l.RateRefused), l.Target)
		r.refusals.tell(out, float64(l.RateRefused), l.Target, "rate")
		r.refusals.tell(out, float64(l.ConcurrencyRefused), l.Target, "concurrency")
		r.refusals.tell(out, float64(l.BreakerRefused), l.Target, "breaker")
		if l.Breaker == "" {
			continue
		}
		for _, state := range []string{"closed", "open", "half-open"} {
			r.breaker.tell(out, oneIf(l.Breaker == state), l.Target, strings.ReplaceAll(state, "-", "_"))
		}
	}
}

// tellQueues tells of the first queues, up to the bound, and leaves the others
// out: a sum of some of them would say nothing.
func (r *readings) tellQueues(out chan<- prometheus.Metric, queues []Queue) {
	for _, q := range queues {
		if r.names.label(q.Name) != q.Name {
			continue
		}
		r.messages.tell(out, float64(q.Visible), q.Name, "visible")
		r.messages.tell(out, float64(q.InFlight), q.Name, "inflight")
		r.messages.tell(out, float64(q.Delayed), q.Name, "delayed")
		if q.HasAge {
			r.oldest.tell(out, q.OldestAge.Seconds(), q.Name)
		}
	}
}
