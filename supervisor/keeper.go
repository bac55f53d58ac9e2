package supervisor

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"
)

const (
	// survivorInterval is the time between two looks for members of a group
	// that outlive its leader.
	survivorInterval = 50 * time.Millisecond
	// killWait is how long a group that got KILL may take to be gone: the
	// kernel needs a moment, or for ever where a disk hangs.
	killWait = 5 * time.Second
)

// errStopping ends a start that the supervisor's stop overtook.
var errStopping = errors.New("the supervisor is stopping")

// keeper keeps one process running. Its loop is one goroutine; a second one
// checks readiness while the process runs.
type keeper struct {
	proc *Process
	opts *Options
	rule restartRule
	sys  *system
	out  *output
	// stop and kill are closed to have the process end: by TERM, by KILL.
	stop, kill <-chan struct{}
	// gate has the supervisor look again at who is ready.
	gate func()

	mu     sync.Mutex
	status Status
}

// system is what a keeper needs of the machine.
type system struct {
	start func(*Process, *output) (*child, error)
	probe func(context.Context, Check) error
	taken func(port int) bool
	// random returns a number in [0, 1).
	random func() float64
	// close is called when no process is left.
	close func()
}

// run starts the process and restarts it until stop, or until it failed too
// often. The result of the first start goes to first: when that is an error
// nothing more is tried.
func (k *keeper) run(first chan<- error) *FailedError {
	var failures []time.Time
	for life := 1; ; life++ {
		c, err := k.start()
		if life == 1 {
			first <- err
			if err != nil {
				k.enter(Stopped, func(s *Status) { s.Reason = err.Error() })
				return nil
			}
		}
		exit := Exit{Code: -1, Err: err, At: time.Now()}
		if err == nil {
			exit = k.watch(c)
		}
		k.noteExit(c, exit)
		if k.stopping() {
			k.enter(Stopped, nil)
			return nil
		}
		var d restartDecision
		failures, d = k.rule.next(failures, exit.At, k.sys.random())
		if d.giveUp || life == 1 && exit.notRunnable() {
			return k.giveUp(d.failures, exit)
		}
		if !k.pause(d) {
			k.enter(Stopped, nil)
			return nil
		}
	}
}

// start starts the process once its port is free.
func (k *keeper) start() (*child, error) {
	k.enter(Starting, nil)
	ctx, cancel := k.untilStop()
	defer cancel()
	if err := awaitPort(ctx, k.proc, k.sys.taken); err != nil {
		if k.stopping() {
			return nil, errStopping
		}
		return nil, err
	}
	c, err := k.sys.start(k.proc, k.out)
	if err != nil {
		return nil, err
	}
	k.enter(Running, func(s *Status) { s.PID = c.pid })
	call(k.opts.Events.Started, Started{Process: k.proc.Name, PID: c.pid})
	return c, nil
}

// watch sees one run of the process to its end and clears up after it.
func (k *keeper) watch(c *child) Exit {
	began := time.Now()
	stopProbing := k.beginProbing()
	var killAt <-chan time.Time
	killed := false
	select {
	case <-c.exited:
		stopProbing()
		k.setReady(false, k.proc.Name+" ended", 0)
	case <-k.stop:
		stopProbing()
		k.setReady(false, k.proc.Name+" is being stopped", 0)
		call(k.opts.Events.Stopping, Stopping{Process: k.proc.Name, PID: c.pid, Grace: k.opts.Grace})
		killAt = k.terminate(c, "")
		killed = k.awaitEnd(c, killAt)
	}
	at := time.Now()
	if killed {
		awaitEmpty(c.group)
	} else {
		k.clearGroup(c, killAt)
	}
	exit := c.group.reap()
	exit.At, exit.Ran = at, at.Sub(began)
	return exit
}

// terminate asks the whole group to end and returns when it is time for KILL. A
// stopped process could not obey before it is continued.
func (k *keeper) terminate(c *child, reason string) (killAt <-chan time.Time) {
	k.enter(Ending, func(s *Status) {
		if reason != "" {
			s.Reason = reason
		}
	})
	c.group.signal(syscall.SIGTERM)
	c.group.signal(syscall.SIGCONT)
	return time.After(k.opts.Grace)
}

// awaitEnd returns when the leader has ended, and reports whether the group had
// to be killed for it.
func (k *keeper) awaitEnd(c *child, killAt <-chan time.Time) (killed bool) {
	select {
	case <-c.exited:
		return false
	case <-killAt:
		k.killGroup(c, "it did not end within "+k.opts.Grace.String())
	case <-k.kill:
		k.killGroup(c, "the stop could not wait for it")
	}
	<-c.exited
	return true
}

// clearGroup ends what the leader left behind. Where the group was asked to end
// it has the rest of its grace, until killAt; else it is asked now.
func (k *keeper) clearGroup(c *child, killAt <-chan time.Time) {
	if c.group.empty() {
		return
	}
	if killAt == nil {
		killAt = k.terminate(c, "others of its process group have not ended")
	}
	look := time.NewTicker(survivorInterval)
	defer look.Stop()
	for !c.group.empty() {
		select {
		case <-look.C:
			continue
		case <-killAt:
			k.killGroup(c, "others of its process group did not end within "+k.opts.Grace.String())
		case <-k.kill:
			k.killGroup(c, "the stop could not wait for others of its process group")
		}
		awaitEmpty(c.group)
		return
	}
}

func (k *keeper) killGroup(c *child, reason string) {
	c.group.signal(syscall.SIGKILL)
	call(k.opts.Events.Killed, Killed{Process: k.proc.Name, PID: c.pid, Reason: reason})
}

// awaitEmpty gives the kernel time to carry out a KILL.
func awaitEmpty(g group) {
	deadline := time.Now().Add(killWait)
	for !g.empty() && time.Now().Before(deadline) {
		time.Sleep(survivorInterval / 10)
	}
}

func (k *keeper) noteExit(c *child, exit Exit) {
	event := Exited{Process: k.proc.Name, Exit: exit}
	if c != nil {
		event.PID = c.pid
	}
	if errors.Is(exit.Err, errStopping) {
		return
	}
	k.mu.Lock()
	k.status.PID, k.status.LastExit = 0, &exit
	k.status.Reason = k.proc.Name + ": " + exit.String()
	k.mu.Unlock()
	call(k.opts.Events.Exited, event)
}

func (k *keeper) giveUp(failures int, last Exit) *FailedError {
	err := &FailedError{Process: k.proc.Name, Failures: failures, Window: k.rule.window, Last: last}
	k.enter(Failed, func(s *Status) { s.Reason = err.Error() })
	call(k.opts.Events.GaveUp, GaveUp{Process: k.proc.Name, Err: err})
	return err
}

// pause waits before a restart; false means that stop came first.
func (k *keeper) pause(d restartDecision) bool {
	k.enter(Waiting, nil)
	call(k.opts.Events.Restarting, Restarting{
		Process: k.proc.Name, Delay: d.delay, Failures: d.failures, Limit: k.rule.limit,
	})
	timer := time.NewTimer(d.delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		k.mu.Lock()
		k.status.Restarts++
		k.mu.Unlock()
		return true
	case <-k.stop:
		return false
	}
}

func (k *keeper) stopping() bool {
	select {
	case <-k.stop:
		return true
	default:
		return false
	}
}

// untilStop returns a context that ends when stop does.
func (k *keeper) untilStop() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-k.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// call calls f where there is one.
func call[E any](f func(E), event E) {
	if f != nil {
		f(event)
	}
}
