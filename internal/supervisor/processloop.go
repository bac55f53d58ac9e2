package supervisor

import (
	"cmp"
	"context"
	"sync"
	"syscall"
	"time"
)

type processLoop struct {
	proc *Process
	opts *Options
	// sys and out are set by Supervisor.Start. out may be nil.
	sys             *system
	out             *output
	stop, kill      context.Context
	firstStart      chan error
	restartRequests chan chan<- error
	gate            func()

	// Only the loop's goroutine uses the fields up to mu.
	failures          []time.Time
	onTrial           bool
	restart           chan<- error
	requestedRestarts int

	mu     sync.Mutex
	status Status
}

type system struct {
	start  func(*Process, *output) (*child, error)
	probe  func(context.Context, Check) error
	taken  func(port int) bool
	random func() float64
	close  func()
}

func (l *processLoop) run() {
	if l.out != nil {
		defer l.out.close()
	}

	for life := 1; ; life++ {
		c, err := l.start(life)
		if life == 1 {
			l.firstStart <- err
			if err != nil {
				l.enter(Stopped, func(s *Status) { s.Reason = err.Error() })
				return
			}
		}
		l.answerRestart(err)

		var exit Exit
		if err == nil {
			exit = l.watch(c)
			l.reportExit(c.pid, exit)
		} else {
			exit = Exit{Code: -1, Err: err, At: time.Now()}
			if !l.stopping() {
				l.reportExit(0, exit)
			}
		}

		restartRequested := l.restart != nil
		if l.stopping() || !restartRequested && !l.awaitNextRun(exit, life) {
			l.enter(Stopped, nil)
			return
		}
	}
}

func (l *processLoop) reportExit(pid int, exit Exit) {
	l.update(func(s *Status) {
		s.PID = 0
		s.LastExit = &exit
		s.Reason = l.proc.Name + ": " + exit.String()
	})
	callIfSet(l.opts.Events.Exited, Exited{Process: l.proc.Name, PID: pid, Exit: exit, Restart: l.restart != nil})
}

func (l *processLoop) answerRestart(err error) {
	if l.restart != nil {
		l.restart <- err
		l.restart = nil
		l.failures = nil
		l.onTrial = false
	}
}

func (l *processLoop) requestRestart(ctx context.Context, ended <-chan struct{}) error {
	started := make(chan error, 1)
	select {
	case l.restartRequests <- started:
	case <-ctx.Done():
		return ctx.Err()
	case <-ended:
		return errStopped
	}
	select {
	case err := <-started:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-ended:
		return errStopped
	}
}

func (l *processLoop) start(life int) (*child, error) {
	if l.restart != nil {
		l.requestedRestarts++
	}
	l.enter(Starting, func(s *Status) { s.Restarts = life - 1 - l.requestedRestarts })
	if err := awaitPort(l.stop, l.proc, l.sys.taken); err != nil {
		return nil, err
	}
	c, err := l.sys.start(l.proc, l.out)
	if err != nil {
		return nil, err
	}
	l.enter(Running, func(s *Status) { s.PID = c.pid })
	callIfSet(l.opts.Events.Started, Started{Process: l.proc.Name, PID: c.pid})
	return c, nil
}

func (l *processLoop) watch(c *child) Exit {
	began := time.Now()
	isRequested := l.awaitExitOrRequest(c)
	var killAt <-chan time.Time
	killed := false
	if isRequested {
		killAt = l.terminate(c, "")
		killed = l.awaitEnd(c, killAt)
	}

	at := time.Now()
	leftDescendants := !isRequested && !c.group.empty()
	callIfSet(l.opts.Events.Ended, Ended{Process: l.proc.Name, PID: c.pid})
	if leftDescendants {
		killAt = l.terminate(c, "processes that it started are still running")
	}
	if killed {
		awaitEmpty(c.group)
	} else {
		l.awaitDescendants(c, killAt)
	}

	exit := c.group.reap()
	exit.At, exit.Ran = at, at.Sub(began)
	l.explainEarly(&exit, leftDescendants)
	return exit
}

func (l *processLoop) explainEarly(exit *Exit, leftDescendants bool) {
	if exit.Ran >= earlyExit {
		return
	}
	if exit.Code > 0 {
		exit.Missing = l.proc.missingFile(exit.Code)
	}
	exit.Daemonized = leftDescendants && exit.succeeded()
}

func (l *processLoop) awaitExitOrRequest(c *child) (isRequested bool) {
	stopProbing := l.beginProbing(c)
	reason := l.proc.Name + " exited"
	select {
	case <-c.exited:
	case <-l.stop.Done():
		reason, isRequested = l.proc.Name+" is being stopped", true
	case l.restart = <-l.restartRequests:
		reason, isRequested = l.proc.Name+" is being restarted", true
	}
	stopProbing()
	l.update(func(s *Status) {
		if s.Ready {
			s.LastReady = time.Now()
		}
	})
	l.becomeUnready(reason)
	return isRequested
}

const (
	survivorInterval = 50 * time.Millisecond
	// The kernel needs a moment to kill, and cannot end a process while a disk hangs.
	killWait = 5 * time.Second
)

