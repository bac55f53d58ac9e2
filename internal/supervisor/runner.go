package supervisor

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"
)

// Runner starts processes without restarting or checking them, and stays responsible for descendants that outlive
// their process. It is safe for concurrent use.
type Runner struct {
	host *host
	opts Options

	mu   sync.Mutex
	left []leftBehind
}

type leftBehind struct {
	owner int
	tree  *processTree
}

// NewRunner returns a runner that uses MaxLine, LinesPerSecond and Events.LinesDropped of opts. Close it after reaping
// every run.
func NewRunner(opts *Options) *Runner { return &Runner{host: newHost(), opts: opts.withDefaults()} }

// Validate checks p, and that its program, directory and user exist.
func (p *Process) Validate() error {
	if err := p.validate(); err != nil {
		return err
	}
	_, err := launchSpecOf(p, nil)
	return err
}

// Close kills the descendants left by [Run.Release].
func (r *Runner) Close() {
	r.EndLeftBehind(context.Background(), 0, func(int) bool { return true })
	r.host.close()
}

// Start starts a process as the leader of a new group. output is as in [Options.Output]; it may be nil.
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

// EndLeftBehind stops the descendants left by [Run.Release] for which owned returns true. It sends SIGTERM, and SIGKILL
// after grace or when hurry is done.
func (r *Runner) EndLeftBehind(hurry context.Context, grace time.Duration, owned func(owner int) bool) {
	ending := r.takeLeftBehind(func(l leftBehind) bool { return owned(l.owner) })
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

func (r *Runner) takeLeftBehind(matches func(leftBehind) bool) (taken []leftBehind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var others []leftBehind
	for _, l := range r.left {
		if matches(l) {
			taken = append(taken, l)
		} else {
			others = append(others, l)
		}
	}
	r.left = others
	return taken
}

func (r *Runner) forget(l leftBehind) {
	r.host.guard.Remove(0, l.tree.marker())
	l.tree.release()
}

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

// Run is one execution of a process.
type Run struct {
	runner *Runner
	child  *child
	out    *output
	began  time.Time
}

// PID returns the ID of the process and its group.
func (r *Run) PID() int { return r.child.pid }

// Exited returns a channel that is closed when the process has exited. On Linux, the PID is not reused before
// [Run.Reap] or [Run.Release].
func (r *Run) Exited() <-chan struct{} { return r.child.exited }

// Signal sends sig to the process and its descendants. Do not call it after [Run.Reap] or [Run.Release].
func (r *Run) Signal(sig syscall.Signal) { r.child.group.signal(sig) }

// Owns reports whether the process or a descendant is the peer of conn, a local IPv4 connection. It compares users if
// open files cannot be read, and returns true if connections are not visible at all.
func (r *Run) Owns(conn net.Conn) bool { return r.child.owns(conn) }

// End sends SIGTERM to the process and its descendants, and SIGKILL after grace or when hurry is done. It returns
// when the process has exited; the caller must still reap it.
func (r *Run) End(hurry context.Context, grace time.Duration) {
	limit, cancel := context.WithTimeout(hurry, grace)
	defer cancel()
	r.Signal(syscall.SIGTERM)
	r.Signal(syscall.SIGCONT) // a suspended process could not exit
	select {
	case <-r.child.exited:
	case <-limit.Done():
	}
	if limit.Err() != nil || !awaitGone(limit, r.child.group) {
		r.Signal(syscall.SIGKILL)
	}
	<-r.child.exited
}

// Reap kills the run's remaining processes and returns how the process exited. Call either Reap or [Run.Release] once,
// after [Run.Exited].
func (r *Run) Reap() Exit {
	r.Signal(syscall.SIGKILL)
	return r.reap()
}

// Release is like Reap, but descendants keep running until [Runner.EndLeftBehind]. owner identifies them there.
func (r *Run) Release(owner int) Exit {
	r.runner.keep(r.child.group, owner)
	return r.reap()
}

func (r *Runner) keep(g group, owner int) {
	for _, gone := range r.takeLeftBehind(func(l leftBehind) bool { return l.tree.empty() }) {
		r.forget(gone)
	}
	if g, ok := g.(*osGroup); ok && g.leave() {
		r.mu.Lock()
		defer r.mu.Unlock()
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
		r.out.close()
	}
}
