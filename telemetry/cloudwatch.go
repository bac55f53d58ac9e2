package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"tendril/queue"
	"tendril/worker"
)

// Putter writes figures into a namespace of CloudWatch, up to 1000 at a time. A
// [queue.Error] whose code says that nothing is wrong with the connection or
// the permission means that the figures themselves were refused.
type Putter interface {
	PutMetricData(ctx context.Context, namespace string, data []Datum) error
}

// CloudWatchOptions configure [NewCloudWatch].
type CloudWatchOptions struct {
	// Name makes the namespace: "Workerless-" and Name. "" sends no figures of
	// queues.
	Name string
	// Interval is the time from one call to the next; 0 means 60 s, and anything
	// below 1 s counts as 1 s.
	Interval time.Duration
	// Environment is the EnvironmentName under which Health is told; "" tells
	// no health.
	Environment string
	// Health reports whether the environment is green; nil tells no health. It
	// must answer at once.
	Health func() bool
	// Logger hears when sending begins to fail and when it works again; nil for
	// nobody.
	Logger *slog.Logger
}

// CloudWatch adds up deliveries and sends one statistic set for each figure, each
// queue and each interval, in one call:
//
//	MessagesProcessed  Count         one for each delivery that the app answered
//	                                 or failed; Sum is their number
//	MessagesFailed     Count         0 or 1 for each of them; Sum is the number of
//	                                 failures, Average their share
//	Duration           Milliseconds  of each of them
//
// with the dimension Queue. A queue without deliveries sends nothing, so an
// alarm on it should treat missing data as fine.
//
// Where an environment has a name, its Health goes to the namespace
// ElasticBeanstalk/SQSD with the dimension EnvironmentName, as that of an
// Elastic Beanstalk worker environment does: 1 is green, 0 anything else.
type CloudWatch struct {
	put      Putter
	opts     CloudWatchOptions
	sink     sink // of the queues' figures
	health   sink
	mu       sync.Mutex
	tallies  []*tally
	pending  []Datum // in the order of time; Run's own
	failures int     // in a row; Run's own
}

const (
	workerlessPrefix = "Workerless-"
	healthNamespace  = "ElasticBeanstalk/SQSD"

	maxPut = 1000
	// putTimeout bounds one call, lastFlush all that Run still does after its
	// end was asked for.
	putTimeout   = 10 * time.Second
	flushTimeout = 5 * time.Second
)

// NewCloudWatch returns a counter that sends nothing before [CloudWatch.Run].
func NewCloudWatch(put Putter, opts *CloudWatchOptions) *CloudWatch {
	c := &CloudWatch{put: put}
	if opts != nil {
		c.opts = *opts
	}
	if c.opts.Interval == 0 {
		c.opts.Interval = time.Minute
	}
	c.opts.Interval = max(c.opts.Interval, time.Second)
	log := loggerOrDiscard(c.opts.Logger)
	c.sink = sink{name: "cloudwatch", what: "metrics for CloudWatch", log: log}
	c.health = sink{name: "cloudwatch", what: "the environment's health for CloudWatch", log: log}
	return c
}

// Worker returns the listener that counts the deliveries from a queue; only
// Settled is set. It may be called again for the same queue: the counts are
// joined.
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

// Stats counts the calls that failed, and the figures that CloudWatch refused
// for good.
func (c *CloudWatch) Stats() SinkStats {
	s := c.sink.stats()
	s.Errors += c.health.errors.Load()
	return s
}

// Run sends until ctx ends, and then what is left, for at most 5 s more. When a
// call fails, its figures are sent again after 5 s, then 10 s, up to 5 minutes;
// figures of later intervals join them. More than 15 intervals are never kept:
// the oldest are added together. A call whose answer was lost is repeated, so
// figures may be counted twice then; they are not lost.
func (c *CloudWatch) Run(ctx context.Context) {
	calls, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	defer context.AfterFunc(ctx, func() {
		bound := time.AfterFunc(flushTimeout, abort)
		context.AfterFunc(calls, func() { bound.Stop() })
	})()
	endInterval, retry := time.Now().Add(c.opts.Interval), time.Time{}
	for {
		wake := endInterval
		if !retry.IsZero() && retry.Before(endInterval) {
			wake = retry
		}
		if !sleepUntil(ctx, wake) {
			c.endInterval(time.Now())
			c.flush(calls)
			return
		}
		now := time.Now()
		if due := !now.Before(endInterval); due {
			c.endInterval(now)
			endInterval = nextInterval(endInterval, now, c.opts.Interval)
			c.sendHealth(calls, now)
		}
		if retry.IsZero() || !now.Before(retry) {
			retry = c.flush(calls)
		}
	}
}

// nextCut is the first multiple of the interval after cut that lies ahead.
func nextInterval(endInterval, now time.Time, interval time.Duration) time.Time {
	return endInterval.Add((now.Sub(endInterval)/interval + 1) * interval)
}

// sleepUntil reports false when ctx ended first.
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

// cut ends the interval.
func (c *CloudWatch) endInterval(now time.Time) {
	if c.opts.Name == "" {
		return
	}
	c.mu.Lock()
	tallies := slices.Clone(c.tallies)
	c.mu.Unlock()
	for _, t := range tallies {
		c.pending = t.endInterval(c.pending, now)
	}
	c.pending = mergeOldest(c.pending, maxIntervals)
}

// flush sends what waits, and returns when to try again: the zero time when all
// is sent.
func (c *CloudWatch) flush(ctx context.Context) (retry time.Time) {
	for len(c.pending) > 0 {
		batch := c.pending[:min(len(c.pending), maxPut)]
		err := c.send(ctx, workerlessPrefix+c.opts.Name, batch)
		c.sink.done(err)
		if err != nil && !isRefused(err) {
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

func (c *CloudWatch) send(ctx context.Context, namespace string, data []Datum) error {
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	return c.put.PutMetricData(ctx, namespace, data)
}

// tellHealth sends the health of this moment. It is not sent again when that
// fails: the next interval has a newer one.
func (c *CloudWatch) sendHealth(ctx context.Context, now time.Time) {
	if c.opts.Environment == "" || c.opts.Health == nil {
		return
	}
	d := Datum{Name: "Health", Dimension: "EnvironmentName", DimensionValue: c.opts.Environment, Unit: "None", At: now, Samples: 1}
	if c.opts.Health() {
		d.Sum, d.Minimum, d.Maximum = 1, 1, 1
	}
	c.health.done(c.send(ctx, healthNamespace, []Datum{d}))
}

// retryAfter is the pause after the nth failure in a row.
func retryAfter(n int) time.Duration {
	return min(5*time.Second<<min(n-1, 10), 5*time.Minute)
}

// isRefused reports whether the figures themselves were refused: sending them
// again would keep all later ones waiting for nothing.
func isRefused(err error) bool {
	var refused *queue.Error
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.Code {
	case queue.CodeUnreachable, queue.CodeRequestThrottled, queue.CodeAccessDenied, queue.CodeOverLimit, queue.CodeClosed:
		return false
	}
	return true
}
