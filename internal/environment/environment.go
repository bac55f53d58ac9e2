package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"tendril/internal/app"
	"tendril/internal/aws"
	"tendril/internal/config"
	"tendril/internal/console"
	"tendril/internal/cron/periodic"
	"tendril/internal/cron/tasks"
	"tendril/internal/delivery"
	"tendril/internal/observe/health"
	"tendril/internal/observe/telemetry"
	"tendril/internal/supervisor"
	"tendril/internal/worker"
)

// Environment is one worker environment: queues, a worker for each, an app, and the listeners around them.
type Environment struct {
	*core
	*pipelines
	*changes // of the app and the tasks
	*sizing
	instance  *instance
	systemd   *serviceManager
	programs  *programs
	targets   *targetOpener
	monitor   *health.Monitor
	curves    *curves
	problems  *problems
	shown     *console.Deliveries // recent ones
	history   *history
	telemetry *telemetry.Telemetry
	otlp      *telemetry.OTLP  // nil when no collector is named
	cronFile  tasks.File       // as it was when the start began
	wall      func() time.Time // for tests that do not wait; nil for the system's clock
}

// New builds an environment from checked settings. Nothing is opened yet.
func New(opts Options) *Environment {
	c := &core{Options: opts, lifecycle: newLifecycle(), s: &opts.Config.Settings}
	q := &pipelines{queues: queues{core: c}}
	e := &Environment{
		core: c, pipelines: q, changes: &changes{pipelines: q, changing: make(chan struct{}, 1)},
		sizing: &sizing{pipelines: q}, programs: &programs{pipelines: q},
		instance: &instance{pipelines: q, began: time.Now()}, shown: console.NewDeliveries(10_000),
	}
	e.problems = &problems{pipelines: q}
	e.history = newHistory(q, e.shown)
	e.sizing.decided = e.history.decided
	e.changing <- struct{}{}
	e.changes.facts = newFacts(e.programs)
	e.systemd = newServiceManager(q, func() bool {
		return e.QueuesOnly || !slices.ContainsFunc(e.monitor.Live(), func(c health.Check) bool { return !c.OK })
	})
	e.monitor = e.newMonitor(health.NewHost(c.s.DataDir))
	e.curves = newCurves(e)
	return e
}

// Run starts the environment, waits until stop is done or a part fails, and stops it again. It stops gently,
// within Settings.ShutdownTimeout, or at once when now is done. A start that is not over by then is given up.
func (e *Environment) Run(stop, now context.Context) error {
	e.urgent = now
	running, ended := context.WithCancel(context.Background())
	var reports sync.WaitGroup
	reports.Go(func() { e.Logger.ReportOmitted(running) })
	defer func() { ended(); reports.Wait(); e.history.reportStopped() }()
	go e.systemd.extendStart(running)
	err := e.unlessStopped(stop, now, e.Start)
	switch {
	case err == nil:
		go e.systemd.run(running)
		select {
		case <-stop.Done():
			e.history.reason = "signal"
		case <-now.Done():
			e.history.reason = "signal"
		case <-e.draining:
			e.history.reason = "drain asked for over the console"
		case err = <-e.fatal:
			e.history.reason = err.Error()
		}
	case errors.Is(err, errGivenUp):
		e.history.reason, err = err.Error(), nil
	default:
		e.history.reason = err.Error()
	}
	ctx, over := e.lastPhase(now)
	defer over()
	return errors.Join(err, e.Stop(ctx))
}

// lastPhase begins the stop: nothing says from now on that the service is up. The context
// bounds it, for the cause [ErrLate], or [ErrCutShort] when now is done before.
func (e *Environment) lastPhase(now context.Context) (context.Context, func()) {
	e.beginDrain()
	e.systemd.Stopping()
	e.systemd.Extend(e.s.ShutdownTimeout + 2*e.s.AppGrace + systemMargin)
	ctx, cancel := context.WithTimeoutCause(context.Background(), e.s.ShutdownTimeout, ErrLate)
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
	close(e.started)
	return nil
}

