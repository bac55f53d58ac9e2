package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"tendril/broker"
	"tendril/internal/aws"
	"tendril/internal/delivery/limit"
	"tendril/internal/worker"
)

// zeroMeant turns a 0 that somebody chose into what the parts take for it: their own zero means the default.
func zeroMeant(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// buildWorkers makes the workers with what open returns for a pipeline: what delivers its messages, and
// who listens.
func (q *pipelines) buildWorkers(open func(*pipeline) (worker.Deliverer, *worker.Events, error)) error {
	if len(q.lines) > 1 || q.s.Sleep > 0 {
		q.pool = worker.NewPool(&worker.PoolOptions{Concurrency: q.s.HTTPConnections, Sleep: q.s.Sleep})
	}
	limiters := map[string]*limit.Limiter{} // by target
	for _, l := range q.inOrder() {
		deliverer, events, err := open(l)
		if err != nil {
			return err
		}
		if key := l.targetKey(); q.s.Rate != 0 || q.s.AdaptiveConcurrency || q.s.Breaker != 0 {
			if limiters[key] == nil {
				limiters[key] = limit.New(q.limitOptions(l.target))
			}
			l.limiter = limiters[key]
		}
		l.worker = worker.New(workerQueue(q, l), deliverer, q.workerOptions(l, events))
		l.worker.SetFilter(l.filter())
	}
	return nil
}

// Both kinds of queues take what goes to the dead-letter queue at once.
var (
	_ worker.DeadLetterer = (*aws.DeadLetters)(nil)
	_ worker.DeadLetterer = (*broker.Queue)(nil)
)

// workerQueue is the queue of a worker.
func workerQueue(q *pipelines, l *pipeline) worker.Queue {
	onSQS, found := l.Queue.(*aws.Queue)
	if !found {
		return l.Queue
	}
	host, _ := os.Hostname() // "" where nobody knows
	return &aws.DeadLetters{Queue: onSQS, ARN: l.arn, Instance: host, Last: q.s.DeadLetterReasons,
		HideAnswers: q.s.Quiet,
		To:          func() string { return q.depths.DeadLetterQueue(l.name, time.Now()) }}
}

func (q *pipelines) workerOptions(l *pipeline, events *worker.Events) *worker.Options {
	// What keeps the event of a batch below what Lambda takes, 6 MiB, as long as no more than two bytes of JSON
	// stand for one of a body.
	const maxBatchBytes = 5 << 19
	tuning := q.tuning(l)
	opts := &worker.Options{
		Name: l.name, Concurrency: tuning.Concurrency,
		VisibilityTimeout: zeroMeant(l.settings().VisibilityTimeout), ErrorVisibilityTimeout: tuning.ErrorVisibilityTimeout,
		Backoff: tuning.Backoff, RespectRetryAfter: tuning.RespectRetryAfter, Retention: tuning.Retention,
		WaitTime: zeroMeant(q.s.WaitTime), FIFO: l.fifo, UncountedReturns: l.embedded,
		DeleteLinger: zeroMeant(q.s.DeleteLinger), Events: events, ProbeIdle: l.probeIdle(),
		Batch: worker.Batch{Size: l.settings().BatchSize, Window: l.settings().BatchWindow, Bytes: maxBatchBytes},
		Pool:  q.pool, Share: worker.Share{Weight: l.settings().Weight, MaxWait: l.settings().MaxWait},
	}
	if l.embedded && !q.Config.IsSet("delete-linger") {
		opts.DeleteLinger = -1 // only calls to Amazon cost money; there is less to be attempted again after a crash
	}
	if held := sharesOf(q.Memory).held; held > 0 {
		opts.HeldBytes = max(held/len(q.lines), 1)
	}
	if l.limiter != nil {
		opts.Limiter = l.limiter
	}
	return opts
}

func (c *core) limitOptions(target string) *limit.Options {
	opts := &limit.Options{Rate: c.s.Rate, Concurrency: c.s.HTTPConnections, Batch: c.s.BatchSize,
		Adaptive: c.s.AdaptiveConcurrency, Events: c.Logger.Limiter(target)}
	if c.s.Breaker > 0 {
		opts.Breaker = &limit.Breaker{FailureRatio: float64(c.s.Breaker) / 100, Window: c.s.BreakerWindow,
			Delay: c.s.BreakerDelay}
	}
	return opts
}

// runWorkers lets the workers run until the stop reaches them: then they drain,
// and are cut off when the time for that is over. They start after the app, so
// that they stop before it: the app must live while deliveries finish.
func (q *pipelines) runWorkers(context.Context) error {
	receive, stop := context.WithCancel(context.Background())
	deliveries, abort := context.WithCancel(context.Background())
	if q.pool != nil {
		q.openTogether(receive)
	}
	var running sync.WaitGroup
	errs := make([]error, len(q.lines))
	for i, l := range q.lines {
		running.Go(func() { errs[i] = l.worker.Run(receive, deliveries) })
	}
	q.steps.push("the workers", func(ctx context.Context) error {
		defer abort()
		defer context.AfterFunc(ctx, abort)()
		stop()
		running.Wait()
		for _, l := range q.lines {
			l.close()
		}
		err := errors.Join(errs...)
		if err != nil {
			err = fmt.Errorf("%w: %w", cmp.Or(context.Cause(ctx), ErrLate), err)
		}
		q.finishDrain(err)
		return err
	})
	return nil
}

// openTogether finds out when each target that others run takes messages, and
// then opens the gates of all its pipelines at once: were each worker to find out by
// itself, a queue of little weight might have everything for a moment.
func (q *pipelines) openTogether(ctx context.Context) {
	waiting := map[string][]*pipeline{}
	for _, l := range q.inOrder() {
		if !l.settings().ToOwnApp() {
			l.worker.Gate(false, "waiting for "+l.target+" to answer")
			waiting[l.targetKey()] = append(waiting[l.targetKey()], l)
		}
	}
	for _, lines := range waiting {
		go func() {
			if !lines[0].awaitTarget(ctx, q.Logger.Logger) {
				return
			}
			for _, l := range lines {
				l.worker.Gate(true, "")
			}
		}()
	}
}
