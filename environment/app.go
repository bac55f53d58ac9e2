package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"tendril/app"
	"tendril/bundle"
	"tendril/config"
	"tendril/console"
	"tendril/supervisor"
	"tendril/tasks"
)

// buildApp makes the app that runs here, where there is one.
func (e *Environment) buildApp(context.Context) error {
	if !e.hasApp() {
		return nil
	}
	counters := *e.telemetry.Supervisor()
	counters.LinesDropped = e.linesDropped
	e.app = app.New(&app.Options{
		Settings: e.s, Bundle: e.Bundle, Command: e.Command, Environ: e.processEnviron,
		Log: e.Logger.With("component", "app"), Output: e.appOutput, Counters: counters,
		Hurry: e.urgent, Draining: e.draining, Ready: e.ready, Changing: e.changing, Gate: e.gate,
		Failed:       func(err error) { e.fail(fmt.Errorf("%w: %w", ErrAppFailed, err)) },
		DrainTimeout: e.drainLimit, Check: e.checkVersion, Change: e.change, Apply: e.tune, AdoptTasks: e.adoptTasks,
	})
	return nil
}

// startApp starts the app, whose readiness opens the workers' gates.
func (e *Environment) startApp(ctx context.Context) error {
	if e.app == nil {
		return nil
	}
	if err := e.openAppLogs(); err != nil {
		return err
	}
	warnOfForeignBundle(e.Logger.Logger, e.Bundle, isMachineRoot())
	e.steps.push("the app", e.app.Stop)
	err := e.app.Start(ctx)
	if taken := (*supervisor.PortError)(nil); errors.As(err, &taken) {
		return portConflict(err)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAppFailed, err)
	}
	return nil
}

// gate tells the workers that deliver to the app whether it is ready.
func (e *Environment) gate(open bool, reason string) {
	for _, l := range e.inOrder() {
		if l.settings().ToOwnApp() {
			l.worker.Gate(open, reason)
		}
	}
}

// appQueue is what programs of the user learn about the queue.
func (e *Environment) appQueue() app.Queue {
	home := e.home()
	q := app.Queue{Region: home.settings().Region, URL: home.queue.url, Name: home.queue.name}
	if home.embedded {
		q.Endpoint = e.endpoint
	}
	return q
}

// processEnviron is the environment of a process of the user, which listens at a port unless
// that is 0.
func (e *Environment) processEnviron(b *bundle.Bundle, port int) []string {
	return app.Environ(e.AppEnv, b, e.linkedURL, port, e.appQueue())
}

// linkedURL returns the URL of the queue that a link of env.yaml means; "" for that of
// another environment, which is not known here.
func (e *Environment) linkedURL(link bundle.Link) string {
	var names []string
	for _, l := range e.lines {
		names = append(names, l.queue.name)
	}
	if l := e.lineOf(linkedQueue(e.s, names, link.Environment)); l != nil {
		return l.queue.url
	}
	return ""
}

// openAppLogs opens the folder of the app's log files, where one is named.
func (e *Environment) openAppLogs() error {
	if e.s.AppLogDir == "" || e.appLogs != nil {
		return nil
	}
	logs, err := supervisor.NewLogFolder(e.s.AppLogDir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	e.appLogs = logs
	e.steps.push("the app's log files", func(context.Context) error { return logs.Close() })
	return nil
}

// appOutput takes one line of the output of the app or of a function: to the log, and to
// the files of the log folder where there is one.
func (e *Environment) appOutput(process, stream string, line []byte) {
	if e.appLogs != nil {
		e.appLogs.Line(process, stream, line)
	}
	e.Logger.AppOutput(process, stream, line)
}

// linesDropped reports lost output of the app or of a function.
func (e *Environment) linesDropped(d supervisor.LinesDropped) {
	e.telemetry.Supervisor().LinesDropped(d)
	e.Logger.Warn("output lines dropped", "component", "app", "process", d.Process, "lines", d.Lines,
		"hint", "the process writes faster than its lines can be printed")
}

// checkVersion refuses the bundle of a new version that must not be run, or whose periodic
// tasks cannot be put in force.
func (e *Environment) checkVersion(b *bundle.Bundle) error {
	if err := refuseForeignBundle(b, isMachineRoot()); err != nil {
		return err
	}
	warnOfForeignBundle(e.Logger.Logger, b, isMachineRoot())
	if b.Cron == "" || e.s.Cron != "" {
		return nil
	}
	file, err := tasks.Read(b.Cron)
	if err != nil {
		return err
	}
	return e.tasks.CheckQueues(file)
}

// change reads all settings again and says how they differ from those in force; b is
// nil where there is no bundle.
func (e *Environment) change(b *bundle.Bundle) (config.Change, error) {
	if e.Load == nil {
		return config.Change{}, nil
	}
	if b != nil && e.Bundle != nil {
		same := *b // the environment has its name, whatever the folder of a version
		same.Called = cmp.Or(e.Bundle.Called, filepath.Base(e.Bundle.Dir))
		b = &same
	}
	cfg, err := e.Load(b)
	if err != nil {
		return config.Change{}, err
	}
	e.logNotApplied(cfg, b)
	change := config.Changed(e.inForce(), cfg)
	if !e.connectionsLive() {
		keepConnections(&change, e.inForce())
	}
	return change, nil
}

// drainLimit is how long a replica of the app that is retired may finish its work: as long
// as a delivery to it may take, but never so long that a deployment, which waits for it,
// outlasts its own limit. A delivery without a deadline may take any time, since each
// byte from the app begins its silence anew.
func (e *Environment) drainLimit() time.Duration {
	const most = console.MaxDeploy - time.Minute
	longest := time.Duration(0)
	for _, l := range e.lines {
		if set := l.settings(); set.ToOwnApp() {
			longest = max(longest, cmp.Or(set.Deadline, most))
		}
	}
	return max(min(longest, most), e.s.ShutdownTimeout, time.Second)
}
