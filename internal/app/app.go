package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"tendril/api"
	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/delivery/deliver"
	"tendril/internal/observe/event"
	"tendril/internal/supervisor"
)

// Options configure an [App]. All fields are required, but for Bundle and Command.
type Options struct {
	Settings *config.Settings // those of the start
	// Bundle is the folder of the first version, nil for a command without a folder; Command the
	// app's program and arguments, empty when the bundle's Procfile says what to run.
	Bundle  *bundle.Bundle
	Command []string
	// Environ returns the environment of a process of a version, which listens at a port
	// unless that is 0; see [Environ].
	Environ func(b *bundle.Bundle, port int) []string
	Log     *slog.Logger
	// Output receives each line that a process, or a step of a deployment, writes.
	Output func(process, stream string, line []byte)
	// Counters count what happens to the processes; LinesDropped also reports it.
	Counters supervisor.Events
	Hurry    context.Context // makes every stop immediate when it is done
	Draining <-chan struct{} // is closed when the stop of the environment begins
	Ready    chan struct{}   // is closed when the app is ready for the first time
	// Changing holds one token: its holder may change versions, settings and tasks.
	Changing chan struct{}
	// Gate opens or closes the gates of the workers that deliver to the app; reason says
	// why they are closed.
	Gate func(open bool, reason string)
	// Failed ends the environment: the app failed too often, or was not ready in time.
	Failed func(error)
	// DrainTimeout returns how long a replica that is retired may finish its work.
	DrainTimeout func() time.Duration
	// Check refuses the bundle of a new version.
	Check func(*bundle.Bundle) error
	// Change reads the settings with the bundle of a new version, and says how they differ from
	// those in force. Apply puts them in force; newReplicas tells that they are for new
	// replicas, and that deliveries to the old ones go on as they are.
	Change func(*bundle.Bundle) (config.Change, error)
	Apply  func(c config.Change, newReplicas bool)
	// Facts keeps what get-config answers to the steps and processes of versions; nil for nothing.
	Facts Facts
	// ClaimCommands asks for the right to run the leader_only commands of a version, which all instances know by the
	// same text; nil when another instance has run them. It waits while another one does.
	ClaimCommands func(ctx context.Context, version string) (CommandClaim, error)
	// AdoptTasks puts the periodic tasks of a new version in force, which were checked.
	AdoptTasks func(context.Context, *bundle.Bundle)
}

// Facts keeps what get-config answers about each version, which its number names. Its methods are called one at a
// time, but for Environ.
type Facts interface {
	// Publish writes or replaces the answers about a version with these settings; nil for those in force.
	Publish(version int, b *bundle.Bundle, s *config.Settings) error
	// Serve makes them those that a person at a shell gets.
	Serve(version int) error
	Remove(version int) error
	// Environ returns env with what leads to them; asApp is true for a process of the app's user.
	Environ(env []string, version int, asApp bool) []string
}

// stopping reports whether the stop of the environment has begun.
func (o *Options) stopping() bool {
	select {
	case <-o.Draining:
		return true
	default:
		return false
	}
}

// App is the app that runs on this machine. The holder of the token of Changing calls the methods that deploy.
type App struct {
	opts        *Options
	steps       *stepRunner
	numbers     versionNumbers
	versions    keptVersions
	deployments deployments
	replicas    *replicaSet
	balancer    *balancer
	detector    *detector
	quarantine  *quarantine
	gate        *gate
	pid         *pidFile
	isSameApp   func(v, next version) bool
	factsMu     sync.Mutex // is held while facts are changed

	run        context.Context // done when the app is stopped for good
	endRun     context.CancelFunc
	background sync.WaitGroup
	first      int           // the version of the start
	startHooks chan struct{} // closed when the hooks after the first start have run
}

