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
	"tendril/internal/cron/leader"
	"tendril/internal/delivery"
	"tendril/internal/instances"
	"tendril/internal/observe/health"
)

// Environment is one worker environment.
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
	members  *members
	desired  *desired
	rollouts *rollouts
	observe  *observer
	instance *instance
	systemd  *serviceManager
}

// New builds an environment from validated settings without opening anything.
func New(opts Options) *Environment {
	e := &Environment{opts: &opts, life: newLifecycle(), settings: newSettings(opts.Config)}
	e.queues = &queues{opts: e.opts, life: e.life, settings: e.settings}
	e.work = &pipelines{opts: e.opts, life: e.life, settings: e.settings, queues: e.queues}
	e.programs = &programs{opts: e.opts, life: e.life, settings: e.settings, queues: e.queues, work: e.work}
	e.programs.facts = &facts{opts: e.opts, life: e.life, settings: e.settings, queues: e.queues, programs: e.programs}
	e.instance = &instance{opts: e.opts, life: e.life, settings: e.settings, queues: e.queues, work: e.work,
		began: time.Now(), program: api.ThisProgram()}
	e.cron = &schedule{opts: e.opts, life: e.life, settings: e.settings, queues: e.queues, work: e.work,
		instance: e.instance}
	e.scale = &sizing{opts: e.opts, life: e.life, settings: e.settings, work: e.work, programs: e.programs, cron: e.cron}
	e.changes = &changes{opts: e.opts, life: e.life, settings: e.settings, work: e.work, programs: e.programs,
		cron: e.cron, changing: make(chan struct{}, 1)}
	e.changes.changing <- struct{}{}
	e.changes.registry.Store(opts.Registry)
	e.observe = e.newObserver()

	e.members = &members{opts: e.opts, life: e.life, settings: e.settings, work: e.work, programs: e.programs,
		cron: e.cron, scale: e.scale, observe: e.observe, instance: e.instance}
	e.desired = &desired{opts: e.opts, settings: e.settings, queues: e.queues, work: e.work, cron: e.cron,
		members: e.members, changes: e.changes}
	e.desired.follower = instances.SettingsFollower{Name: leader.ProcessName(), Apply: e.desired.applySettings,
		Changed: e.desired.apply, Failed: e.desired.logUnread, Due: make(chan struct{}, 1)}
	e.rollouts = &rollouts{opts: e.opts, life: e.life, settings: e.settings, work: e.work, programs: e.programs,
		cron: e.cron, changes: e.changes, desired: e.desired}
	e.connectCycles()

	e.systemd = newServiceManager(e.opts, e.life, e.settings, e.work, func() bool {
		return e.opts.QueuesOnly || !slices.ContainsFunc(e.observe.monitor.Live(), func(c health.Check) bool { return !c.OK })
	})
	return e
}

func (e *Environment) connectCycles() {
	e.work.observe = e.observe
	e.cron.observe = e.observe
	e.cron.revision = e.desired.revision
	e.cron.announce = e.members.announcement
	e.scale.members = e.members
	e.scale.decided = e.observe.history.recordDecision
	e.changes.desired = e.desired
	e.changes.rollouts = e.rollouts
	e.observe.members = e.members
	e.members.desired = e.desired
	e.members.rollouts = e.rollouts
	e.desired.rollouts = e.rollouts
}

func (e *Environment) newObserver() *observer {
	o := &observer{opts: e.opts, life: e.life, settings: e.settings, queues: e.queues, work: e.work,
		programs: e.programs, cron: e.cron, scale: e.scale, instance: e.instance, shown: &console.Deliveries{}}
	o.problems = &problems{observer: o}
	o.history = newHistory(o)
	o.monitor = o.newMonitor(health.NewHost(e.settings.now().DataDir))
	o.curves = newCurves(o)
	return o
}

// Run starts the environment and waits until stop is done, a drain is requested, or a part fails. It then shuts down
// within Settings.ShutdownTimeout, or immediately once now is done. A stop also interrupts the startup.
func (e *Environment) Run(stop, now context.Context) error {
	e.life.urgent = now
	running, ended := context.WithCancel(context.Background())
	var reports sync.WaitGroup
	reports.Go(func() { e.opts.Logger.ReportOmitted(running) })
	totals := &e.observe.history.totals
	defer func() {
		ended()
		reports.Wait()
		totals.reportStopped()
	}()

	go e.systemd.extendStart(running)
	err := e.life.startUnlessStopped(stop, now, e.Start)
	switch {
	case err == nil:
		go e.systemd.run(running)
		e.instance.reportReady(running)
		totals.reason, err = e.awaitEnd(stop, now)
	case errors.As(err, new(*DesiredVersion)), errors.As(err, new(*NewSettings)):
		totals.again = true
		return errors.Join(err, e.Stop(now))
	case errors.Is(err, errStartAbandoned):
		totals.reason = err.Error()
		err = nil
	default:
		totals.reason = err.Error()
	}

	ctx, cancel := e.beginShutdown(now)
	defer cancel()
	return errors.Join(err, e.Stop(ctx))
}

func (e *Environment) awaitEnd(stop, now context.Context) (reason string, err error) {
	select {
	case <-stop.Done():
		return "signal", nil
	case <-now.Done():
		return "signal", nil
	case <-e.life.draining:
		return "drain requested in the console", nil
	case err := <-e.life.fatal:
		return err.Error(), err
	}
}

