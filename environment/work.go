package environment

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tendril/deliver"
	"tendril/worker"
)

// buildWorker makes the worker and the way to the app.
func (e *Environment) buildWorker(context.Context) error {
	target := e.s.Target
	if target == "" {
		target = fmt.Sprintf("http://localhost:%d", e.s.Port)
	}
	codes, err := deliver.ParseStatusSet(e.s.SuccessCodes)
	if err != nil {
		return fmt.Errorf("success codes: %w", err)
	}
	opts := &deliver.HTTPOptions{
		Target: target, Path: e.s.HTTPPath, MimeType: e.s.MimeType, QueueName: e.work.queue.name,
		Connections: e.s.HTTPConnections, ConnectTimeout: e.s.ConnectTimeout, InactivityTimeout: e.s.InactivityTimeout,
		Deadline: e.s.Deadline, SuccessCodes: codes, HeaderBudget: int(e.s.HeaderBudget), Version: e.Version,
	}
	if !e.s.Keepalive {
		opts.KeepAlive = -1
	}
	app, err := deliver.NewHTTP(opts)
	if err != nil {
		return fmt.Errorf("the app's address: %w", err)
	}
	e.work.app = app
	e.work.target = strings.TrimSuffix(target, "/") + e.s.HTTPPath
	e.work.worker = worker.New(e.work.queue, &courier{e: e, app: app}, e.workerOptions())
	return nil
}

func (e *Environment) workerOptions() *worker.Options {
	return &worker.Options{
		Name: e.work.queue.name, Concurrency: e.s.HTTPConnections,
		VisibilityTimeout: zeroMeant(e.s.VisibilityTimeout), ErrorVisibilityTimeout: e.s.ErrorVisibilityTimeout,
		Backoff:           worker.Backoff{Min: e.s.BackoffMin, Max: e.s.BackoffMax, Doublings: e.s.BackoffDoublings, Jitter: float64(e.s.BackoffJitter) / 100},
		RespectRetryAfter: e.s.RespectRetryAfter, Retention: e.s.RetentionPeriod, WaitTime: zeroMeant(e.s.WaitTime),
		FIFO: e.work.queue.fifo, DeleteLinger: e.deleteLinger(), Events: e.workerEvents(e.work.queue.name, e.work.target),
	}
}

// deleteLinger: on Amazon SQS a delete waits for others, because each call
// costs money; on the embedded queue it does not unless somebody says so, which
// leaves less to be attempted again after a crash.
func (e *Environment) deleteLinger() time.Duration {
	if e.broker != nil && !e.Config.IsSet("delete-linger") {
		return -1
	}
	return zeroMeant(e.s.DeleteLinger)
}

// zeroMeant turns a 0 that somebody chose into what the parts take for it:
// their own zero means the default.
func zeroMeant(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// runWorker lets the worker run until the stop reaches it: then it drains, and
// is cut off when the time for that is over. It starts after the app, so that
// it stops before it: the app must live while deliveries finish.
func (e *Environment) runWorker(context.Context) error {
	receive, stop := context.WithCancel(context.Background())
	deliveries, abort := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- e.work.worker.Run(receive, deliveries) }()
	e.steps.push("the worker", func(ctx context.Context) error {
		defer abort()
		defer e.work.app.Close()
		defer context.AfterFunc(ctx, abort)()
		stop()
		err := <-result
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrLate, err)
		}
		e.finishDrain(err)
		return err
	})
	return nil
}
