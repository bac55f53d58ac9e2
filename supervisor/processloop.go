package supervisor

import (
	"errors"
	"syscall"
	"time"
)

// run starts the process and restarts it until stop, or until it failed too
// often. The result of the first start goes to first: when that is an error
// nothing more is tried.
func (l *processLoop) run(first chan<- error) *FailedError {
	for life := 1; ; life++ {
		c, err := l.start(life)
		if life == 1 {
			first <- err
			if err != nil {
				l.enter(Stopped, func(s *Status) { s.Reason = err.Error() })
				return nil
			}
		}
		l.answer(err)
		exit := Exit{Code: -1, Err: err, At: time.Now()}
		if err == nil {
			exit = l.watch(c)
		}
		l.noteExit(c, exit)
		if l.stopping() {
			l.enter(Stopped, nil)
			return nil
		}
		failure, again := l.follow(exit, life)
		if failure != nil {
			return failure
		}
		if !again {
			l.enter(Stopped, nil)
			return nil
		}
	}
}

// answer tells who asked for a start how it went.
func (l *processLoop) answer(err error) {
	if l.asked != nil {
		l.asked <- err
		l.asked = nil
	}
}

// start starts the process once its port is free.
func (l *processLoop) start(life int) (*child, error) {
	l.enter(Starting, func(s *Status) { s.Restarts = life - 1 })
	ctx, cancel := l.untilStop()
	defer cancel()
	if err := awaitPort(ctx, l.proc, l.sys.taken); err != nil {
		if l.stopping() {
			return nil, errStopping
		}
		return nil, err
	}
	c, err := l.sys.start(l.proc, l.out)
	if err != nil {
		return nil, err
	}
	l.enter(Running, func(s *Status) {
		s.PID = c.pid
		l.current = c
	})
	call(l.opts.Events.Started, Started{Process: l.proc.Name, PID: c.pid})
	return c, nil
}

// watch sees one run of the process to its end and clears up after it.
func (l *processLoop) watch(c *child) Exit {
	began := time.Now()
	stopProbing := l.beginProbing(c)
	var killAt <-chan time.Time
	killed, why := false, ""
	select {
	case <-c.exited:
		why = " ended"
	case <-l.stop:
		why = " is being stopped"
	case l.asked = <-l.restarts:
		why = " is being restarted"
	}
	stopProbing()
	l.setReady(false, l.proc.Name+why, 0)
	if !isClosed(c.exited) {
		call(l.opts.Events.Stopping, Stopping{Process: l.proc.Name, PID: c.pid, Grace: l.opts.Grace})
		killAt = l.terminate(c, "")
		killed = l.awaitEnd(c, killAt)
	}
	at := time.Now()
	call(l.opts.Events.Ended, Ended{Process: l.proc.Name, PID: c.pid})
	if killed {
		awaitEmpty(c.group)
	} else {
		l.clearGroup(c, killAt)
	}
	l.mu.Lock()
	l.current = nil
	l.mu.Unlock()
	exit := c.group.reap()
	exit.At, exit.Ran = at, at.Sub(began)
	if exit.Code > 0 && exit.Ran < soon {
		exit.Missing = l.proc.missing(exit.Code)
	}
	return exit
}

func (l *processLoop) noteExit(c *child, exit Exit) {
	event := Exited{Process: l.proc.Name, Exit: exit}
	if c != nil {
		event.PID = c.pid
	}
	if errors.Is(exit.Err, errStopping) {
		return
	}
	l.mu.Lock()
	l.status.PID, l.status.LastExit = 0, &exit
	l.status.Reason = l.proc.Name + ": " + exit.String()
	l.mu.Unlock()
	call(l.opts.Events.Exited, event)
}

const (
	// survivorInterval is the time between two looks for what outlives the
	// leader of its group.
	survivorInterval = 50 * time.Millisecond
	// killWait is how long a group that got KILL may take to be gone: the
	// kernel needs a moment, or for ever where a disk hangs.
	killWait = 5 * time.Second
)

// terminate asks the process and all that it started to end, and returns when
// it is time for KILL. A stopped process could not obey before it is continued.
func (l *processLoop) terminate(c *child, reason string) (killAt <-chan time.Time) {
	l.enter(Ending, func(s *Status) {
		if reason != "" {
			s.Reason = reason
		}
	})
	c.group.signal(syscall.SIGTERM)
	c.group.signal(syscall.SIGCONT)
	return time.After(l.opts.Grace)
}

