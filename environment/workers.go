package environment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"tendril/limit"
	"tendril/worker"
)

// openPool makes what several queues share.
func (q *pipelines) openPool() {
	if len(q.lines) > 1 || q.s.Sleep > 0 {
		q.pool = worker.NewPool(&worker.PoolOptions{Concurrency: q.s.HTTPConnections, Sleep: q.s.Sleep})
	}
}

// workerOptions are the options of the worker of a pipeline.
func (q *pipelines) workerOptions(l *pipeline, tuning *worker.Tuning, events *worker.Events) *worker.Options {
	return &worker.Options{
		Name: l.queue.name, Concurrency: tuning.Concurrency,
		VisibilityTimeout: zeroMeant(l.settings().VisibilityTimeout), ErrorVisibilityTimeout: tuning.ErrorVisibilityTimeout,
		Backoff: tuning.Backoff, RespectRetryAfter: tuning.RespectRetryAfter, Retention: tuning.Retention,
		WaitTime: zeroMeant(q.s.WaitTime),
		FIFO:     l.queue.fifo, UncountedReturns: l.embedded, DeleteLinger: q.deleteLinger(l),
		Events:    events,
		ProbeIdle: l.probeIdle(),
		Batch:     worker.Batch{Size: l.settings().BatchSize, Window: l.settings().BatchWindow, Bytes: maxBatchBytes},
		Pool:      q.pool, Weight: l.settings().Weight, MaxWait: l.settings().MaxWait, Limiter: q.limiter(l),
	}
}

// deleteLinger: on Amazon SQS a delete waits for others, because each call
// costs money; on the embedded queue it does not unless somebody says so, which
// leaves less to be attempted again after a crash.
func (q *pipelines) deleteLinger(l *pipeline) time.Duration {
	if l.embedded && !q.config.IsSet("delete-linger") {
		return -1
	}
	return zeroMeant(q.s.DeleteLinger)
}

// limiter returns what protects the target of a pipeline, nil when nothing does.
// Pipelines with one target share it.
func (q *pipelines) limiter(l *pipeline) worker.Limiter {
	if q.s.Rate == 0 && !q.s.AdaptiveConcurrency && q.s.Breaker == 0 {
		return nil
	}
	key := l.targetKey()
	if q.limiters[key] == nil {
		q.limiters[key] = limit.New(q.limitOptions(l.target))
	}
	return q.limiters[key]
}

// limitsByTarget returns the limiters by what people call their targets.
func (q *pipelines) limitsByTarget() map[string]*limit.Limiter {
	named := map[string]*limit.Limiter{}
	for _, l := range q.lines {
		if limiter := q.limiters[l.targetKey()]; limiter != nil {
			named[l.goesTo()] = limiter
		}
	}
	return named
}

func (q *pipelines) limitOptions(target string) *limit.Options {
	opts := &limit.Options{
		Rate: q.s.Rate, Concurrency: q.s.HTTPConnections, Batch: q.s.BatchSize,
		Adaptive: q.s.AdaptiveConcurrency, Events: q.log.Limiter(target),
	}
	if q.s.Breaker > 0 {
		opts.Breaker = &limit.Breaker{FailureRatio: float64(q.s.Breaker) / 100, Window: q.s.BreakerWindow,
			Delay: q.s.BreakerDelay}
	}
	return opts
}

// runWorkers lets the workers run until the stop reaches them: then they drain,
// and are cut off when the time for that is over. They start after the app, so
// that they stop before it: the app must live while deliveries finish.
func (q *pipelines) runWorkers(drained func(error)) {
	receive, stop := context.WithCancel(context.Background())
	deliveries, abort := context.WithCancel(context.Background())
	result := make(chan error, len(q.lines))
	if q.pool != nil {
		q.openTogether(receive)
	}
	for _, l := range q.lines {
		go func() { result <- l.worker.Run(receive, deliveries) }()
	}
	q.steps.push("the workers", func(ctx context.Context) error {
		defer abort()
		defer context.AfterFunc(ctx, abort)()
		stop()
		var errs []error
		for range q.lines {
			errs = append(errs, <-result)
		}
		for _, l := range q.lines {
			l.close()
		}
		err := errors.Join(errs...)
		if err != nil {
			err = fmt.Errorf("%w: %w", cutBy(ctx), err)
		}
		drained(err)
		return err
	})
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
			if !lines[0].awaitTarget(ctx, q.log.Logger) {
				return
			}
			for _, l := range lines {
				l.worker.Gate(true, "")
			}
		}()
	}
}

// Pauses between two probes of a target that does not answer.
const (
	firstProbePause   = 250 * time.Millisecond
	longestProbePause = 5 * time.Second
)

// awaitTarget returns true when the target answers, false when ctx ends first. It
// logs what is wrong once for each reason.
func (l *pipeline) awaitTarget(ctx context.Context, log *slog.Logger) bool {
	logged := ""
	for pause := firstProbePause; ; pause = min(2*pause, longestProbePause) {
		err := l.probe(ctx)
		switch {
		case err == nil:
			return true
		case ctx.Err() != nil:
			return false
		case err.Error() != logged:
			logged = err.Error()
			log.Warn("target does not answer", "component", "worker", "target", l.target, "err", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
	}
}
