package environment

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"tendril/app"
	"tendril/autoscale"
	"tendril/bundle"
	"tendril/config"
	"tendril/console"
	"tendril/delivery"
	"tendril/depth"
	"tendril/fleet"
	"tendril/health"
	"tendril/logging"
	"tendril/notify"
	"tendril/supervisor"
	"tendril/tasks"
	"tendril/telemetry"
)

// Options say what to build. Config and Logger are required.
type Options struct {
	// Config holds the settings in force, and who set them.
	Config *config.Config
	// Bundle is the folder that holds the app; nil when there is none.
	Bundle *bundle.Bundle
	// Command is the app's program and arguments; empty when the bundle's
	// Procfile or Settings.Target says where the app is.
	Command []string
	// Load reads the settings anew with another bundle, to check it before it is
	// deployed; nil for no check.
	Load func(*bundle.Bundle) (*config.Config, error)
	// QueuesOnly serves the embedded queues without worker and app.
	QueuesOnly bool
	// AppEnv is the environment that the app inherits, as NAME=value.
	AppEnv []string
	// Logger prints events, one line for each settled message, and the app's output.
	Logger *logging.Logger
	// Version is shown and sent in User-Agent.
	Version string
}

// Environment is one worker environment: queues, a worker for each, an app, and
// the listeners around them.
type Environment struct {
	Options
	*lifecycle
	pipelines
	servers *servers
	s       *config.Settings
	tuned   atomic.Pointer[config.Settings] // see inForce
	steps   *steps
	began   time.Time

	opener    targetOpener
	tasks     *tasks.Manager // nil with QueuesOnly
	cronFile  tasks.File     // as it was when the start began
	system    *notify.Systemd
	telemetry *telemetry.Telemetry
	otlp      *telemetry.OTLP       // nil when no collector is named
	app       *app.App              // nil when no app runs here
	appLogs   *supervisor.LogFolder // nil when no folder is named
	// changing holds one token: its holder may change the app's version, settings and tasks.
	changing    chan struct{}
	scaling     *autoscale.Loop
	fleet       *fleet.Fleet // nil for an instance on its own
	fleetTiming fleet.Timing
	wall        func() time.Time // for tests that do not wait; nil for the system's clock
	monitor     *health.Monitor
	depths      *depth.Counter
	inFlight    delivery.Tracker // empty where nothing protects what is in flight
	shown       *console.Deliveries
	address     string // at which this machine reaches the console; "" when off
	// instanceFile is what the other commands read.
	instanceFile struct {
		mu          sync.Mutex
		written     bool
		certificate string // the fingerprint of the console's; "" for plain HTTP
	}
	token string // the console's; "" when off

	// ready is closed when the app was ready for the first time.
	ready chan struct{}
}

// New builds an environment from checked settings. Nothing is opened yet.
func New(opts Options) *Environment {
	e := &Environment{
		Options:   opts,
		s:         &opts.Config.Settings,
		began:     time.Now(),
		shown:     console.NewDeliveries(deliveriesShown),
		lifecycle: newLifecycle(),
		steps:     new(steps),
		changing:  make(chan struct{}, 1),
		ready:     make(chan struct{}),
	}
	e.pipelines = newPipelines(opts.Config, opts.Logger, e.steps)
	e.servers = &servers{log: opts.Logger, steps: e.steps, fail: e.fail}
	e.changing <- struct{}{}
	e.system = notify.New(notify.Events{
		SendFailed: func(err error) {
			e.Logger.Warn("systemd not notified", "component", "environment", "err", err)
		},
		WatchdogSkipped: func(within time.Duration) {
			e.Logger.Error("process not responding, systemd will restart it", "component", "environment",
				"within_ms", within.Milliseconds())
		},
	})
	e.monitor = e.newMonitor(health.NewHost(e.s.DataDir))
	return e
}

// deliveriesShown is how many recent deliveries the console remembers.
const deliveriesShown = 10_000

