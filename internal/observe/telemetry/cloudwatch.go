package telemetry

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"tendril/internal/aws"
	"tendril/internal/worker"
	"tendril/queue"
)

// putter writes metric data to a namespace of CloudWatch, at most 1000 sets at a
// time. A [queue.Error] whose code is not about the connection or the permission means
// that the data is invalid.
type putter interface {
	PutMetricData(ctx context.Context, namespace string, data []aws.Datum) error
}

// CloudWatchOptions configure [NewCloudWatch].
type CloudWatchOptions struct {
	// Name is the part of the namespace after "Workerless-". "" sends no metrics of
	// queues.
	Name string
	// Interval is the time between two calls, at least 1 s; 0 means 60 s.
	Interval time.Duration
	// Environment is the EnvironmentName dimension of the Health metric; "" sends no
	// health.
	Environment string
	// Health returns the environment's state; nil sends no health. It must not block.
	Health func() Health
	// Logger gets a line when sending starts to fail and when it works again; may be
	// nil.
	Logger *slog.Logger
}

// Health is the state of an environment as CloudWatch gets it.
type Health struct {
	// Green is the value of the metric Health: 1 when true, 0 when false.
	Green bool
	// Code is the value of EnvironmentHealth, as Elastic Beanstalk's enhanced health numbers
	// its statuses: 0 for Ok to 25 for Severe.
	Code int
	// Periodic reports whether there are periodic tasks; false sends no Leader. Leads reports
	// whether this instance is their leader.
	Periodic, Leads bool
}

// CloudWatch counts deliveries and sends one statistic set for each metric, queue and
// interval, all in one call:
//
//	MessagesProcessed  Count         1 for each delivery that the app answered
//	                                 or failed; Sum is their number
//	MessagesFailed     Count         0 or 1 for each of them; Sum is the number of
//	                                 failures, Average the failure ratio
//	Duration           Milliseconds  the duration of each of them
//
// with the dimension Queue. A queue without deliveries sends nothing, so an alarm
// should treat missing data as not breaching.
//
// When the environment has a name, its state goes to the namespace [HealthNamespace]
// with the dimension EnvironmentName, like that of an Elastic Beanstalk worker
// environment: Health is 1 for green and 0 for any other color. EnvironmentHealth is the
// status as a number. Leader is 1 from the leader of the periodic tasks and 0 from the
// other instances, so its Sum over all instances is 0 without a leader.
type CloudWatch struct {
	put      putter
	opts     CloudWatchOptions
	sink     sink // of the queues' metrics
	health   sink
	mu       sync.Mutex
	tallies  []*tally
	pending  []aws.Datum // ordered by time; used by Run only
	failures int         // consecutive; used by Run only
}

const (
	// NamespacePrefix and the environment's name are the namespace of the metrics of queues.
	NamespacePrefix = "Workerless-"
	// HealthNamespace is the namespace of Health, EnvironmentHealth and Leader. Elastic
	// Beanstalk publishes its EnvironmentHealth in AWS/ElasticBeanstalk, but names that begin
	// with AWS/ are reserved for Amazon.
	HealthNamespace = "ElasticBeanstalk/SQSD"

	maxPut = 1000
	// putTimeout limits one call, flushTimeout everything that Run does after its
	// context has ended.
	putTimeout   = 10 * time.Second
	flushTimeout = 5 * time.Second
)

// NewCloudWatch returns a CloudWatch that sends nothing before [CloudWatch.Run].
func NewCloudWatch(put putter, opts *CloudWatchOptions) *CloudWatch {
	c := &CloudWatch{put: put}
	if opts != nil {
		c.opts = *opts
	}
	c.opts.Interval = max(cmp.Or(c.opts.Interval, time.Minute), time.Second)
	log := loggerOrDiscard(c.opts.Logger)
	c.sink = sink{name: "cloudwatch", data: "metrics", log: log}
	c.health = sink{name: "cloudwatch", data: "health", log: log}
	return c
}

// Worker returns a listener that counts the deliveries from a queue; only Settled is
// set. Listeners of the same queue share one count.
func (c *CloudWatch) Worker(queue string) *worker.Events {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.tallies, func(t *tally) bool { return t.queue == queue })
	if i < 0 {
		i = len(c.tallies)
		c.tallies = append(c.tallies, &tally{queue: queue})
	}
	return &worker.Events{Settled: c.tallies[i].settled}
}

// stats counts the failed calls and the statistic sets that were dropped.
func (c *CloudWatch) stats() sinkStats {
	s := c.sink.stats()
	s.errors += c.health.errors.Load()
	return s
}

