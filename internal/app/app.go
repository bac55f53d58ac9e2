package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"tendril/api"
	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/delivery/deliver"
	"tendril/internal/observe/event"
	"tendril/internal/supervisor"
)

// Options configure an [App]. Only Bundle, Command and Shared are optional.
type Options struct {
	Settings func() *config.Settings
	// Bundle may be nil. If Command is empty, the bundle defines the processes.
	Bundle  *bundle.Bundle
	Command []string
	Shared  SharedVersion
	Environ func(b *bundle.Bundle, port int) []string
	Log     *slog.Logger
	// Output receives each line written by a process or a deployment step.
	// It must be safe for concurrent use.
	Output   func(process, stream string, line []byte)
	Counters supervisor.Events
	Hurry    context.Context // once done, every stop is immediate
	Draining <-chan struct{} // closed when shutdown begins
	Ready    chan struct{}   // closed when the app is first ready
	// Changing holds one token. Changing versions, settings or tasks requires the token.
	Changing chan struct{}
	Gate     func(open bool, reason string)
	Failed   func(error)
	// DrainTimeout is how long a retired replica may take to finish its deliveries.
	DrainTimeout func() time.Duration
	Check        func(*bundle.Bundle) error
	// Change compares a new version's settings with the current ones. Apply applies the change; newReplicas means that
	// a new version's replicas are about to serve.
	Change func(*bundle.Bundle) (config.Change, error)
	Apply  func(c config.Change, newReplicas bool)
	Facts  Facts
	// ClaimCommands waits while another instance runs the version's leader_only commands. The claim is nil if they have
	// run. version must be the same on all instances.
	ClaimCommands func(ctx context.Context, version string) (CommandClaim, error)
	AdoptTasks    func(context.Context, *bundle.Bundle)
}

// Facts stores the values that get-config prints, by version number. Only Environ is safe for concurrent use.
type Facts interface {
	// If s is nil, Publish uses the current settings.
	Publish(version int, b *bundle.Bundle, s *config.Settings) error
	// Serve selects the version that get-config uses outside of steps and processes.
	Serve(version int) error
	Remove(version int) error
	// Environ returns env with the variables that select a version. asApp is true for processes of the app's user.
	Environ(env []string, version int, asApp bool) []string
}

func (o *Options) stopping() bool { return isClosed(o.Draining) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// App is the app on this machine. Methods that deploy require the Changing token.
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
	factsMu     sync.Mutex

	run        context.Context
	endRun     context.CancelFunc
	background sync.WaitGroup
	first      int // the first version's number
	startHooks chan struct{}
}

// New returns an app; [App.Start] starts it.
func New(opts *Options) *App {
	s := opts.Settings()
	pid := newPIDFile(s.PIDFile, opts.Log)
	a := &App{opts: opts, pid: pid, startHooks: make(chan struct{}), detector: newDetector(opts.Log),
		balancer: newBalancer(s.Port, supervisor.FreePort)}
	a.gate = &gate{isOpen: a.balancer.isOpen, ready: opts.Ready, pass: func(open bool, reason string) {
		if !opts.stopping() {
			opts.Gate(open, reason)
		}
	}}
	a.balancer.changed = a.gate.change

	launcher := &processLauncher{opts: opts, detector: a.detector, pid: pid, gaveUp: a.gaveUp}
	a.isSameApp = launcher.isSameApp
	a.numbers.log = opts.Log
	a.versions.log = opts.Log
	if s.Console != config.Off || s.AnyEmbedded() {
		a.numbers.path, a.versions.path = filepath.Join(s.DataDir, versionFile), filepath.Join(s.DataDir, VersionsFile)
	}

	a.run, a.endRun = context.WithCancel(context.Background())
	a.steps = &stepRunner{opts: opts, begins: a.deployments.setStep, legacy: newLegacyPlatform(s)}
	a.replicas = newReplicaSet(a.balancer, launcher, replicaOptions{
		readyTimeout: func() time.Duration { return opts.Settings().DeployTimeout }, drainTimeout: opts.DrainTimeout,
		stopTimeout: func() time.Duration { return opts.Settings().AppGrace + 10*time.Second },
		hurry:       opts.Hurry, log: opts.Log,
		starting:  func() { a.deployments.setState(api.DeployStarting) },
		switching: a.beforeSwitch,
		switched:  a.afterSwitch,
		restarted: a.updatePIDOwner,
		retired:   func(v version) { a.removeFacts(v.facts) },
	})

	a.quarantine = &quarantine{replicas: a.replicas}
	return a
}

func (a *App) beforeSwitch() {
	v := a.replicas.current()
	a.opts.Apply(v.change, true)
	a.serveFacts(v)
	a.linkCurrent(v)
}

func (a *App) afterSwitch() {
	a.deployments.setState(api.DeployFinishing)
	a.updatePIDOwner()
	a.recordServing(a.replicas.current())
}

func (a *App) updatePIDOwner() { a.pid.setOwner(a.replicas.now.Load().replicas[0]) }

// Route returns one queue's deliverer. open returns a client for an address. fifo keeps the messages of a group in
// order.
func (a *App) Route(open func(address string) (*deliver.Client, error), name string, fifo bool) *Route {
	return &Route{a.balancer, a.detector, a.quarantine, open, name, fifo}
}

