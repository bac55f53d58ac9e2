package supervisor

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"
)

// errStopping ends a start that the supervisor's stop overtook.
var errStopping = errors.New("the supervisor is stopping")

// processLoop keeps one process running. Its loop is one goroutine; a second one
// checks readiness while the process runs.
type processLoop struct {
	proc *Process
	opts *Options
	rule restartRule
	sys  *system
	out  *output
	// stop and kill are closed to have the process end: by TERM, by KILL.
	stop, kill <-chan struct{}
	// restarts takes in who wants the process started afresh; each hears how
	// the start went. ended is closed when the loop has.
	restarts chan chan<- error
	ended    chan struct{}
	// gate has the supervisor look again at who is ready.
	gate func()

	// asked hears of the next start; nil for nobody. failures are those that
	// count. onTrial: the process was given up and is tried again. All three
	// are the loop's own.
	asked    chan<- error
	failures []time.Time
	onTrial  bool

	mu      sync.Mutex
	status  Status
	current *child
}

// system is what a processLoop needs of the machine.
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

func (l *processLoop) stopping() bool { return isClosed(l.stop) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// untilStop returns a context that ends when stop does.
func (l *processLoop) untilStop() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-l.stop:
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
