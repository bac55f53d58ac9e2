package environment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tendril/bundle"
	"tendril/supervisor"
)

// hasApp reports whether tendril runs the app, rather than standing beside it.
func (e *Environment) hasApp() bool {
	return len(e.Command) > 0 || e.Bundle != nil && len(e.Bundle.Processes) > 0
}

// startApp starts the app's processes; their readiness opens the worker's gate.
func (e *Environment) startApp(ctx context.Context) error {
	if !e.hasApp() {
		return nil
	}
	procs, err := e.processes()
	if err != nil {
		return err
	}
	app, err := supervisor.New(procs, &supervisor.Options{
		Grace: max(e.s.AppGrace, time.Nanosecond), RestartLimit: restartLimit(e.s.RestartLimit), RestartWindow: e.s.RestartWindow,
		Output: e.report.app, Events: e.appEvents(),
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAppFailed, err)
	}
	e.app = app
	e.work.worker.Gate(false, "waiting for the app to be ready")
	if err := app.Start(ctx); err != nil {
		if taken := (*supervisor.PortError)(nil); errors.As(err, &taken) {
			return conflict(fmt.Errorf("%w with --port", err))
		}
		return fmt.Errorf("%w: %w", ErrAppFailed, err)
	}
	e.steps.push("the app", app.Stop)
	e.watchReadiness()
	return nil
}

// processes says what to run: a command, or the lines of the Procfile, of
// which web is the app that gets the messages.
func (e *Environment) processes() ([]supervisor.Process, error) {
	check := supervisor.Check{Port: e.s.Port}
	if e.s.Healthcheck != "" {
		var err error
		if check, err = supervisor.ParseCheck(e.s.Healthcheck); err != nil {
			return nil, err
		}
	}
	q := appQueue{endpoint: e.endpoint, region: e.s.Region, url: e.work.queue.url, name: e.work.queue.name}
	web := supervisor.Process{Name: bundle.MainProcess, Argv: e.Command, Port: e.s.Port, Check: check, Env: appEnvironment(e.AppEnv, e.s.Port, q)}
	if e.Bundle == nil {
		return []supervisor.Process{web}, nil
	}
	web.Dir = e.Bundle.Dir
	if len(e.Command) > 0 {
		return []supervisor.Process{web}, nil
	}
	if _, err := e.Bundle.Web(); err != nil {
		return nil, err
	}
	var procs []supervisor.Process
	for _, p := range e.Bundle.Processes {
		if p.Name == bundle.MainProcess {
			web.Shell = p.Command
			procs = append(procs, web)
			continue
		}
		procs = append(procs, supervisor.Process{Name: p.Name, Shell: p.Command, Dir: e.Bundle.Dir, Env: appEnvironment(e.AppEnv, 0, q)})
	}
	return procs, nil
}

// restartLimit: a chosen 0 means never, which the supervisor says as -1.
func restartLimit(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// appGate passes the app's readiness on to the worker.
func (e *Environment) appGate(g supervisor.Gate) {
	if g.Open {
		e.readyOnce.Do(func() { close(e.ready) })
	}
	if !e.stopping() {
		e.work.worker.Gate(g.Open, g.Reason)
	}
}

// watchReadiness fails the environment when the app is not ready in time the
// first time. Later, an app that is not ready only closes the gate.
func (e *Environment) watchReadiness() {
	if e.s.AppReadyTimeout == 0 {
		return
	}
	go func() {
		select {
		case <-e.ready:
		case <-e.draining:
		case <-time.After(e.s.AppReadyTimeout):
			e.fail(fmt.Errorf("%w: it was not ready within %s; see its output above, or give it longer with --app-ready-timeout", ErrAppFailed, e.s.AppReadyTimeout))
		}
	}()
}
