package environment

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"tendril/api"
	"tendril/internal/config"
	"tendril/internal/console"
	"tendril/internal/delivery"
	"tendril/internal/observe/health"
)

// Environment is one worker environment: queues, a worker for each, an app, and the listeners around them.
type Environment struct {
	opts     *Options
	life     *lifecycle
	settings *settings

	queues   *queues
	work     *pipelines
	programs *programs
	changes  *changes
	cron     *schedule
	scale    *sizing
	observe  *observer
	instance *instance
	systemd  *serviceManager
}

// New builds an environment from checked settings. Nothing is opened yet.
func New(opts Options) *Environment {
	e := &Environment{opts: &opts, life: newLifecycle(), settings: newSettings(opts.Config)}
	e.queues = &queues{opts: e.opts, life: e.life, settings: e.settings}
	e.work = &pipelines{opts: e.opts, life: e.life, settings: e.settings, queues: e.queues}
	e.programs = &programs{opts: e.opts, life: e.life, settings: e.settings, queues: e.queues, work: e.work}
	e.programs.facts = &facts{opts: e.opts, life: e.life, settings: e.settings, queues: e.queues, programs: e.programs}
	e.instance = &instance{opts: e.opts, life: e.life, settings: e.settings, queues: e.queues, work: e.work,
		began: time.Now()}
	e.cron = &schedule{opts: e.opts, life: e.life, settings: e.settings, queues: e.queues, work: e.work,
		instance: e.instance}
	e.scale = &sizing{opts: e.opts, life: e.life, settings: e.settings, work: e.work, programs: e.programs, cron: e.cron}
	e.changes = &changes{opts: e.opts, life: e.life, settings: e.settings, work: e.work, programs: e.programs,
		cron: e.cron, changing: make(chan struct{}, 1)}
	e.changes.changing <- struct{}{}
	e.observe = e.newObserver()

	// What the others report to, or ask of each other.
	e.work.observe = e.observe
	e.cron.observe = e.observe
	e.scale.decided = e.observe.history.decided
	e.systemd = newServiceManager(e.opts, e.life, e.settings, e.work, func() bool {
		return e.opts.QueuesOnly || !slices.ContainsFunc(e.observe.monitor.Live(), func(c health.Check) bool { return !c.OK })
	})
	return e
}

func (e *Environment) newObserver() *observer {
	o := &observer{opts: e.opts, life: e.life, settings: e.settings, queues: e.queues, work: e.work,
		programs: e.programs, cron: e.cron, scale: e.scale, instance: e.instance, shown: console.NewDeliveries(10_000)}
	o.problems = &problems{opts: e.opts, settings: e.settings, queues: e.queues}
	o.history = newHistory(o)
	o.monitor = o.newMonitor(health.NewHost(e.settings.now().DataDir))
	o.curves = newCurves(o)
	return o
}

// Run starts the environment, waits until stop is done or a part fails, and stops it again. It stops gently,
// within Settings.ShutdownTimeout, or at once when now is done. A start that is not over by then is given up.
func (e *Environment) Run(stop, now context.Context) error {
	e.life.urgent = now
	running, ended := context.WithCancel(context.Background())
	var reports sync.WaitGroup
	reports.Go(func() { e.opts.Logger.ReportOmitted(running) })
	defer func() { ended(); reports.Wait(); e.observe.history.totals.reportStopped() }()

	go e.systemd.extendStart(running)
	err := e.life.unlessStopped(stop, now, e.Start)
	switch {
	case err == nil:
		go e.systemd.run(running)
		select {
		case <-stop.Done():
			e.observe.history.totals.reason = "signal"
		case <-now.Done():
			e.observe.history.totals.reason = "signal"
		case <-e.life.draining:
			e.observe.history.totals.reason = "drain asked for over the console"
		case err = <-e.life.fatal:
			e.observe.history.totals.reason = err.Error()
		}
	case errors.Is(err, errGivenUp):
		e.observe.history.totals.reason, err = err.Error(), nil
	default:
		e.observe.history.totals.reason = err.Error()
	}

	ctx, over := e.lastPhase(now)
	defer over()
	return errors.Join(err, e.Stop(ctx))
}

// lastPhase begins the stop: nothing says from now on that the service is up. The context
// bounds it, for the cause [ErrLate], or [ErrCutShort] when now is done before.
func (e *Environment) lastPhase(now context.Context) (context.Context, func()) {
	s := e.settings.now()
	e.life.beginDrain()
	e.systemd.systemd.Stopping()
	e.systemd.systemd.Extend(s.ShutdownTimeout + 2*s.AppGrace + systemMargin)
	ctx, cancel := context.WithTimeoutCause(context.Background(), s.ShutdownTimeout, ErrLate)
	ctx, cut := context.WithCancelCause(ctx)
	hurried := context.AfterFunc(now, func() { cut(ErrCutShort) })
	return ctx, func() { hurried(); cancel() }
}

// Start opens the queues and listeners, starts the app, and lets the worker run, whose gate the app's readiness
// opens. When it fails, Stop undoes what was done.
func (e *Environment) Start(ctx context.Context) error {
	for _, start := range e.startOrder() {
		if err := start(ctx); err != nil {
			return err
		}
	}
	close(e.life.started)
	return nil
}

