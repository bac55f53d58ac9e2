package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tendril/app"
	"tendril/console"
	"tendril/supervisor"
)

// startApp does what the bundle wants done before, starts the copies of the app
// and its helpers, and lets the readiness of the copies open the workers' gates.
func (e *Environment) startApp(ctx context.Context) error {
	if !e.hasApp() {
		return nil
	}
	if err := e.openAppLogs(); err != nil {
		return err
	}
	var err error
	if e.pid, err = e.newPIDFile(); err != nil {
		return err
	}
	warnOfForeignBundle(e.Logger.Logger, e.Bundle, isMachineRoot())
	e.firstVersion = e.nextVersion()
	v := version{number: e.firstVersion, bundle: e.Bundle, command: e.Command}
	if v.bundle != nil {
		v.read = readFiles(v.bundle.Dir)
	}
	if err := e.runSteps(ctx, v, beforeStart); err != nil {
		return fmt.Errorf("%w: %w", ErrAppFailed, err)
	}
	v.look()
	e.app = app.NewManager(e.router, launcher{e}, e.rolloutOptions())
	e.gate(false, "waiting for the app to be ready")
	var endRun context.CancelFunc
	e.appRun, endRun = context.WithCancel(context.Background())
	var beside sync.WaitGroup
	e.steps.push("the app", func(context.Context) error {
		endRun()
		// The app has its grace however late the deliveries ended: only a hurry cuts it short.
		beside.Go(e.lone.stop)
		err := e.app.Stop(e.urgent)
		e.awaitSteps(e.urgent, &beside)
		return err
	})
	beside.Go(func() { e.lone.tidy(e.appRun) })
	if err := e.app.Start(ctx, v, e.s.ProcessesMin); err != nil {
		if taken := (*supervisor.PortError)(nil); errors.As(err, &taken) {
			return portConflict(err)
		}
		return fmt.Errorf("%w: %w", ErrAppFailed, err)
	}
	e.watchReadiness()
	beside.Go(func() { e.afterFirstReady(v) })
	return nil
}

// awaitSteps waits until no hook runs any more, in whose place nothing may be left.
func (e *Environment) awaitSteps(ctx context.Context, beside *sync.WaitGroup) {
	over := make(chan struct{})
	go func() {
		beside.Wait()
		close(over)
	}()
	for _, end := range []<-chan struct{}{over, e.deploying} {
		select {
		case <-end:
		case <-ctx.Done():
		}
	}
}

// afterFirstReady runs the hooks that follow the first start, unless the app became
// ready with a later version, which has its own.
func (e *Environment) afterFirstReady(v version) {
	defer close(e.welcomed)
	select {
	case <-e.ready:
	case <-e.draining:
		return
	}
	select { // no deployment's hooks run beside these
	case <-e.deploying:
		defer func() { e.deploying <- struct{}{} }()
	case <-e.appRun.Done():
		return
	}
	if e.app.Version().number != v.number {
		return
	}
	if err := e.runSteps(e.appRun, v, afterStart); err != nil && e.appRun.Err() == nil {
		e.fail(fmt.Errorf("%w: %w", ErrAppFailed, err))
	}
}

// appQueue is what programs of the user learn about the queue.
func (e *Environment) appQueue() appQueue {
	home := e.home()
	q := appQueue{region: home.settings().Region, url: home.queue.url, name: home.queue.name}
	if home.embedded {
		q.endpoint = e.endpoint
	}
	return q
}

// appGate passes the app's readiness on to the workers.
func (e *Environment) appGate(open bool, reason string) {
	e.gateMu.Lock()
	defer e.gateMu.Unlock()
	if e.gateTimer != nil {
		e.gateTimer.Stop()
		e.gateTimer = nil
	}
	switch {
	case open:
		e.passGate(true, "") // first: ready means that the workers may deliver, and health is judged then
		e.readyOnce.Do(func() { close(e.ready) })
	case !e.wasReady():
		e.passGate(false, reason)
	default:
		var timer *time.Timer
		timer = time.AfterFunc(briefly, func() {
			e.gateMu.Lock() // so that no opening comes between the question and the closing
			defer e.gateMu.Unlock()
			if open, reason := e.router.Open(); !open && e.gateTimer == timer {
				e.passGate(false, reason)
			}
		})
		e.gateTimer = timer
	}
}

func (e *Environment) passGate(open bool, reason string) {
	if !e.stopping() {
		e.gate(open, reason)
	}
}

// gate tells the workers that post to the app whether it is ready.
func (e *Environment) gate(open bool, reason string) {
	for _, l := range e.inOrder() {
		if l.settings().ToOwnApp() {
			l.worker.Gate(open, reason)
		}
	}
}

// wasReady reports whether the app was ready at least once.
func (e *Environment) wasReady() bool {
	select {
	case <-e.ready:
		return true
	default:
		return false
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
			reason, _ := e.notReady()
			if reason != "" {
				reason = " (" + reason + ")"
			}
			e.fail(fmt.Errorf("%w: it was not ready within %s%s; see its output above, correct --healthcheck, or give it "+
				"longer with --app-ready-timeout",
				ErrAppFailed, e.s.AppReadyTimeout, reason))
		}
	}()
}

// drainLimit is how long a copy of the app that is taken out of service may
// finish its work: as long as a delivery to it may take, but never so long that a
// deployment, which waits for it, outlasts its own limit. A delivery without a
// deadline may take any time, since each byte from the app begins its silence anew.
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

// notReady tells why the first copy of the app that is not ready is not, and when a
// copy was last seen ready; "" and zero where that is not known.
func (e *Environment) notReady() (reason string, lastReady time.Time) {
	for _, r := range e.app.Replicas() {
		c, ok := r.(*appCopy)
		if !ok {
			continue
		}
		for _, p := range c.app.Status() {
			if !p.Ready {
				reason = cmp.Or(reason, p.Reason)
			}
			if p.LastReady.After(lastReady) {
				lastReady = p.LastReady
			}
		}
	}
	return reason, lastReady
}
