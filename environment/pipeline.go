package environment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"tendril/config"
	"tendril/worker"
)

// line is the way of one queue's messages: the queue, the worker, and what the
// worker hands them to.
type line struct {
	set      atomic.Pointer[config.QueueSettings]
	queue    queueRef
	embedded bool // else on Amazon SQS
	worker   *worker.Worker
	// target names what the messages go to, as it was at the start: metrics go by
	// it. Of an app over HTTP base is the part before the path.
	target, base string
	// route leads to the copies of the app that run here; nil for other targets.
	route *route
	// renew lets deliveries that begin from now on go by new settings; nil where
	// none of them count.
	renew func()
	// probe asks whether the target takes messages.
	probe func(context.Context) error
	// checked tells that probe is a health check, and no bare connection.
	checked bool
	// forTask tells that the queue was made because a periodic task names it.
	forTask bool
	// close drops the connections to the target.
	close func()
}

func newLine(set *config.QueueSettings) *line {
	l := &line{embedded: set.Backend == config.BackendEmbedded}
	l.set.Store(set)
	return l
}

// settings are those in force for the queue. They must not be changed.
func (l *line) settings() *config.QueueSettings { return l.set.Load() }

// goesTo names what the messages go to now, for people, logs and metrics: without
// the query of the path, which may hold a secret.
func (l *line) goesTo() string {
	if l.base == "" {
		return l.target
	}
	path, _, _ := strings.Cut(l.settings().HTTPPath, "?")
	return l.base + path
}

// home is the line of the queue that was named first: periodic tasks go there,
// and the app learns its URL. It is nil in a process that only serves queues.
func (e *Environment) home() *line {
	if len(e.lines) == 0 {
		return nil
	}
	return e.lines[0]
}

// buildWorkers makes the workers and their ways to the app or the functions.
func (e *Environment) buildWorkers(ctx context.Context) error {
	if len(e.lines) > 1 || e.s.Sleep > 0 {
		e.pool = worker.NewPool(&worker.PoolOptions{Concurrency: e.s.HTTPConnections, Sleep: e.s.Sleep})
	}
	for _, l := range e.inOrder() {
		c := &courier{e: e, viaSNS: l.settings().ViaSNS}
		if err := e.openTarget(ctx, l, c); err != nil {
			return err
		}
		var d worker.Deliverer = c
		if l.settings().ToFunction() {
			d = batchCourier{c}
		}
		if isFleet(e.s) || e.inTask() {
			d = e.inFlight.track(d)
		}
		l.probe = c.Probe
		l.worker = worker.New(l.queue, d, e.workerOptions(l))
	}
	return nil
}

// targetKey is the same for lines that deliver to the same place.
func (l *line) targetKey() string {
	return l.settings().Target + "\n" + l.settings().Function + "\n" + l.settings().Lambda
}

// inOrder returns the lines as they join the pool, which is their strict order:
// the queues that only periodic tasks use come first, since their messages are
// few and due.
func (e *Environment) inOrder() []*line {
	list := slices.Clone(e.lines)
	slices.SortStableFunc(list, func(a, b *line) int {
		switch {
		case a.forTask == b.forTask:
			return 0
		case a.forTask:
			return -1
		}
		return 1
	})
	return list
}

func (e *Environment) workerOptions(l *line) *worker.Options {
	tuning := e.tuning(l)
	return &worker.Options{
		Name: l.queue.name, Concurrency: tuning.Concurrency,
		VisibilityTimeout: zeroMeant(l.settings().VisibilityTimeout), ErrorVisibilityTimeout: tuning.ErrorVisibilityTimeout,
		Backoff: tuning.Backoff, RespectRetryAfter: tuning.RespectRetryAfter, Retention: tuning.Retention,
		WaitTime: zeroMeant(e.s.WaitTime),
		FIFO:     l.queue.fifo, UncountedReturns: l.embedded, DeleteLinger: e.deleteLinger(l),
		Events:    counted(e.workerEvents(l), e.telemetry.Worker(l.queue.name, l.target)),
		ProbeIdle: l.probeIdle(),
		Batch:     worker.Batch{Size: l.settings().BatchSize, Window: l.settings().BatchWindow, Bytes: maxBatchBytes},
		Pool:      e.pool, Weight: l.settings().Weight, MaxWait: l.settings().MaxWait, Limiter: e.limiter(l),
	}
}

