package environment

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"tendril/aws"
	"tendril/broker"
	"tendril/bundle"
	"tendril/config"
	"tendril/console"
	"tendril/deliver"
	"tendril/supervisor"
	"tendril/worker"
)

// Options say what to build. Config, Out and Logger are required.
type Options struct {
	// Config holds the settings in force, and who set them.
	Config *config.Config
	// Bundle is the folder that holds the app; nil when there is none.
	Bundle *bundle.Bundle
	// Command is the app's program and arguments; empty when the bundle's
	// Procfile or Settings.Target says where the app is.
	Command []string
	// QueuesOnly serves the embedded queues without worker and app.
	QueuesOnly bool
	// AppEnv is the environment that the app inherits, as NAME=value.
	AppEnv []string
	// Out gets the lines for people or machines: the start, one line for each
	// settled message, and the app's output.
	Out io.Writer
	// Terminal says that Out is read by a person at a terminal.
	Terminal bool
	// Color allows colours in Out.
	Color bool
	// Logger gets everything else, one line per event.
	Logger *slog.Logger
	// Version is shown and sent in User-Agent.
	Version string
}

// Environment is one worker environment: a queue, a worker, an app, and the
// listeners around them.
type Environment struct {
	Options
	s      *config.Settings
	report *report
	steps  steps
	began  time.Time

	broker   *broker.Broker // nil on Amazon SQS
	sqs      *aws.SQS       // nil with the embedded queue
	endpoint string         // of the embedded queue; "" on Amazon SQS
	work     *work          // nil with QueuesOnly
	tasks    *tasks         // nil when there are no periodic tasks
	// known reports whether the registry knows a run; nil where there is none.
	known   func(ctx context.Context, fireID string) (bool, error)
	app     *supervisor.Supervisor
	shown   *console.Deliveries
	address string // the console's; "" when off
	token   string // the console's; "" when off

	// started is closed when the start is over; ready when the app was ready
	// for the first time.
	started, ready chan struct{}
	readyOnce      sync.Once
	// fatal takes the first reason to end that is not a stop: an app that
	// failed too often, a listener that broke.
	fatal chan error
	// draining is closed when a stop begins; drained when no message is in work
	// any more, with the outcome in drainErr.
	draining, drained chan struct{}
	drainOnce         sync.Once
	drainErr          error
}

// work is the queue that the worker works on and the worker itself.
type work struct {
	queue  queueRef
	app    *deliver.HTTP
	worker *worker.Worker
	target string
}

// New builds an environment from checked settings. Nothing is opened yet.
func New(opts Options) *Environment {
	return &Environment{
		Options:  opts,
		s:        &opts.Config.Settings,
		report:   newReport(opts.Out, opts.Logger, opts.Terminal, opts.Color, opts.Config.Quiet),
		began:    time.Now(),
		shown:    console.NewDeliveries(deliveriesShown),
		fatal:    make(chan error, 1),
		started:  make(chan struct{}),
		ready:    make(chan struct{}),
		draining: make(chan struct{}),
		drained:  make(chan struct{}),
	}
}

// deliveriesShown is how many recent deliveries the console remembers.
const deliveriesShown = 10_000

// Run starts the environment, waits until stop is done or a part fails, and
// stops it again. It stops gently, within Settings.ShutdownTimeout, or at once
// when now is done.
func (e *Environment) Run(stop, now context.Context) error {
	if err := e.Start(now); err != nil {
		ctx, cancel := context.WithTimeout(context.Background(), e.s.ShutdownTimeout)
		defer cancel()
		return errors.Join(err, e.Stop(ctx))
	}
	var failed error
	select {
	case <-stop.Done():
	case <-now.Done():
	case <-e.draining: // asked for over the console
	case failed = <-e.fatal:
	}
	ctx, cancel := context.WithTimeout(context.Background(), e.s.ShutdownTimeout)
	defer cancel()
	defer context.AfterFunc(now, cancel)()
	return errors.Join(failed, e.Stop(ctx))
}

// Start opens the queues and listeners, starts the app, and lets the worker
// run, whose gate the app's readiness opens. When it fails, Stop undoes what
// was done.
func (e *Environment) Start(ctx context.Context) error {
	parts := []func(context.Context) error{e.openBroker, e.startConsole, e.claimFiles, e.openQueue, e.buildWorker, e.buildTasks, e.announce, e.startApp, e.runWorker, e.runTasks}
	if e.QueuesOnly {
		parts = []func(context.Context) error{e.openBroker, e.startConsole, e.claimFiles, e.serveBroker, e.announce}
	}
	for _, start := range parts {
		if err := start(ctx); err != nil {
			return err
		}
	}
	close(e.started)
	return nil
}

// Stop drains and stops everything in reverse order of the start. ctx bounds
// it: when it is done, deliveries are cut off and the app is killed. The error
// wraps [ErrLate] when that happened.
func (e *Environment) Stop(ctx context.Context) error {
	e.beginDrain()
	err := e.steps.unwind(ctx, e.Logger)
	e.finishDrain(err) // where there was no worker to do it
	return err
}

// beginDrain makes the environment end, once.
func (e *Environment) beginDrain() {
	e.drainOnce.Do(func() { close(e.draining) })
}

// finishDrain tells those who wait that no message is in work any more.
func (e *Environment) finishDrain(err error) {
	select {
	case <-e.drained:
	default:
		e.drainErr = err
		close(e.drained)
	}
}

// Drain makes Run end and waits until every delivery is settled, or ctx is done.
func (e *Environment) Drain(ctx context.Context) error {
	e.beginDrain()
	select {
	case <-e.drained:
		return e.drainErr
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fail ends the environment for a reason; the first one counts.
func (e *Environment) fail(err error) {
	select {
	case e.fatal <- err:
	default:
	}
}