// Run sends until ctx ends, and then sends what is left for at most 5 s. After a
// failed call it sends the data again after 5 s, then 10 s, up to 5 minutes, together
// with the data of later intervals. It keeps at most 15 intervals and merges the
// oldest. It repeats a call whose answer was lost, so data may be counted twice, but is
// never lost.
func (c *CloudWatch) Run(ctx context.Context) {
	calls, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	defer context.AfterFunc(ctx, func() {
		bound := time.AfterFunc(flushTimeout, abort)
		context.AfterFunc(calls, func() { bound.Stop() })
	})()

	intervalEnd, retry := time.Now().Add(c.opts.Interval), time.Time{}
	for {
		wake := intervalEnd
		if !retry.IsZero() && retry.Before(intervalEnd) {
			wake = retry
		}
		if !sleepUntil(ctx, wake) {
			c.endInterval(time.Now(), false)
			c.flush(calls)
			return
		}

		now := time.Now()
		if !now.Before(intervalEnd) {
			c.endInterval(now, true)
			intervalEnd = nextInterval(intervalEnd, now, c.opts.Interval)
			c.sendHealth(calls, now)
		}

		if retry.IsZero() || !now.Before(retry) {
			retry = c.flush(calls)
		}
	}
}

// nextInterval returns the next end of an interval after now.
func nextInterval(intervalEnd, now time.Time, interval time.Duration) time.Time {
	return intervalEnd.Add((now.Sub(intervalEnd)/interval + 1) * interval)
}

// sleepUntil returns false when ctx ends first.
func sleepUntil(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// endInterval adds the statistic sets of the interval to those that are pending.
func (c *CloudWatch) endInterval(now time.Time, whole bool) {
	if c.opts.Name == "" {
		return
	}
	c.mu.Lock()
	tallies := slices.Clone(c.tallies)
	c.mu.Unlock()
	for _, t := range tallies {
		c.pending = t.endInterval(c.pending, now, whole)
	}
	c.pending = mergeOldest(c.pending, maxIntervals)
}

// flush sends the pending data and returns when to try again: the zero time when
// everything is sent.
func (c *CloudWatch) flush(ctx context.Context) (retry time.Time) {
	for len(c.pending) > 0 {
		batch := c.pending[:min(len(c.pending), maxPut)]
		err := c.send(ctx, NamespacePrefix+c.opts.Name, batch)
		c.sink.recordResult(err)
		if err != nil && !isRejected(err) {
			c.failures++
			return time.Now().Add(retryAfter(c.failures))
		}
		if err != nil {
			c.sink.dropped.Add(int64(len(batch)))
		}
		c.failures = 0
		c.pending = slices.Delete(c.pending, 0, len(batch))
	}
	return time.Time{}
}

func (c *CloudWatch) send(ctx context.Context, namespace string, data []aws.Datum) error {
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	return c.put.PutMetricData(ctx, namespace, data)
}

// sendHealth sends the current state in one call. It is not repeated after a failure: the
// next interval sends newer values.
func (c *CloudWatch) sendHealth(ctx context.Context, now time.Time) {
	if c.opts.Environment == "" || c.opts.Health == nil {
		return
	}
	value := func(name string, v float64) aws.Datum {
		return aws.Datum{Name: name, Unit: "None", At: now, Samples: 1, Sum: v, Minimum: v, Maximum: v,
			Dimension: "EnvironmentName", DimensionValue: c.opts.Environment}
	}
	h := c.opts.Health()
	data := []aws.Datum{value("Health", boolValue(h.Green)), value("EnvironmentHealth", float64(h.Code))}
	if h.Periodic {
		data = append(data, value("Leader", boolValue(h.Leads)))
	}
	c.health.recordResult(c.send(ctx, HealthNamespace, data))
}

// retryAfter returns the delay after the nth consecutive failure.
func retryAfter(n int) time.Duration {
	return min(5*time.Second<<min(n-1, 10), 5*time.Minute)
}

// isRejected reports whether CloudWatch rejected the data as invalid. Sending it
// again would only delay the data of later intervals.
func isRejected(err error) bool {
	var rejected *queue.Error
	if !errors.As(err, &rejected) {
		return false
	}
	return !slices.Contains([]string{queue.CodeUnreachable, queue.CodeRequestThrottled, queue.CodeAccessDenied,
		queue.CodeOverLimit, queue.CodeClosed}, rejected.Code)
}