// New returns an app that is not started.
func New(opts *Options) *App {
	s, pid := opts.Settings, newPIDFile(opts.Settings.PIDFile, opts.Log)
	a := &App{opts: opts, pid: pid, startHooks: make(chan struct{}), detector: newDetector(opts.Log),
		balancer: newBalancer(s.Port, supervisor.FreePort)}
	a.gate = &gate{isOpen: a.balancer.isOpen, ready: opts.Ready, pass: func(open bool, reason string) {
		if !opts.stopping() {
			opts.Gate(open, reason)
		}
	}}
	a.balancer.changed = a.gate.change

	launcher := &supervised{opts: opts, detector: a.detector, pid: pid, gaveUp: a.gaveUp}
	a.isSameApp = launcher.isSameApp
	a.numbers.log = opts.Log
	a.versions.log = opts.Log
	if s.Console != config.Off || s.AnyEmbedded() {
		a.numbers.path, a.versions.path = filepath.Join(s.DataDir, versionFile), filepath.Join(s.DataDir, VersionsFile)
	}

	a.run, a.endRun = context.WithCancel(context.Background())
	a.steps = &stepRunner{opts: opts, begins: a.deployments.setStep, legacy: newLegacyPlatform(s)}
	a.replicas = newReplicaSet(a.balancer, launcher, replicaOptions{
		readyTimeout: s.DeployTimeout, drainTimeout: opts.DrainTimeout, stopTimeout: s.AppGrace + 10*time.Second,
		hurry: opts.Hurry, log: opts.Log,
		starting: func() { a.deployments.setState(api.DeployStarting) },
		switching: func() {
			opts.Apply(a.replicas.current().change, true)
			a.serveFacts(a.replicas.current())
			a.linkCurrent(a.replicas.current())
		},
		switched: func() {
			a.deployments.setState(api.DeployFinishing)
			pid.setOwner(a.replicas.now.Load().replicas[0])
			a.recordServing(a.replicas.current())
		},
		retired: func(v version) { a.removeFacts(v.facts) },
	})

	a.quarantine = &quarantine{replicas: a.replicas}
	return a
}

// Route returns what delivers the messages of one queue to the replicas. open returns
// connections to an address. On a FIFO queue the order within a message group counts.
func (a *App) Route(open func(address string) (*deliver.Client, error), fifo bool) *Route {
	return &Route{a.balancer, a.detector, a.quarantine, open, fifo}
}

// Start runs the steps of the first version, and starts so many replicas of it, at least 1, and
// its helpers. None of them need be ready when it returns. Stop must be called, also after an error.
func (a *App) Start(ctx context.Context, replicas int) error {
	a.versions.open()
	v := version{number: a.numbers.next(), bundle: a.opts.Bundle, command: a.opts.Command, origin: firstOrigin(a.opts)}
	if v.bundle != nil {
		v.read = readFiles(v.bundle.Dir)
	}

	a.first = v.number
	if err := a.publish(&v); err != nil {
		return err
	}
	a.serveFacts(v)
	if err := a.steps.run(ctx, v, beforeStart); err != nil {
		return err
	}
	v.recordFiles()
	a.linkCurrent(v) // before it may look there

	a.opts.Gate(false, "waiting for the app to be ready")
	a.background.Go(func() { a.quarantine.stopIdle(a.run) })
	if err := a.replicas.start(ctx, v, replicas); err != nil {
		return err
	}

	if a.opts.Settings.AppReadyTimeout > 0 {
		a.background.Go(a.watchReadiness)
	}
	a.background.Go(func() { a.afterFirstReady(v) })
	return nil
}

// Stop ends the app, and at the same time what the steps of its versions left running. They have their grace however
// late the deliveries ended: only Hurry cuts it short.
func (a *App) Stop(context.Context) error {
	a.endRun()
	a.background.Go(a.quarantine.stop)

	var stepsEnd sync.WaitGroup
	stepsEnd.Go(func() {
		a.awaitSteps()
		a.steps.stop()
	})
	err := a.replicas.stop(a.opts.Hurry)
	stepsEnd.Wait()
	return err
}

// awaitSteps waits until no hook runs any more, in whose place nothing may be left.
func (a *App) awaitSteps() {
	over := make(chan struct{})
	go func() { a.background.Wait(); close(over) }()
	for _, end := range []<-chan struct{}{over, a.opts.Changing} {
		select {
		case <-end:
		case <-a.opts.Hurry.Done():
		}
	}
}

// watchReadiness fails when the app is not ready in time the first time. Later, an app that
// is not ready only closes the gates.
func (a *App) watchReadiness() {
	select {
	case <-a.gate.ready:
	case <-a.opts.Draining:
	case <-time.After(a.opts.Settings.AppReadyTimeout):
		reason, _ := a.NotReady()
		if reason != "" {
			reason = " (" + reason + ")"
		}
		a.opts.Failed(fmt.Errorf("it was not ready within %s%s; see its output above, correct --healthcheck, or give it "+
			"longer with --app-ready-timeout", a.opts.Settings.AppReadyTimeout, reason))
	}
}

