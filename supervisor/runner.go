package supervisor

import (
	"context"
	"net"
	"syscall"
	"time"
)

// Runner starts a process for a caller that decides itself when, how often and with
// which environment: nothing is restarted, and port and check are ignored. Its methods
// are safe for concurrent use.
type Runner struct {
	process Process
	host    *host
	opts    Options
}

// NewRunner returns a runner of p, to be closed when every run is reaped. Of opts it uses
// MaxLine, LinesPerSecond and Events.LinesDropped. The error also says when p has no
// program or folder now.
func NewRunner(p *Process, opts *Options) (*Runner, error) {
	set, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := p.validate(); err != nil {
		return nil, err
	}
	if _, err := launchSpecOf(p, nil); err != nil {
		return nil, err
	}
	h := newHost()
	h.groupsOnly = true
	return &Runner{process: *p, host: h, opts: set}, nil
}

// Close releases what the runner keeps.
func (r *Runner) Close() { r.host.close() }

// Start starts the process as the leader of a new process group, with a name and an
// environment for this run. output takes the lines that it writes, as [Options.Output]
// does; nil discards them.
func (r *Runner) Start(name string, env []string, output func(stream string, line []byte)) (*Run, error) {
	p := r.process
	p.Name, p.Env = name, env
	run := &Run{began: time.Now()}
	if output != nil {
		run.out = newOutput(name, output, &r.opts)
	}
	var err error
	if run.child, err = r.host.start(&p, run.out); err != nil {
		run.closeOutput()
		return nil, err
	}
	return run, nil
}

// Run is one run of a process.
type Run struct {
	child *child
	out   *output // nil when nobody reads it
	began time.Time
}

// PID is the number of the process, and of the group that it leads.
func (r *Run) PID() int { return r.child.pid }

// Exited is closed when the process has ended. Its number is not reused before
// [Run.Reap].
func (r *Run) Exited() <-chan struct{} { return r.child.exited }

// Signal sends sig to the process group. It must not be called after [Run.Reap].
func (r *Run) Signal(sig syscall.Signal) {
	_ = syscall.Kill(-r.child.pid, sig) // an error means that nobody is left
}

// Owns reports whether the program at the other end of conn, a connection from this
// machine over IPv4, belongs to the run: the process, its group and all that those
// started. Where the system does not show whose files are open, it is enough to run as
// the user of such a process; where it is not Linux, or /proc is another's, Owns
// reports true.
func (r *Run) Owns(conn net.Conn) bool { return r.child.owns(conn) }

// End asks the process group to end, and kills it when grace is over or hurry is done. It
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
	for limit.Err() == nil && !r.child.group.empty() {
		select {
		case <-time.After(survivorInterval):
		case <-limit.Done():
		}
	}
	r.Signal(syscall.SIGKILL)
	<-r.child.exited
}

// Reap kills what is left of the process group and returns how the process ended. It
// must be called once, after [Run.Exited].
func (r *Run) Reap() Exit {
	r.Signal(syscall.SIGKILL)
	return r.Release()
}

// Release is Reap, but what is left of the process group goes on.
func (r *Run) Release() Exit {
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