// awaitEnd returns when the leader has ended, and reports whether the group had
// to be killed for it.
func (l *processLoop) awaitEnd(c *child, killAt <-chan time.Time) (killed bool) {
	select {
	case <-c.exited:
		return false
	case <-killAt:
		l.killGroup(c, "it did not end within "+l.opts.Grace.String())
	case <-l.kill:
		l.killGroup(c, "the stop could not wait for it")
	}
	<-c.exited
	return true
}

// clearGroup ends what the leader left behind. Where the group was asked to end
// it has the rest of its grace, until killAt; else it is asked now.
func (l *processLoop) clearGroup(c *child, killAt <-chan time.Time) {
	if c.group.empty() {
		return
	}
	if killAt == nil {
		killAt = l.terminate(c, "others that it started have not ended")
	}
	look := time.NewTicker(survivorInterval)
	defer look.Stop()
	for !c.group.empty() {
		select {
		case <-look.C:
			continue
		case <-killAt:
			l.killGroup(c, "others that it started did not end within "+l.opts.Grace.String())
		case <-l.kill:
			l.killGroup(c, "the stop could not wait for others that it started")
		}
		awaitEmpty(c.group)
		return
	}
}

func (l *processLoop) killGroup(c *child, reason string) {
	c.group.signal(syscall.SIGKILL)
	call(l.opts.Events.Killed, Killed{Process: l.proc.Name, PID: c.pid, Reason: reason})
}

// awaitEmpty gives the kernel time to carry out a KILL.
func awaitEmpty(g group) {
	deadline := time.Now().Add(killWait)
	for !g.empty() && time.Now().Before(deadline) {
		time.Sleep(survivorInterval / 10)
	}
}

// follow decides what comes after the end of a run and waits until it is time.
// again is false when a stop came first; failure is why the process stays down
// for good.
func (l *processLoop) follow(exit Exit, life int) (failure *FailedError, again bool) {
	if l.asked != nil {
		l.forget()
		call(l.opts.Events.Restarting, Restarting{Process: l.proc.Name, Requested: true, Limit: l.rule.limit})
		return nil, true
	}
	if exit.Err == nil && l.opts.Excused != nil && l.opts.Excused(l.proc.Name, exit) {
		return nil, l.pause(Restarting{Delay: l.opts.RestartMin, Failures: len(l.failures), Excused: true})
	}
	var d restartDecision
	l.failures, d = l.rule.next(l.failures, exit.At, l.sys.random())
	l.onTrial = l.onTrial && exit.Ran < l.rule.window
	if d.giveUp || l.onTrial || life == 1 && exit.notRunnable() {
		return l.giveUp(d.failures, exit)
	}
	return nil, l.pause(Restarting{Delay: d.delay, Failures: d.failures})
}

// forget lets the process begin with a clean record.
func (l *processLoop) forget() { l.failures, l.onTrial = nil, false }

// giveUp ends the loop, or with KeepTrying waits for the next try. A try that
// fails is not given up a second time.
func (l *processLoop) giveUp(failures int, last Exit) (*FailedError, bool) {
	err := &FailedError{
		Process: l.proc.Name, Failures: failures, Window: l.rule.window, Last: last,
		KeptTrying: l.opts.KeepTrying, RetryAfter: l.opts.RetryAfter,
	}
	l.enter(Failed, func(s *Status) { s.Reason = err.Error() })
	if !l.onTrial {
		call(l.opts.Events.GaveUp, GaveUp{Process: l.proc.Name, Err: err})
	}
	if !l.opts.KeepTrying {
		return err, false
	}
	l.onTrial = true
	if l.opts.RetryAfter > 0 {
		call(l.opts.Events.Restarting, Restarting{
			Process: l.proc.Name, Delay: l.opts.RetryAfter, Failures: failures, Limit: l.rule.limit, OnTrial: true,
		})
	}
	return nil, l.await(l.opts.RetryAfter)
}

// pause waits before a restart; false means that stop came first.
func (l *processLoop) pause(event Restarting) bool {
	l.enter(Waiting, nil)
	event.Process, event.Limit = l.proc.Name, l.rule.limit
	call(l.opts.Events.Restarting, event)
	return l.await(event.Delay)
}

// await returns true after delay, or as soon as somebody asks for a start; 0
// waits for nothing else. It returns false when stop comes first.
func (l *processLoop) await(delay time.Duration) bool {
	var over <-chan time.Time
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
		return true
	case l.asked = <-l.restarts:
		l.forget()
		return true
	case <-l.stop:
		return false
	}
}
