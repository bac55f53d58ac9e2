package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tendril/broker"
	"tendril/internal/aws"
	"tendril/internal/config"
	"tendril/internal/delivery/limit"
	"tendril/internal/worker"
)

// negativeIfZero replaces 0, which means the default in some packages, by -1.
func negativeIfZero(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

func (p *pipelines) buildWorkers(ctx context.Context) error {
	s := p.settings.now()
	if len(p.queues.all) > 1 || s.Sleep > 0 {
		p.pool = worker.NewPool(&worker.PoolOptions{Concurrency: s.HTTPConnections, Sleep: s.Sleep})
	}

	lines := make([]*pipeline, len(p.queues.all))
	limiters := map[string]*limit.Limiter{}
	for _, w := range p.queues.joiningOrder() {
		to, err := p.targets.open(ctx, w)
		if err != nil {
			return err
		}
		l := &pipeline{queue: w, target: to}
		if s.Rate != 0 || s.AdaptiveConcurrency || s.Breaker != 0 {
			key := w.targetKey()
			if limiters[key] == nil {
				limiters[key] = limit.New(limitOptions(s, p.opts.Logger.Limiter(to.name)))
			}
			l.limiter = limiters[key]
		}
		l.worker = worker.New(p.workerQueue(w), to.deliverer, p.workerOptions(l, p.observe.workerEvents(l)))
		l.worker.SetFilter(w.filter())
		lines[w.index] = l
	}
	p.all = lines
	return nil
}

var (
	_ worker.DeadLetterer = (*aws.DeadLetters)(nil)
	_ worker.DeadLetterer = (*broker.Queue)(nil)
)

func (p *pipelines) workerQueue(w *workQueue) worker.Queue {
	remote, found := w.source.(*aws.Queue)
	if !found {
		return w.source
	}
	s := p.settings.now()
	return &aws.DeadLetters{Queue: remote, ARN: w.arn, Instance: hostName(), Last: s.DeadLetterReasons,
		HideAnswers: s.Quiet, To: func() string { return p.deadLetterQueue(w) }}
}

func (p *pipelines) workerOptions(l *pipeline, events *worker.Events) *worker.Options {
	// maxBatchBytes keeps events below Lambda's limit of 6 MiB, assuming at most two bytes of JSON per body byte.
	const maxBatchBytes = 5 << 19
	s, w := p.settings.now(), l.queue
	set := w.settings()
	tuning := tuningOf(s, set)

	opts := &worker.Options{
		Name: w.name, Concurrency: tuning.Concurrency,
		VisibilityTimeout: tuning.VisibilityTimeout, ErrorVisibilityTimeout: tuning.ErrorVisibilityTimeout,
		Backoff: tuning.Backoff, RespectRetryAfter: tuning.RespectRetryAfter, Retention: tuning.Retention,
		WaitTime: negativeIfZero(s.WaitTime), FIFO: w.fifo, UncountedReturns: w.embedded,
		DeleteLinger: negativeIfZero(s.DeleteLinger), Events: events, ProbeIdle: w.probeIdle(l.target.checked),
		Batch: worker.Batch{Size: set.BatchSize, Window: set.BatchWindow, Bytes: maxBatchBytes},
		Pool:  p.pool, Weight: set.Weight, MaxWait: set.MaxWait,
	}
	if w.embedded && !p.opts.Config.IsSet("delete-linger") {
		opts.DeleteLinger = -1 // calls are free here, and deleting at once avoids redeliveries after a crash
	}
	if held := sharesOf(p.opts.Memory).held; held > 0 {
		opts.HeldBytes = max(held/len(p.queues.all), 1)
	}
	if l.limiter != nil {
		opts.Limiter = l.limiter
	}
	return opts
}

func limitOptions(s *config.Settings, events *limit.Events) *limit.Options {
	opts := &limit.Options{Rate: s.Rate, Concurrency: s.HTTPConnections, Batch: s.BatchSize,
		Adaptive: s.AdaptiveConcurrency, Events: events}
	if s.Breaker > 0 {
		opts.Breaker = &limit.Breaker{FailureRatio: float64(s.Breaker) / 100, Window: s.BreakerWindow,
			Delay: s.BreakerDelay}
	}
	return opts
}

func (p *pipelines) runWorkers(context.Context) error {
	receive, stop := context.WithCancel(context.Background())
	deliveries, abort := context.WithCancel(context.Background())
	if p.pool != nil {
		p.openTogether(receive)
	}

	var running sync.WaitGroup
	errs := make([]error, len(p.all))
	for i, l := range p.all {
		running.Go(func() { errs[i] = l.worker.Run(receive, deliveries) })
	}

	p.life.onStop("the workers", func(ctx context.Context) error {
		defer abort()
		unregister := context.AfterFunc(ctx, abort)
		defer unregister()
		stop()
		running.Wait()
		for _, l := range p.all {
			l.target.close()
		}
		err := errors.Join(errs...)
		if err != nil {
			err = fmt.Errorf("%w: %w", cmp.Or(context.Cause(ctx), ErrLate), err)
		}
		p.life.finishDrain(err)
		return err
	})
	return nil
}

// openTogether opens the gates of all pipelines with the same external target at once, so that no queue of low weight
// briefly takes all capacity.
func (p *pipelines) openTogether(ctx context.Context) {
	waiting := map[string][]*pipeline{}
	for _, l := range p.inOrder() {
		if !l.queue.settings().ToOwnApp() {
			l.worker.Gate(false, "waiting for "+l.target.name+" to respond")
			key := l.queue.targetKey()
			waiting[key] = append(waiting[key], l)
		}
	}

	for _, lines := range waiting {
		go func() {
			if !lines[0].target.await(ctx, p.opts.Logger.Logger) {
				return
			}
			for _, l := range lines {
				l.worker.Gate(true, "")
			}
		}()
	}
}