// startOrder returns the steps of the start. A stop is the reverse.
func (e *Environment) startOrder() []func(context.Context) error {
	if e.opts.QueuesOnly {
		return []func(context.Context) error{
			e.observe.openTelemetry,        // before what it counts
			e.queues.takeOver,              // before the directory is opened
			e.openBroker,                   // fails where another environment has the data directory
			e.instance.claim,               // no other environment may use the data directory
			e.observe.history.totals.begin, // what the queues held before
			e.observe.history.open,         // the data directory is ours
			e.startConsole,                 // shows the rest of the start, and the whole stop
			e.instance.claimFiles,          // removed again when everything below has stopped
			e.queues.serveBroker,           // its address is in the URLs of the queues
			e.work.buildDepths,             // what metrics and curves read
			e.observe.curves.start,         // ends before what it reads
			e.observe.watchProblems,        // all queues are known
			e.announce,                     // now clients and the other commands may come
		}
	}
	return []func(context.Context) error{
		e.cron.read,                    // bad settings and a bad cron.yaml create nothing
		e.observe.openTelemetry,        // before what it counts, and ends after it
		e.buildApp,                     // a PID file that cannot be written creates nothing; before what asks for the app
		e.queues.takeOver,              // before the directory is opened
		e.openBroker,                   // fails where another environment has the data directory
		e.instance.claim,               // likewise
		e.observe.history.totals.begin, // what the queues held before
		e.observe.history.open,         // the data directory is ours; ends late, with the totals
		e.openPauses,                   // before what asks which tasks are paused
		e.programs.shareBundle,         // the app's user can read what was unpacked as root
		e.observe.startHealth,          // before the console that shows it
		e.startConsole,                 // shows the rest of the start, and the whole stop
		e.instance.claimFiles,          // removed again when everything below has stopped
		e.queues.serveBroker,           // its address is in the URLs of the queues
		e.openQueues,                   // what the workers receive from
		e.programs.facts.open,          // names the queues; read by what is started below
		e.openTargets,                  // what their messages go to, and point to
		e.work.buildWorkers,            // their gates exist before the app that opens them
		e.work.restorePauses,           // before anything is received
		e.work.buildDepths,             // what health, scaling and metrics read
		e.cron.build,                   // needs the queues
		e.scale.closeFleet,             // leaves its group after everything below has stopped
		e.scale.protectTask,            // likewise
		e.observe.watchProblems,        // which queues are received from is known
		e.observe.curves.start,         // shows the drain, and ends before what it reads
		e.announce,                     // now the other commands can follow the start of the app
		e.startApp,                     // stops after the workers, since deliveries need it
		e.work.runWorkers,              // stop after what produces messages; everything that asks other services comes later
		e.scale.chooseTarget,           // may ask where this process runs, which may take a while
		e.scale.openFleet,              // before the tasks, whose leader leads it
		e.cron.run,                     // need a queue that is worked on; wait a moment for their registry
		e.scale.runScaling,             // last to start and first to stop: nothing grows during a drain
	}
}

// Stop drains and stops everything in reverse order of the start. ctx bounds the drain: when it is done,
// deliveries are cut off, and the error wraps its cause. The app then has its grace, unless
// [Environment.Run] was told to hurry.
func (e *Environment) Stop(ctx context.Context) error {
	e.life.beginDrain()
	err := e.life.steps.unwind(ctx, e.opts.Logger.Logger)
	e.life.finishDrain(err) // where there was no worker to do it
	return err
}

// Hangup does what the signal HUP asks for: what changed in the settings and in the bundle's folder since they
// were read takes effect, and nothing is restarted that no change touches. It is an error that nothing changed.
func (e *Environment) Hangup() error {
	ctx, cancel := context.WithTimeout(context.Background(), api.MaxDeploy)
	defer cancel()
	if err := e.changes.awaitStart(ctx); err != nil {
		return err
	}
	defer e.systemd.reloading()()
	done, err := e.changes.reloadChanged(ctx)
	if err == nil && done.Unchanged != "" {
		return errors.New("nothing changed in " + done.Unchanged)
	}
	return err
}

func (e *Environment) openBroker(context.Context) error {
	if !e.opts.QueuesOnly && !e.settings.now().AnyEmbedded() {
		return nil
	}
	return e.queues.openBroker(e.observe.brokerEvents())
}

func (e *Environment) openPauses(context.Context) error {
	return e.work.openPauses(e.cron.file.Tasks)
}

func (e *Environment) openQueues(ctx context.Context) error {
	return e.queues.openAll(ctx, e.cron.file.Tasks)
}

func (e *Environment) buildApp(context.Context) error {
	e.programs.counters = e.observe.telemetry.Supervisor()
	e.programs.build(e.changes, e.cron)
	return nil
}

func (e *Environment) startApp(ctx context.Context) error {
	return e.programs.start(ctx, e.scale.startReplicas())
}

func (e *Environment) openTargets(ctx context.Context) error {
	s := e.settings.now()
	t := &targetOpener{opts: e.opts, life: e.life, settings: e.settings, observe: e.observe, programs: e.programs,
		account: func() delivery.RunAccount {
			if account := e.cron.tasks.Account(); account != nil {
				return account
			}
			return nil // while nothing is scheduled
		}}
	if s.PeriodicTrust == config.TrustRegistry {
		t.known = func(ctx context.Context, id, path string) (bool, error) { // the tasks are made later
			return e.cron.tasks.Known(ctx, id, path)
		}
	}
	if isFleet(s) || e.scale.inTask() {
		t.tracker = &e.scale.inFlight
	}
	e.work.targets = t
	return t.openBuckets(ctx)
}

// announce writes down where the environment answers, for the other commands,
// and tells the person who started it.
func (e *Environment) announce(context.Context) error {
	if err := e.instance.writeFiles(); err != nil {
		return err
	}
	close(e.life.announced)
	if e.opts.Announced != nil {
		e.opts.Announced()
	}
	e.instance.greet()
	return nil
}

// Quiet pauses every queue for a reason until the end of this process, or, where all are paused already, lets all go
// on; it reports whether they are paused now. The error says that there is no worker, or none yet.
func (e *Environment) Quiet(reason string) (paused bool, err error) { return e.work.quiet(reason) }