// beginShutdown stops reporting the service as up. The returned context's cause is [ErrLate] or, if hurry is done
// first, [ErrCutShort].
func (e *Environment) beginShutdown(hurry context.Context) (shutdown context.Context, over func()) {
	s := e.settings.now()
	e.life.beginDrain()
	// The grace period can pass twice: a deployment in progress stops its replicas before the app is stopped.
	e.systemd.stopping(s.ShutdownTimeout + 2*s.AppGrace + systemMargin)

	limited, cancel := context.WithTimeoutCause(context.Background(), s.ShutdownTimeout, ErrLate)
	shutdown, cutShort := context.WithCancelCause(limited)
	stopWatching := context.AfterFunc(hurry, func() { cutShort(ErrCutShort) })
	return shutdown, func() { stopWatching(); cancel() }
}

// Start runs the start steps. After an error, the caller must call Stop, which undoes the completed steps.
func (e *Environment) Start(ctx context.Context) error {
	for _, start := range e.startOrder() {
		if err := start(ctx); err != nil {
			return err
		}
	}
	close(e.life.started)
	return nil
}

func (e *Environment) startOrder() []func(context.Context) error {
	runHealth := e.life.startStep("the health", e.observe.monitor.Run)
	watchProblems := e.life.startStep("the check of stored messages", e.observe.problems.watch)
	recordCurves := e.life.startStep("the curves", e.observe.curves.recorder.Run)
	if e.opts.QueuesOnly {
		return []func(context.Context) error{
			func(context.Context) error { return e.opts.Validate() },
			e.observe.openTelemetry,
			e.queues.takeOver,
			e.openBroker,
			e.instance.claim,
			e.observe.history.totals.begin,
			e.observe.history.open,
			e.startConsole,
			e.instance.removeFilesOnStop,
			e.queues.serveBroker,
			e.work.buildDepths,
			recordCurves,  // stops before the parts it reads
			watchProblems, // needs all queues
			e.announce,    // clients and other commands can connect now
		}
	}
	return []func(context.Context) error{
		e.cron.read,                    // invalid settings or an invalid cron.yaml must leave nothing behind
		e.observe.openTelemetry,        // before anything counts events
		e.buildApp,                     // an unwritable PID file must leave nothing behind
		e.queues.takeOver,              // before the data directory is opened
		e.openBroker,                   // fails if another environment uses the data directory
		e.instance.claim,               // keeps other environments out of the data directory
		e.observe.history.totals.begin, // records the initial contents of the queues
		e.observe.history.open,         // needs the claimed data directory; stops late and records the totals
		e.openPauses,                   // before the schedule reads paused tasks
		e.programs.shareBundle,         // lets the app's user read files unpacked as root
		runHealth,                      // before the console that displays it; stops late, after it
		e.startConsole,                 // displays the rest of the startup and the whole shutdown
		e.instance.removeFilesOnStop,   // after everything below
		e.queues.serveBroker,           // queue URLs contain the listener's address
		e.openQueues,                   // workers receive from them
		e.programs.facts.open,          // needs the queues' names; processes started below read the files
		e.openTargets,                  // needs the queues
		e.work.buildWorkers,            // creates the workers' gates before the app that opens them
		e.work.restorePauses,           // before anything is received
		e.work.buildDepths,
		e.cron.build,             // needs the queues
		e.desired.adopt,          // before anything is received; may end this start for another one
		e.queues.warnOfConflicts, // with the settings that apply
		e.members.run,            // its stop leaves after everything below, so that other instances see the drain
		e.scale.closeFleetOnStop, // after everything below
		e.scale.protectTask,      // its stop removes the protection, after everything below
		watchProblems,            // needs all queues with workers
		recordCurves,             // charts show the drain; stops before the parts it reads
		e.announce,               // other commands can now follow the startup
		e.startApp,               // stops after the workers, since deliveries need it
		e.work.runWorkers,        // stops after all senders of messages
		e.scale.chooseTarget,     // may query AWS, which can be slow
		e.scale.openFleet,        // before the tasks, because their leader also leads the fleet
		e.cron.run,               // needs a queue with a worker; waits briefly for the registry
		e.scale.runScaling,       // starts last and stops first, so that nothing scales out during a drain
	}
}

// Stop stops everything in reverse start order. Once ctx is done, deliveries are canceled and the error wraps the
// context's cause.
func (e *Environment) Stop(ctx context.Context) error {
	e.life.beginDrain()
	err := e.life.stopAll(ctx, e.opts.Logger.Logger)
	e.life.finishDrain(err)
	return err
}

// Hangup handles SIGHUP: it applies changed settings and files. It returns an error if nothing changed.
func (e *Environment) Hangup() error {
	if e.opts.QueuesOnly {
		return errors.New("nothing to reload: this process only serves queues")
	}
	ctx, cancel := context.WithTimeout(context.Background(), api.MaxDeploy)
	defer cancel()
	if err := e.changes.awaitStart(ctx); err != nil {
		return err
	}
	endReloading := e.systemd.reloading()
	defer endReloading()
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
			return nil // before any tasks are scheduled
		}}
	if s.PeriodicTrust == config.TrustRegistry {
		t.known = func(ctx context.Context, id, path string) (bool, error) { // e.cron.tasks is created later
			return e.cron.tasks.Known(ctx, id, path)
		}
	}

	if mayScaleInstances(s) || e.scale.inTask() {
		t.tracker = &e.scale.inFlight
	}

	e.work.targets = t
	return t.openBuckets(ctx)
}

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

// Quiet pauses every queue until it is resumed or this process exits. It fails during startup and without workers.
func (e *Environment) Quiet(reason string) error { return e.work.quiet(reason) }

// TogglePause is like Quiet, but ends such a pause if it includes every queue. Other pauses stay in effect.
func (e *Environment) TogglePause(reason string) error { return e.work.togglePause(reason) }