// startOrder returns the parts in the order in which they start. A stop is the reverse.
func (e *Environment) startOrder() []func(context.Context) error {
	if e.QueuesOnly {
		return []func(context.Context) error{
			e.openTelemetry, // before what it counts
			e.takeOver,      // before the directory is opened
			e.openBroker,
			e.instance.claim,      // no other environment may use the data directory
			e.history.beginTotals, // what the queues held before
			e.history.open,        // the data directory is ours
			e.startConsole,        // shows the rest of the start, and the whole stop
			e.instance.claimFiles,
			e.serveBroker,
			e.buildDepths, // what metrics and curves read
			e.curves.start,
			e.watchProblems,
			e.announce, // now clients and the other commands may come
		}
	}
	return []func(context.Context) error{
		e.checkFiles,          // bad settings and a bad cron.yaml create nothing
		e.openTelemetry,       // before what it counts, and ends after it
		e.buildApp,            // a PID file that cannot be written creates nothing; before what asks for the app
		e.takeOver,            // before the directory is opened
		e.openBroker,          // fails where another environment has the data directory
		e.instance.claim,      // likewise
		e.history.beginTotals, // what the queues held before
		e.history.open,        // the data directory is ours; ends late, with the totals
		e.openPauses,          // before what asks which tasks are paused
		e.shareBundle,         // the app's user can read what was unpacked as root
		e.startHealth,         // before the console that shows it
		e.startConsole,        // shows the rest of the start, and the whole stop
		e.instance.claimFiles, // removed again when everything below has stopped
		e.serveBroker,         // its address is in the URLs of the queues
		e.openQueues,          // what the workers receive from
		e.facts.open,          // names the queues; read by what is started below
		e.openTargets,         // what their messages go to, and point to
		e.buildWorkers,        // their gates exist before the app that opens them
		e.restorePauses,       // before anything is received
		e.buildDepths,         // what health, scaling and metrics read
		e.buildTasks,          // needs the queues
		e.closeFleet,          // leaves its group after everything below has stopped
		e.protectTask,         // likewise
		e.watchProblems,       // which queues are received from is known
		e.curves.start,        // shows the drain, and ends before what it reads
		e.announce,            // now the other commands can follow the start of the app
		e.startApp,            // stops after the workers, since deliveries need it
		e.runWorkers,          // stop after what produces messages; everything that asks other services comes later
		e.chooseTarget,        // may ask where this process runs, which may take a while
		e.openFleet,           // before the tasks, whose leader leads it
		e.runTasks,            // need a queue that is worked on; wait a moment for their registry
		e.runScaling,          // last to start and first to stop: nothing grows during a drain
	}
}

// Stop drains and stops everything in reverse order of the start. ctx bounds the drain: when it is done,
// deliveries are cut off, and the error wraps its cause. The app then has its grace, unless
// [Environment.Run] was told to hurry.
func (e *Environment) Stop(ctx context.Context) error {
	e.beginDrain()
	err := e.steps.unwind(ctx, e.Logger.Logger)
	e.finishDrain(err) // where there was no worker to do it
	return err
}

// Hangup does what the signal HUP asks for: what changed in the settings and in the bundle's folder since they
// were read takes effect, and nothing is restarted that no change touches. It is an error that nothing changed.
func (e *Environment) Hangup() error {
	ctx, cancel := context.WithTimeout(context.Background(), console.MaxDeploy)
	defer cancel()
	if err := e.awaitStart(ctx); err != nil {
		return err
	}
	defer e.systemd.reloading()()
	done, err := e.reloadChanged(ctx)
	if err == nil && done.Unchanged != "" {
		return errors.New("nothing changed in " + done.Unchanged)
	}
	return err
}

// openPauses lets pauses be kept where the data directory is this environment's.
func (e *Environment) openPauses(context.Context) error {
	if !e.ownsDataDir() {
		return nil
	}
	var queues, named []string
	for _, set := range e.s.Queues {
		queues = append(queues, set.Name)
	}
	if e.cronFile.Tasks != nil {
		for _, t := range e.cronFile.Tasks.Tasks {
			named = append(named, t.Name)
		}
	}
	e.pauses = openPauses(filepath.Join(e.s.DataDir, pausedFile), queues, named, e.Logger.Logger)
	return nil
}

func (e *Environment) restorePauses(context.Context) error {
	if e.pauses != nil {
		e.pauses.restore(e.lines, e.Logger.Logger)
	}
	return nil
}

func (e *Environment) checkFiles(context.Context) (err error) {
	if err := e.Validate(); err != nil {
		return err
	}
	e.cronFile, err = tasks.Open(e.CronFile(), e.Logger.With("component", "periodic"))
	return err
}

func (e *Environment) openTelemetry(ctx context.Context) (err error) {
	e.otlp, err = telemetry.OpenOTLP(ctx, &telemetry.OTLPOptions{Version: e.Version, Service: e.s.Name,
		Logger: e.Logger.Logger})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	if e.otlp != nil {
		e.steps.push("the telemetry collector", e.otlp.Close)
	}
	cloud, err := e.openCloudWatch(ctx, e.publicHealth)
	e.telemetry = telemetry.New(&telemetry.Options{
		Version: e.Version, CloudWatch: cloud, OTLP: e.otlp, Logger: e.Logger.Logger, Sources: metricSources(e),
	})
	return err
}