// Start runs the first version's steps and starts the version, without waiting until it is ready. Stop must be called
// even after an error.
func (a *App) Start(ctx context.Context, replicas int) error {
	a.versions.open()
	v := version{number: a.numbers.next(), bundle: a.opts.Bundle, command: a.opts.Command, origin: firstOrigin(a.opts),
		shared: a.opts.Shared}
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
	a.linkCurrent(v) // hooks may use the link

	a.opts.Gate(false, "waiting for the app to be ready")
	a.background.Go(func() { a.quarantine.stopIdle(a.run) })
	if err := a.replicas.start(ctx, v, replicas); err != nil {
		return err
	}

	if a.opts.Settings().AppReadyTimeout > 0 {
		a.background.Go(a.watchReadiness)
	}
	a.background.Go(func() { a.afterFirstReady(v) })
	return nil
}

// Stop stops all processes, with the grace period unless Hurry is done.
func (a *App) Stop(context.Context) error {
	a.endRun()
	a.background.Go(a.quarantine.stop)

	var stepsEnd sync.WaitGroup
	stepsEnd.Go(func() {
		a.blockChanges()
		a.steps.stop()
	})
	err := a.replicas.stop()
	stepsEnd.Wait()
	return err
}

// blockChanges waits until no steps are running and takes the Changing token forever. It stops waiting once Hurry is
// done.
func (a *App) blockChanges() {
	backgroundEnded := make(chan struct{})
	go func() {
		a.background.Wait()
		close(backgroundEnded)
	}()

	for _, done := range []<-chan struct{}{backgroundEnded, a.opts.Changing} {
		select {
		case <-done:
		case <-a.opts.Hurry.Done():
		}
	}
}

// watchReadiness ends the environment if startup takes too long. If the app becomes unready later, receiving only
// pauses.
func (a *App) watchReadiness() {
	select {
	case <-a.gate.ready:
	case <-a.opts.Draining:
	case <-time.After(a.opts.Settings().AppReadyTimeout):
		reason, _ := a.NotReady()
		if reason != "" {
			reason = " (" + reason + ")"
		}
		a.opts.Failed(fmt.Errorf("not ready within %s%s; see its output above, correct --healthcheck, or increase "+
			"--app-ready-timeout", a.opts.Settings().AppReadyTimeout, reason))
	}
}

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

	select { // deployments must not run hooks at the same time
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

// gaveUp ends the environment if the app was never ready, unless the replica is being deployed: then only the
// deployment is rolled back. r is nil for a helper.
func (a *App) gaveUp(r *replica, cause *supervisor.FailedError) {
	isBeingDeployed := r != nil && r.version.number > max(a.replicas.current().number, a.first)
	endsEnvironment := !a.gate.wasReady() && !isBeingDeployed
	failure := *cause
	if endsEnvironment || isBeingDeployed {
		failure.RetryAfter = 0
	}
	if r != nil {
		r.giveUp(&failure)
	}

	if endsEnvironment {
		a.opts.Failed(&failure)
		return
	}

	attrs := []any{"process", failure.Process, "err", &failure}
	if r != nil && !isBeingDeployed {
		attrs = append(attrs, "hint", "replace it with 'tendril deploy'")
	}
	event.Health.Log(a.opts.Log, slog.LevelError, "process failed too often", attrs...)
}

// CurrentBundle returns the bundle of the serving version, or nil.
func (a *App) CurrentBundle() *bundle.Bundle { return a.replicas.current().bundle }

// Version describes the serving version.
func (a *App) Version() string { return a.replicas.current().String() }

// WasReady reports whether the app has ever been ready.
func (a *App) WasReady() bool { return a.gate.wasReady() }

// Forget discards the crash history of a message that has left its queue.
func (a *App) Forget(id string) { a.detector.forget(id) }

// Poison summarizes the messages that crash the app.
func (a *App) Poison() PoisonStatus { return a.detector.poison() }

// StartHooks returns a channel that is closed once the first version's postdeploy hooks have run or been skipped.
func (a *App) StartHooks() <-chan struct{} { return a.startHooks }

// NotReady returns why a serving replica is not ready, and when any of them was last ready; each may be zero.
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

// Serving returns the statuses of the serving replicas, then of the helpers.
func (a *App) Serving() []supervisor.Status {
	replicas, helpers := a.replicas.status()
	return append(replicas, helpers...)
}

// Draining processes finish their deliveries and get no new ones.
const Draining supervisor.State = "draining"

// Processes returns the statuses of the serving and draining replicas, the replica for quarantined messages and the
// helpers, but not of replicas that are being started.
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

// Role returns the role of a process: [api.RoleRetired], [api.RoleQuarantine] or "".
func (a *App) Role(process string) string {
	isNamed := func(r *replica) bool { return r.name() == process }
	if slices.ContainsFunc(a.replicas.draining(), isNamed) {
		return api.RoleRetired
	}
	if r := a.quarantine.running(); r != nil && isNamed(r) {
		return api.RoleQuarantine
	}
	return ""
}

// ReadyReplicas returns the number of serving replicas that accept requests.
func (a *App) ReadyReplicas() (n int) {
	for _, r := range a.replicas.now.Load().replicas {
		if ready, _ := r.isReady(); ready {
			n++
		}
	}
	return n
}

// Scaler returns a scaler of the replicas. Once run is done, the scaler changes nothing.
func (a *App) Scaler(run context.Context) *Scaler {
	return &Scaler{size: a.replicas.size, ready: a.ReadyReplicas, scale: a.replicas.scale, log: a.opts.Log, run: run}
}