// terminate also sends SIGCONT, so that a suspended process handles SIGTERM.
func (l *processLoop) terminate(c *child, reason string) (killAt <-chan time.Time) {
	l.enter(Ending, func(s *Status) { s.Reason = cmp.Or(reason, s.Reason) })
	c.group.signal(syscall.SIGTERM)
	c.group.signal(syscall.SIGCONT)
	return time.After(l.opts.Grace)
}

func (l *processLoop) awaitEnd(c *child, killAt <-chan time.Time) (killed bool) {
	select {
	case <-c.exited:
		return false
	case <-killAt:
		l.killGroup(c, "it did not exit within "+l.opts.Grace.String())
	case <-l.kill.Done():
		l.killGroup(c, "the stop did not wait for it")
	}
	<-c.exited
	return true
}

func (l *processLoop) awaitDescendants(c *child, killAt <-chan time.Time) {
	for !c.group.empty() {
		select {
		case <-time.After(survivorInterval):
			continue
		case <-killAt:
			l.killGroup(c, "processes that it started did not exit within "+l.opts.Grace.String())
		case <-l.kill.Done():
			l.killGroup(c, "the stop could not wait for processes that it started")
		}
		awaitEmpty(c.group)
		return
	}
}

func (l *processLoop) killGroup(c *child, reason string) {
	c.group.signal(syscall.SIGKILL)
	callIfSet(l.opts.Events.Killed, Killed{Process: l.proc.Name, PID: c.pid, Reason: reason})
}

func awaitEmpty(g emptier) {
	for deadline := time.Now().Add(killWait); !g.empty() && time.Now().Before(deadline); {
		time.Sleep(survivorInterval / 10)
	}
}

// awaitNextRun returns false if the process must not be started again.
func (l *processLoop) awaitNextRun(exit Exit, life int) bool {
	event := Restarting{Process: l.proc.Name, Delay: l.opts.RestartMin, Failures: len(l.failures),
		Limit: l.opts.RestartLimit}
	if exit.Err == nil && l.opts.Excused != nil && l.opts.Excused(l.proc.Name, exit) {
		event.Excused = true
		return l.awaitDelay(event)
	}
	if l.proc.MayFinish && exit.succeeded() {
		l.enter(Finished, nil)
		return l.awaitRestart(nil)
	}

	var tooOften bool
	l.failures, event.Delay, tooOften = l.opts.afterFailure(l.failures, exit.At, l.sys.random())
	event.Failures = len(l.failures)
	l.onTrial = l.onTrial && exit.Ran < l.opts.RestartWindow
	neverRan := life == 1 && exit.notRunnable()
	if !tooOften && !l.onTrial && !neverRan {
		return l.awaitDelay(event)
	}

	l.giveUp(exit)
	if l.opts.RetryAfter == 0 {
		return l.awaitRestart(nil)
	}
	event.Delay = l.opts.RetryAfter
	event.OnTrial = true
	callIfSet(l.opts.Events.Restarting, event)
	return l.awaitRestart(time.After(event.Delay))
}

// giveUp reports only the first of a series of failed attempts to revive the process.
func (l *processLoop) giveUp(exit Exit) {
	err := &FailedError{Process: l.proc.Name, Failures: len(l.failures), Window: l.opts.RestartWindow, Last: exit,
		RetryAfter: l.opts.RetryAfter}
	l.enter(Failed, func(s *Status) { s.Reason = err.Error() })
	if !l.onTrial {
		callIfSet(l.opts.Events.GaveUp, GaveUp{Process: l.proc.Name, Err: err})
	}
	l.onTrial = true
}

// afterFailure takes the earlier failures, oldest first, and a random number in [0, 1). It returns the failures to
// keep and the restart delay, or giveUp.
func (o *Options) afterFailure(earlier []time.Time, now time.Time, random float64) (
	failures []time.Time, delay time.Duration, giveUp bool,
) {
	for len(earlier) > 0 && now.Sub(earlier[0]) >= o.RestartWindow {
		earlier = earlier[1:]
	}
	failures = append(earlier, now)
	if more := len(failures) - o.RestartLimit - 1; more >= 0 {
		// Keep the list short, because attempts may continue indefinitely.
		return failures[more:], 0, true
	}
	delay = o.RestartMin
	for i := 1; i < len(failures) && delay < o.RestartMax; i++ {
		delay *= 2
	}
	// Half of the delay is random, so that instances that failed together do not restart together.
	half := min(delay, o.RestartMax) / 2
	return failures, max(o.RestartMin, half+time.Duration(random*float64(half))), false
}

func (l *processLoop) awaitDelay(event Restarting) bool {
	l.enter(Waiting, nil)
	callIfSet(l.opts.Events.Restarting, event)
	return l.awaitRestart(time.After(event.Delay))
}

// awaitRestart returns false if the supervisor is stopping. start may be nil.
func (l *processLoop) awaitRestart(start <-chan time.Time) bool {
	select {
	case <-start:
		return true
	case l.restart = <-l.restartRequests:
		return true
	case <-l.stop.Done():
		return false
	}
}

func (l *processLoop) stopping() bool { return l.stop.Err() != nil }

func (l *processLoop) enter(state State, change func(*Status)) {
	l.update(func(s *Status) {
		s.State, s.Since = state, time.Now()
		callIfSet(change, s)
	})
}

func (l *processLoop) update(change func(*Status)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.status)
}

func (l *processLoop) snapshot() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status
}

func callIfSet[E any](f func(E), event E) {
	if f != nil {
		f(event)
	}
}