func metricSources(e *Environment) telemetry.Sources {
	sources := telemetry.Sources{
		Workers: e.workerReadings, Queues: e.queueReadings, Limits: e.limitReadings, Leader: e.leads,
		Certificates: func() []telemetry.Certificate { return certificateReadings(e.certificates(e.inForce())) },
		Processes: func() []supervisor.Status {
			if !e.running() || e.app == nil {
				return nil
			}
			return e.app.Processes()
		},
		Tasks: func() []periodic.TaskStatus {
			if !e.running() || e.tasks == nil {
				return nil
			}
			return e.tasks.Readings()
		},
	}
	if !e.QueuesOnly { // else nothing is scaled
		sources.Desired = func() int { return e.scale().Desired }
	}
	return sources
}

func (e *Environment) publicHealth() telemetry.Health {
	r := e.monitor.Report()
	return telemetry.Health{Green: r.Color == health.Green, Code: r.Status.Code(),
		Periodic: e.running() && e.tasks.Any(), Leads: e.leads()}
}

func (e *Environment) leads() bool { return e.running() && e.tasks != nil && e.tasks.Leading() }

func (e *Environment) newMonitor(host *health.Host) *health.Monitor {
	return health.NewMonitor(health.Options{
		Began: e.instance.began, StartLimit: e.s.AppReadyTimeout, Started: e.started, AppReady: e.ready,
		Draining: e.draining, Host: host, IgnoreClientErrors: e.s.HealthIgnoreClientErrors, Queues: e.queueStates,
		Problems: e.problems.texts,
		App:      func() (health.AppState, bool) { return appState(e.app, e.s.DeployTimeout) },
		Leader: func() health.LeaderState {
			if !e.running() || !e.tasks.Any() {
				return health.LeaderState{Known: true} // none is needed
			}
			return leaderState(e.tasks)
		},
		Tasks: func() []health.TaskState {
			if !e.running() || e.tasks == nil {
				return nil
			}
			return taskStates(e.tasks.Status().Tasks)
		},
		Scaling: func() string {
			if !e.running() || e.sizing == nil {
				return ""
			}
			return e.heldScaleIn()
		},
		DataDir: e.instance.dataDir,
		Log:     e.Logger.With("component", "health"),
	})
}

func (e *Environment) watchProblems(context.Context) error {
	e.steps.background("the look at stored messages", e.problems.watch)
	return nil
}

// startHealth judges until the stop is nearly over: the console shows the drain.
func (e *Environment) startHealth(context.Context) error {
	e.steps.background("the health", e.monitor.Run)
	return nil
}

func (e *Environment) buildApp(context.Context) error {
	e.programs.counters = e.telemetry.Supervisor()
	if !e.HasApp() {
		return nil
	}
	counters := *e.programs.counters
	counters.LinesDropped = e.programs.linesDropped
	e.app = app.New(&app.Options{
		Settings: e.s, Bundle: e.Bundle, Command: e.Command, Environ: e.programs.environ,
		Log: e.Logger.With("component", "app"), Output: e.programs.output, Counters: counters,
		Hurry: e.urgent, Draining: e.draining, Ready: e.ready, Changing: e.changing, Gate: e.gate,
		Failed:       func(err error) { e.fail(fmt.Errorf("%w: %w", ErrAppFailed, err)) },
		DrainTimeout: e.drainLimit, Check: e.checkVersion, Change: e.change, Apply: e.tune, Facts: e.facts,
		AdoptTasks: e.adoptTasks, ClaimVersion: e.claimVersion,
	})
	e.replicas = e.app
	return nil
}

func (e *Environment) startApp(ctx context.Context) error {
	if e.app == nil {
		return nil
	}
	if err := e.programs.openLogs(); err != nil {
		return err
	}
	warnOfRoot(e.Logger.Logger, e.s, e.Bundle, isMachineRoot())
	e.steps.push("the app", e.app.Stop)
	err := e.app.Start(ctx, e.startReplicas())
	if taken := (*supervisor.PortError)(nil); errors.As(err, &taken) {
		return portConflict(err)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAppFailed, err)
	}
	return nil
}

func (e *Environment) openBroker(context.Context) error {
	if !e.QueuesOnly && !e.s.AnyEmbedded() {
		return nil
	}
	events := e.brokerEvents(e.telemetry.Broker(), e.monitor, func(id string) {
		if e.app != nil {
			e.app.Forget(id)
		}
	})
	dead, expired := events.DeadLettered, events.Expired
	events.DeadLettered = func(from, to string, ids []string) {
		dead(from, to, ids)
		e.history.lost.add(deadText, from, to, "", len(ids))
	}
	events.Expired = func(name string, n int) {
		expired(name, n)
		e.history.lost.add(expiredText, name, "", "", n)
	}
	return e.queues.openBroker(events)
}

