package supervisor

import (
	"context"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Runner starts processes for a caller that decides itself when, how often and with
// which environment: nothing is restarted, and port and check are ignored. What a process
// leaves behind when it ends belongs to the runner. Its methods are safe for concurrent use.
type Runner struct {
	host *host
	opts Options

	mu   sync.Mutex
	left []leftBehind
}

// leftBehind is what a process left behind when it ended.
type leftBehind struct {
	owner int
	tree  *processTree
}

// NewRunner returns a runner, to be closed when every run is reaped. Of opts it uses
// MaxLine, LinesPerSecond and Events.LinesDropped.
func NewRunner(opts *Options) (*Runner, error) {
	set, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Runner{host: newHost(), opts: set}, nil
}

// Validate says what is wrong with a process, also when it has no program or folder now.
func (p *Process) Validate() error {
	if err := p.validate(); err != nil {
		return err
	}
	_, err := launchSpecOf(p, nil)
	return err
}

// Close releases what the runner keeps. What processes left behind is killed.
func (r *Runner) Close() {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	r.EndLeftBehind(now, 0, func(int) bool { return true })
	r.host.close()
}

// Start starts a process as the leader of a new process group. output takes the lines that
// it writes, as [Options.Output] does; nil discards them.
func (r *Runner) Start(p *Process, output func(stream string, line []byte)) (*Run, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	run := &Run{runner: r, began: time.Now()}
	if output != nil {
		run.out = newOutput(p.Name, output, &r.opts)
	}
	var err error
	if run.child, err = r.host.start(p, run.out); err != nil {
		run.closeOutput()
		return nil, err
	}
	return run, nil
}

// EndLeftBehind ends what processes left behind, where owned reports true for the owner that [Run.Release] was given:
// TERM, and KILL when grace is over or hurry is done.
func (r *Runner) EndLeftBehind(hurry context.Context, grace time.Duration, owned func(owner int) bool) {
	var ending []leftBehind
	r.mu.Lock()
	r.left = slices.DeleteFunc(r.left, func(l leftBehind) bool {
		if owned(l.owner) {
			ending = append(ending, l)
		}
		return owned(l.owner)
	})
	r.mu.Unlock()

	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT} {
		for _, l := range ending {
			l.tree.signal(sig)
		}
	}
	limit, cancel := context.WithTimeout(hurry, grace)
	defer cancel()
	for _, l := range ending {
		if !awaitGone(limit, l.tree) {
			l.tree.signal(syscall.SIGKILL)
			awaitEmpty(l.tree)
		}
		r.forget(l)
	}
}

// forget lets go of what was left behind and is gone.
func (r *Runner) forget(l leftBehind) {
	r.host.guard.Remove(0, l.tree.marker())
	l.tree.release()
}

// awaitGone waits until processes are gone, and reports whether they are when limit is done.
func awaitGone(limit context.Context, g emptier) bool {
	for !g.empty() {
		select {
		case <-time.After(survivorInterval):
		case <-limit.Done():
			return false
		}
	}
	return true
}

// Run is one run of a process.
type Run struct {
	runner *Runner
	child  *child
	out    *output // nil when nobody reads it
	began  time.Time
}

// PID is the number of the process, and of the group that it leads.
func (r *Run) PID() int { return r.child.pid }

// Exited is closed when the process has ended. Its number is not reused before
// [Run.Reap].
func (r *Run) Exited() <-chan struct{} { return r.child.exited }

// Signal sends sig to the process and to all that it started. It must not be called after [Run.Reap].
func (r *Run) Signal(sig syscall.Signal) { r.child.group.signal(sig) }

// Owns reports whether the program at the other end of conn, a connection from this
// machine over IPv4, belongs to the run: the process and all that it
// started. Where the system does not show whose files are open, it is enough to run as
// the user of such a process; where it is not Linux, or /proc is another's, Owns
// reports true.
func (r *Run) Owns(conn net.Conn) bool { return r.child.owns(conn) }

// End asks the process and all that it started to end, and kills them when grace is over or hurry is done. It
// returns when the process has ended, which is still to be reaped. A shell ends at once,
// and what it runs has the grace all the same.
func (r *Run) End(hurry context.Context, grace time.Duration) {
	limit, cancel := context.WithTimeout(hurry, grace)
	defer cancel()
	r.Signal(syscall.SIGTERM)
	r.Signal(syscall.SIGCONT) // a stopped process could not obey
	select {
	case <-r.child.exited:
	case <-limit.Done():
	}
	if limit.Err() != nil || !awaitGone(limit, r.child.group) {
		r.Signal(syscall.SIGKILL)
	}
	<-r.child.exited
}

// Reap kills what is left of the run and returns how the process ended. It
// must be called once, after [Run.Exited].
func (r *Run) Reap() Exit {
	r.Signal(syscall.SIGKILL)
	return r.reap()
}

// Release is Reap, but what is left goes on: it belongs to the runner and has an owner there, until
// [Runner.EndLeftBehind].
func (r *Run) Release(owner int) Exit {
	r.runner.keep(r.child.group, owner)
	return r.reap()
}

// keep enters what the leader of a group leaves behind in the list, and removes from it what is gone.
func (r *Runner) keep(g group, owner int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = slices.DeleteFunc(r.left, func(l leftBehind) bool {
		gone := l.tree.empty()
		if gone {
			r.forget(l)
		}
		return gone
	})
	if g, ok := g.(*osGroup); ok && g.leave() {
		r.left = append(r.left, leftBehind{owner, g.tree})
	}
}

func (r *Run) reap() Exit {
	at := time.Now()
	exit := r.child.group.reap()
	exit.At, exit.Ran = at, at.Sub(r.began)
	r.closeOutput()
	return exit
}

func (r *Run) closeOutput() {
	if r.out != nil {
		r.out.close(sinkPatience)
	}
}