// maxBatchBytes keeps the event of a batch below what Lambda takes, 6 MiB, as
// long as no more than two bytes of JSON stand for one of a body.
const maxBatchBytes = 5 << 19

// How long a target has to be idle before it is probed: with a health check, that
// exists to be asked, and with a bare connection, of which some servers log each.
const (
	checkIdle   = 5 * time.Second
	connectIdle = 10 * time.Second
)

// probeIdle is when the worker probes an idle target. The supervisor watches the app
// that runs here. A function of AWS Lambda is started by its messages: a probe
// would be a paid call that tells nothing of the next.
func (l *line) probeIdle() time.Duration {
	switch {
	case l.settings().ToOwnApp() || l.settings().Function != "":
		return 0
	case l.checked:
		return checkIdle
	}
	return connectIdle
}

// deleteLinger: on Amazon SQS a delete waits for others, because each call
// costs money; on the embedded queue it does not unless somebody says so, which
// leaves less to be attempted again after a crash.
func (e *Environment) deleteLinger(l *line) time.Duration {
	if l.embedded && !e.Config.IsSet("delete-linger") {
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

// runWorkers lets the workers run until the stop reaches them: then they drain,
// and are cut off when the time for that is over. They start after the app, so
// that they stop before it: the app must live while deliveries finish.
func (e *Environment) runWorkers(context.Context) error {
	receive, stop := context.WithCancel(context.Background())
	deliveries, abort := context.WithCancel(context.Background())
	result := make(chan error, len(e.lines))
	if e.pool != nil {
		e.openTogether(receive)
	}
	for _, l := range e.lines {
		go func() { result <- l.worker.Run(receive, deliveries) }()
	}
	e.steps.push("the workers", func(ctx context.Context) error {
		defer abort()
		defer context.AfterFunc(ctx, abort)()
		stop()
		var errs []error
		for range e.lines {
			errs = append(errs, <-result)
		}
		for _, l := range e.lines {
			l.close()
		}
		err := errors.Join(errs...)
		if err != nil {
			err = fmt.Errorf("%w: %w", cutBy(ctx), err)
		}
		e.finishDrain(err)
		return err
	})
	return nil
}

// openTogether finds out when each target that others run takes messages, and
// then opens the gates of all its lines at once: were each worker to find out by
// itself, a queue of little weight might have everything for a moment.
func (e *Environment) openTogether(ctx context.Context) {
	waiting := map[string][]*line{}
	for _, l := range e.inOrder() {
		if !l.settings().ToOwnApp() {
			l.worker.Gate(false, "waiting for "+l.target+" to answer")
			waiting[l.targetKey()] = append(waiting[l.targetKey()], l)
		}
	}
	for _, lines := range waiting {
		go func() {
			if !awaitProbe(ctx, lines[0], e.report) {
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

// awaitProbe returns true when the target answers, false when ctx ends first. It
// tells what is wrong once for each reason.
func awaitProbe(ctx context.Context, l *line, r *report) bool {
	said := ""
	for pause := firstProbePause; ; pause = min(2*pause, longestProbePause) {
		err := l.probe(ctx)
		switch {
		case err == nil:
			return true
		case ctx.Err() != nil:
			return false
		case err.Error() != said:
			said = err.Error()
			r.note(slog.LevelWarn, "worker", fmt.Sprintf("%s does not answer: %s", l.target, said),
				slog.String("target", l.target))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
	}
}
