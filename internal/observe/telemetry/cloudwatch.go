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

type putter interface {
	PutMetricData(ctx context.Context, namespace string, data []aws.Datum) error
}

// CloudWatchOptions configure [NewCloudWatch].
type CloudWatchOptions struct {
	// Name is the namespace's suffix; "" disables queue metrics.
	Name string
	// Interval is at least 1 s; 0 means 60 s.
	Interval time.Duration
	// Environment is the EnvironmentName dimension; "" disables health metrics.
	Environment string
	// Health must not block; nil disables health metrics.
	Health func() Health
	Logger *slog.Logger
}

// Health is an environment's health for CloudWatch.
type Health struct {
	Green bool
	// Code is the EnvironmentHealth metric, 0 (Ok) to 25 (Severe). If instances share a registry, only the leader sets
	// HasCode.
	Code    int
	HasCode bool
	// Leads is sent as the Leader metric if there are Periodic tasks.
	Periodic, Leads bool
	// CPU is in percent, and valid if HasCPU.
	CPU    float64
	HasCPU bool
}

// CloudWatch counts deliveries and sends one statistic set per metric, queue and interval, with the dimension Queue:
//
//	MessagesProcessed  Count         1 for each completed or failed delivery; Sum is
//	                                 their number
//	MessagesFailed     Count         0 or 1 for each of them; Sum is the number of
//	                                 failures, Average the failure ratio
//	Duration           Milliseconds  the duration of each of them
//
// If the environment has a name, the metrics Health (1 for green, otherwise 0), EnvironmentHealth, Leader (1 from the
// leader, 0 from others) and CPUUtilization go to [HealthNamespace] with the dimension EnvironmentName.
type CloudWatch struct {
	put      putter
	opts     CloudWatchOptions
	sink     sink
	health   sink
	mu       sync.Mutex
	tallies  []*tally
	pending  []aws.Datum // oldest first; used only by Run
	failures int         // consecutive; used only by Run
}

const (
	// NamespacePrefix precedes the environment's name in the queue metrics' namespace.
	NamespacePrefix = "Workerless-"
	// HealthNamespace replaces Elastic Beanstalk's AWS/ElasticBeanstalk: names starting with AWS/ are reserved.
	HealthNamespace = "ElasticBeanstalk/SQSD"

	maxPut       = 1000 // statistic sets per call
	putTimeout   = 10 * time.Second
	flushTimeout = 5 * time.Second // after Run's context is done
)

// NewCloudWatch returns a CloudWatch; [CloudWatch.Run] starts it.
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

// Worker returns a Settled listener. Listeners for one queue share one count.
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

// Run sends data until ctx is done, and the rest within 5 s. It retries failed calls, unless the data was rejected, and
// keeps at most 15 intervals by merging the oldest. Data whose response is lost may count twice.
func (c *CloudWatch) Run(ctx context.Context) {
	calls, cancel := flushContext(ctx)
	defer cancel()
	intervalEnd := time.Now().Add(c.opts.Interval)
	var retry time.Time
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

// flushContext returns a context that ends flushTimeout after ctx.
func flushContext(ctx context.Context) (calls context.Context, cancel func()) {
	calls, abort := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(flushTimeout, abort) })
	return calls, func() {
		stop()
		abort()
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
		c.pending = append(c.pending, t.endInterval(now, whole)...)
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

// sendHealth does not retry, because the next interval sends newer values.
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

// isRejected reports whether the data is invalid. Retrying it would only delay later intervals.
func isRejected(err error) bool {
	var rejected *queue.Error
	if !errors.As(err, &rejected) {
		return false
	}
	return !slices.Contains([]string{queue.CodeUnreachable, queue.CodeRequestThrottled, queue.CodeAccessDenied,
		queue.CodeOverLimit, queue.CodeClosed}, rejected.Code)
}
