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
	for life := 1; ; life++ {
		c, err := k.start(life)
		if life == 1 {
			first <- err
			if err != nil {
				k.enter(Stopped, func(s *Status) { s.Reason = err.Error() })
				return nil
			}
		}
		k.answer(err)
		exit := Exit{Code: -1, Err: err, At: time.Now()}
		if err == nil {
			exit = k.watch(c)
		}
		k.noteExit(c, exit)
		if k.stopping() {
			k.enter(Stopped, nil)
			return nil
		}
		failure, again := k.follow(exit, life)
		if failure != nil {
			return failure
		}
		if !again {
			k.enter(Stopped, nil)
			return nil
		}
	}
}

// answer tells who asked for a start how it went.
func (k *keeper) answer(err error) {
	if k.asked != nil {
		k.asked <- err
		k.asked = nil
	}
}

// start starts the process once its port is free.
func (k *keeper) start(life int) (*child, error) {
	k.enter(Starting, func(s *Status) { s.Restarts = life - 1 })
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
	k.enter(Running, func(s *Status) {
		s.PID = c.pid
		k.current = c
	})
	call(k.opts.Events.Started, Started{Process: k.proc.Name, PID: c.pid})
	return c, nil
}

// watch sees one run of the process to its end and clears up after it.
func (k *keeper) watch(c *child) Exit {
	began := time.Now()
	stopProbing := k.beginProbing(c)
	var killAt <-chan time.Time
	killed, why := false, ""
	select {
	case <-c.exited:
		why = " ended"
	case <-k.stop:
		why = " is being stopped"
	case k.asked = <-k.restarts:
		why = " is being restarted"
	}
	stopProbing()
	k.setReady(false, k.proc.Name+why, 0)
	if !isClosed(c.exited) {
		call(k.opts.Events.Stopping, Stopping{Process: k.proc.Name, PID: c.pid, Grace: k.opts.Grace})
		killAt = k.terminate(c, "")
		killed = k.awaitEnd(c, killAt)
	}
	at := time.Now()
	call(k.opts.Events.Ended, Ended{Process: k.proc.Name, PID: c.pid})
	if killed {
		awaitEmpty(c.group)
	} else {
		k.clearGroup(c, killAt)
	}
	k.mu.Lock()
	k.current = nil
	k.mu.Unlock()
	exit := c.group.reap()
	exit.At, exit.Ran = at, at.Sub(began)
	if exit.Code > 0 && exit.Ran < soon {
		exit.Missing = k.proc.missing(exit.Code)
	}
	return exit
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

func (k *keeper) stopping() bool { return isClosed(k.stop) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
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
		killAt = k.terminate(c, "others that it started have not ended")
	}
	look := time.NewTicker(survivorInterval)
	defer look.Stop()
	for !c.group.empty() {
		select {
		case <-look.C:
			continue
		case <-killAt:
			k.killGroup(c, "others that it started did not end within "+k.opts.Grace.String())
		case <-k.kill:
			k.killGroup(c, "the stop could not wait for others that it started")
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
