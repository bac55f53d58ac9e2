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

// putter accepts at most 1000 statistic sets per call. isRejected distinguishes errors for invalid data from errors
// worth retrying.
type putter interface {
	PutMetricData(ctx context.Context, namespace string, data []aws.Datum) error
}

// CloudWatchOptions configure [NewCloudWatch].
type CloudWatchOptions struct {
	// Name is the part of the namespace after "Workerless-". If it is "", no queue metrics are sent.
	Name string
	// Interval is the time between calls, at least 1 s; 0 means 60 s.
	Interval time.Duration
	// Environment is the value of the EnvironmentName dimension. If it is "", no health metrics are sent.
	Environment string
	// Health must not block; nil means no health metrics.
	Health func() Health
	// Logger records when sending starts to fail and when it works again. It may be nil.
	Logger *slog.Logger
}

// Health is the health of an environment as sent to CloudWatch.
type Health struct {
	Green bool
	// Code is the value of the EnvironmentHealth metric: 0 for Ok to 25 for Severe, as in Elastic Beanstalk's enhanced
	// health. It is sent only if HasCode is set, because only the leader sends it.
	Code    int
	HasCode bool
	// The Leader metric is sent only if there are Periodic tasks. Leads reports whether this instance is the leader.
	Periodic, Leads bool
	// CPU is this instance's utilization in percent. It is sent only if HasCPU is set.
	CPU    float64
	HasCPU bool
}

// CloudWatch counts deliveries and sends one statistic set per metric, queue and interval, all in one call:
//
//	MessagesProcessed  Count         1 for each delivery that the app answered
//	                                 or failed; Sum is their number
//	MessagesFailed     Count         0 or 1 for each of them; Sum is the number of
//	                                 failures, Average the failure ratio
//	Duration           Milliseconds  the duration of each of them
//
// with the dimension Queue. A queue without deliveries sends nothing.
//
// If the environment has a name, its state goes to the namespace [HealthNamespace] with the dimension EnvironmentName,
// as for an Elastic Beanstalk worker environment. Health is 1 for green and 0 for any other color, and
// EnvironmentHealth is the environment's status as a number. Leader is 1 from the leader of the periodic tasks and 0
// from other instances, so a Sum of 0 means that there is no leader. CPUUtilization comes from each instance, so the
// Average is the environment's.
type CloudWatch struct {
	put      putter
	opts     CloudWatchOptions
	sink     sink // for queue metrics
	health   sink
	mu       sync.Mutex
	tallies  []*tally
	pending  []aws.Datum // in order of time; only Run uses it
	failures int         // consecutive; only Run uses it
}

const (
	// NamespacePrefix and the environment's name form the namespace of queue metrics.
	NamespacePrefix = "Workerless-"
	// HealthNamespace is the namespace of the metrics Health, EnvironmentHealth, Leader and CPUUtilization. Elastic
	// Beanstalk itself uses AWS/ElasticBeanstalk, but names that begin with AWS/ are reserved for AWS.
	HealthNamespace = "ElasticBeanstalk/SQSD"

	maxPut = 1000
	// flushTimeout applies after Run's context is done.
	putTimeout   = 10 * time.Second
	flushTimeout = 5 * time.Second
)

// NewCloudWatch returns a CloudWatch. It sends nothing until [CloudWatch.Run] is called.
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

// Worker returns a listener that counts a queue's deliveries. Only its Settled field is set. Listeners for the same
// queue share one count.
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

func (c *CloudWatch) stats() sinkStats {
	s := c.sink.stats()
	s.errors += c.health.errors.Load()
	return s
}

// Run sends data until ctx is done, and then spends at most 5 s on sending the rest. After a failed call, it retries
// with data of later intervals; the delay starts at 5 s and grows to 5 minutes. It keeps at most 15 intervals and
// merges the oldest beyond that. If a response is lost, the call is repeated, so data may be counted twice but is not
// lost.
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

func nextInterval(intervalEnd, now time.Time, interval time.Duration) time.Time {
	return intervalEnd.Add((now.Sub(intervalEnd)/interval + 1) * interval)
}

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

// sendHealth does not repeat a failed call, because the next interval sends newer values.
func (c *CloudWatch) sendHealth(ctx context.Context, now time.Time) {
	if c.opts.Environment == "" || c.opts.Health == nil {
		return
	}

	value := func(name, unit string, v float64) aws.Datum {
		return aws.Datum{Name: name, Unit: unit, At: now, Samples: 1, Sum: v, Minimum: v, Maximum: v,
			Dimension: "EnvironmentName", DimensionValue: c.opts.Environment}
	}

	h := c.opts.Health()
	data := []aws.Datum{value("Health", "None", boolValue(h.Green))}
	if h.HasCode {
		data = append(data, value("EnvironmentHealth", "None", float64(h.Code)))
	}
	if h.Periodic {
		data = append(data, value("Leader", "None", boolValue(h.Leads)))
	}
	if h.HasCPU {
		data = append(data, value("CPUUtilization", "Percent", h.CPU))
	}

	c.health.recordResult(c.send(ctx, HealthNamespace, data))
}

func retryAfter(n int) time.Duration {
	return min(5*time.Second<<min(n-1, 10), 5*time.Minute)
}

// isRejected reports whether the data is invalid. Retrying such data would only delay later intervals.
func isRejected(err error) bool {
	var rejected *queue.Error
	if !errors.As(err, &rejected) {
		return false
	}
	return !slices.Contains([]string{queue.CodeUnreachable, queue.CodeRequestThrottled, queue.CodeAccessDenied,
		queue.CodeOverLimit, queue.CodeClosed}, rejected.Code)
}