// shareBundle lets the app's user into the bundle where that was unpacked here.
func (e *Environment) shareBundle(context.Context) error {
	if e.Bundle == nil {
		return nil
	}
	if err := app.Share(e.s, e.Bundle.Dir, true); err != nil {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	return nil
}

func (e *Environment) openQueues(ctx context.Context) error {
	return e.openAll(ctx, e.cronFile.Tasks)
}

func (e *Environment) openTargets(ctx context.Context) error {
	e.targets = &targetOpener{
		pipelines: e.pipelines, telemetry: e.telemetry, otlp: e.otlp, app: e.app, start: e.programs.startFunction,
		shown: e.shown,
		account: func() delivery.RunAccount {
			if account := e.tasks.Account(); account != nil {
				return account
			}
			return nil // while nothing is scheduled
		},
	}
	if e.s.PeriodicTrust == config.TrustRegistry {
		e.targets.known = func(ctx context.Context, id, path string) (bool, error) { // the tasks are made later
			return e.tasks.Known(ctx, id, path)
		}
	}
	if isFleet(e.s) || e.inTask() {
		e.targets.tracker = &e.inFlight
	}
	return e.targets.openBuckets(ctx)
}

func (e *Environment) buildWorkers(ctx context.Context) error {
	return e.pipelines.buildWorkers(func(l *pipeline) (worker.Deliverer, *worker.Events, error) {
		d, err := e.targets.open(ctx, l)
		if l.embedded {
			l.record = e.broker.RecordAttempt
		}
		return d, worker.JoinEvents(e.workerEvents(l, e.monitor, &e.history.failed), e.telemetry.Worker(l.name, l.target),
			&worker.Events{Settled: func(s worker.Settled) { e.history.settled(l, &s) },
				DeadLettered: func(s worker.DeadLettered) {
					if s.Err != nil {
						return
					}
					if e.app != nil {
						e.app.Forget(s.ID)
					}
					if l.embedded { // on Amazon SQS it was noted with its last attempt
						e.history.lost.add(deadText, l.name, deadLetterQueue(e.pipelines, l), s.Reason, 1)
					}
				},
				Expired: func(worker.Expired) { e.history.lost.add(expiredText, l.name, "", "", 1) }}), err
	})
}

func (e *Environment) buildTasks(ctx context.Context) error {
	home := e.home()
	onSQS, _ := home.Queue.(*aws.Queue)
	at := tasks.RegistryOptions{
		Queue: home.name, QueueURL: home.url, SQS: e.sqs, Home: onSQS, Local: e.s.Leader == config.LeaderLocal,
		Token:    cmp.Or(e.s.RegistryToken, tasks.SharedToken(e.stateFolder(), home.url)),
		Insecure: e.s.RegistryInsecure,
		Table:    e.s.RegistryTable, Region: e.s.Region, Create: e.s.RegistryCreate,
		Tags: aws.Tags(e.s.Name), SDK: e.Logger.SDK,
	}
	if home.embedded {
		at.Broker = e.broker
	}
	opts := tasks.Options{
		File: e.cronFile, Required: e.s.Cron != "", Registry: at, Lease: e.s.Lease, Address: e.instance.address,
		HasWorker: func(queue string) bool { return e.lineOf(queue) != nil },
		Observers: tasks.Observers{Scheduler: *e.telemetry.Periodic(), Leader: *e.telemetry.Leader(),
			Reloaded: e.telemetry.Reloaded},
		Stopping: e.draining, Wall: e.wall, Log: e.Logger.Logger,
	}
	if e.pauses != nil {
		opts.Pauses, opts.HistoryFile = e.pauses, filepath.Join(e.s.DataDir, tasks.HistoryFile)
	}
	e.tasks = tasks.New(opts)
	e.steps.background("the task history", e.tasks.KeepHistory) // until the workers have stopped
	e.election = e.tasks.Election()
	return e.tasks.Open(ctx, e.s.PeriodicTrust == config.TrustRegistry)
}

func (e *Environment) runTasks(ctx context.Context) error {
	e.tasks.Start(ctx)
	e.steps.push("the periodic tasks", e.tasks.Stop)
	return nil
}

// announce writes down where the environment answers, for the other commands,
// and tells the person who started it.
func (e *Environment) announce(context.Context) error {
	if err := e.instance.writeFiles(); err != nil {
		return err
	}
	close(e.announced)
	if e.Announced != nil {
		e.Announced()
	}
	e.instance.greet()
	return nil
}