// Run starts the environment, waits until stop is done or a part fails, and
// stops it again. It stops gently, within Settings.ShutdownTimeout, or at once
// when now is done. A start that is not over by then is given up.
func (e *Environment) Run(stop, now context.Context) error {
	e.urgent = now
	running, ended := context.WithCancel(context.Background())
	reported := make(chan struct{})
	go func() { e.Logger.ReportOmitted(running); close(reported) }()
	defer func() { ended(); <-reported }()
	go e.extendStart(running)
	if err := e.unlessStopped(stop, now, e.Start); err != nil {
		ctx, over := e.lastPhase(now)
		defer over()
		if errors.Is(err, errGivenUp) {
			err = nil
		}
		return errors.Join(err, e.Stop(ctx))
	}
	go e.notifySystemd(running)
	var failed error
	select {
	case <-stop.Done():
	case <-now.Done():
	case <-e.draining: // asked for over the console
	case failed = <-e.fatal:
	}
	ctx, over := e.lastPhase(now)
	defer over()
	return errors.Join(failed, e.Stop(ctx))
}

// lastPhase begins the stop: nothing says from now on that the service is up. The context
// bounds it, and has [ErrCutShort] for its cause when now is done before.
func (e *Environment) lastPhase(now context.Context) (context.Context, func()) {
	e.beginDrain()
	e.system.Stopping()
	e.system.Extend(e.s.ShutdownTimeout + 2*e.s.AppGrace + systemMargin)
	ctx, cancel := context.WithTimeout(context.Background(), e.s.ShutdownTimeout)
	ctx, cut := context.WithCancelCause(ctx)
	hurried := context.AfterFunc(now, func() { cut(ErrCutShort) })
	return ctx, func() { hurried(); cancel() }
}

// Start opens the queues and listeners, starts the app, and lets the worker
// run, whose gate the app's readiness opens. When it fails, Stop undoes what
// was done.
func (e *Environment) Start(ctx context.Context) error {
	parts := e.startOrder()
	for _, start := range parts {
		if err := start(ctx); err != nil {
			return err
		}
	}
	close(e.started)
	return nil
}

// startOrder returns the parts in the order in which they start. A stop is the reverse.
func (e *Environment) startOrder() []func(context.Context) error {
	if e.QueuesOnly {
		return []func(context.Context) error{
			e.openTelemetry, // before what it counts
			e.openBroker,
			e.claimData,    // no other environment may use the data directory
			e.startConsole, // shows the rest of the start, and the whole stop
			e.claimFiles,
			e.serveBroker,
			e.buildDepths, // what metrics read
			e.announce,    // now clients and the other commands may come
		}
	}
	return []func(context.Context) error{
		e.validate,      // bad settings create nothing
		e.readTasks,     // a bad cron.yaml creates nothing either
		e.openTelemetry, // before what it counts, and ends after it
		e.buildApp,      // a PID file that cannot be written creates nothing; before what asks for the app
		e.openBroker,    // fails where another environment has the data directory
		e.claimData,
		e.shareBundle,  // the app's user can read what was unpacked as root
		e.startHealth,  // before the console that shows it
		e.startConsole, // shows the rest of the start, and the whole stop
		e.claimFiles,   // removed again when everything below has stopped
		e.openQueues,   // what the workers receive from
		e.openTargets,  // what their messages go to, and point to
		e.buildWorkers, // their gates exist before the app that opens them
		e.buildDepths,  // what health, scaling and metrics read
		e.buildTasks,   // needs the queues
		e.openFleet,    // leaves its group after everything below has stopped
		e.protectTask,  // likewise
		e.announce,     // now the other commands can follow the start of the app
		e.startApp,     // stops after the workers, since deliveries need it
		e.runWorkers,   // stop after what produces messages
		e.runTasks,     // need a queue that is worked on
		e.countDepths,  // scaling waits for the first figures
		e.runScaling,   // last to start and first to stop: nothing grows during a drain
	}
}

// Stop drains and stops everything in reverse order of the start. ctx bounds
// the drain: when it is done, deliveries are cut off. The app then has its grace, unless
// [Environment.Run] was told to hurry. The error wraps [ErrLate] when that happened, or [ErrCutShort] where that is
// ctx's cause.
func (e *Environment) Stop(ctx context.Context) error {
	e.beginDrain()
	err := e.steps.unwind(ctx, e.Logger.Logger)
	e.finishDrain(err) // where there was no worker to do it
	return err
}