// afterFirstReady runs the hooks that follow the first start, unless the app became ready
// with a later version, which has its own.
func (a *App) afterFirstReady(v version) {
	defer close(a.startHooks)
	select {
	case <-a.gate.ready:
	case <-a.opts.Draining:
		return
	}
	if a.replicas.current().number == v.number {
		a.recordServing(v)
	}

	select { // no deployment's hooks run beside these
	case <-a.opts.Changing:
		defer func() { a.opts.Changing <- struct{}{} }()
	case <-a.run.Done():
		return
	}
	if a.replicas.current().number != v.number {
		return
	}
	if err := a.steps.run(a.run, v, afterStart); err != nil && a.run.Err() == nil {
		a.opts.Failed(err)
	}
}

// gaveUp fails when the app never came up. One that worked before is kept up: nothing is
// received, and the status says why. A version that is being deployed is rolled back.
func (a *App) gaveUp(r *replica, cause *supervisor.FailedError) {
	deployed := r != nil && r.version.number > max(a.replicas.current().number, a.first)
	ends := !a.gate.wasReady() && !deployed
	last := *cause
	if ends || deployed {
		last.RetryAfter = 0 // the environment, or the deployment, ends with it
	}
	if r != nil {
		r.giveUp(&last)
	}
	if ends {
		a.opts.Failed(&last)
		return
	}
	attrs := []any{"process", last.Process, "err", &last}
	if r != nil && !deployed {
		attrs = append(attrs, "hint", "replace it with 'tendril deploy'")
	}
	event.Health.Log(a.opts.Log, slog.LevelError, "process failed too often", attrs...)
}

// CurrentBundle is that of the version that serves; nil for a command without a folder.
func (a *App) CurrentBundle() *bundle.Bundle { return a.replicas.current().bundle }

// Version names the version that serves, for people.
func (a *App) Version() string { return a.replicas.current().String() }

// WasReady reports whether the app was ready at least once.
func (a *App) WasReady() bool { return a.gate.wasReady() }

// Forget drops what is known about a message that has left its queue.
func (a *App) Forget(id string) { a.detector.forget(id) }

// Poison counts the messages that crash the app.
func (a *App) Poison() PoisonStatus { return a.detector.poison() }

// StartHooks is closed when the hooks after the first start have run.
func (a *App) StartHooks() <-chan struct{} { return a.startHooks }

// NotReady returns why the first replica that is not ready is not, and when a replica was
// last ready; "" and zero where that is not known.
func (a *App) NotReady() (reason string, lastReady time.Time) {
	replicas, _ := a.replicas.status()
	for _, p := range replicas {
		if !p.Ready {
			reason = cmp.Or(reason, p.Reason)
		}
		if p.LastReady.After(lastReady) {
			lastReady = p.LastReady
		}
	}
	return reason, lastReady
}

// Serving describes the processes of the version that serves: its replicas and its helpers.
func (a *App) Serving() []supervisor.Status {
	replicas, helpers := a.replicas.status()
	return append(replicas, helpers...)
}

// Draining is the state of a process that finishes its work and takes no more.
const Draining supervisor.State = "draining"

// Processes describes all processes: those of [App.Serving], and before the helpers the replicas
// that finish their work, and the one for quarantined messages, which is meant to crash.
func (a *App) Processes() []supervisor.Status {
	replicas, helpers := a.replicas.status()
	for _, r := range a.replicas.draining() {
		for _, st := range r.processes.Status() {
			if st.State == supervisor.Running {
				st.State = Draining
			}
			replicas = append(replicas, st)
		}
	}
	if r := a.quarantine.running(); r != nil {
		replicas = append(replicas, r.processes.Status()...)
	}
	return append(replicas, helpers...)
}

// ReadyReplicas counts the replicas that serve and take requests.
func (a *App) ReadyReplicas() (n int) {
	for _, r := range a.replicas.now.Load().replicas {
		if ready, _ := r.isReady(); ready {
			n++
		}
	}
	return n
}

// Scaler returns what changes the number of replicas, until run is done.
func (a *App) Scaler(run context.Context) *Scaler {
	return &Scaler{size: a.replicas.size, ready: a.ReadyReplicas, scale: a.replicas.scale, log: a.opts.Log, run: run}
}
