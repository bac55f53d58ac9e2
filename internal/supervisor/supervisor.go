package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// sinkPatience is how long a stop waits for a sink that stalls.
const sinkPatience = time.Second

// Supervisor keeps a set of processes running. It is started once and stopped
// once; its methods may be called from any goroutine.
type Supervisor struct {
	opts   Options
	loops  []*processLoop
	sinkMu sync.Mutex
	// newSystem makes what starts processes; a test puts its own.
	newSystem func() *system

	// stop, kill: see processLoop. done is closed when no process is left.
	stop, kill     context.Context
	endAll, endNow context.CancelFunc
	done           chan struct{}

	mu      sync.Mutex
	started bool

	gateMu sync.Mutex
	open   bool
}

// New returns a supervisor of procs that is not started. A nil opts is valid.
// The error says which process or option is wrong and what is allowed.
func New(procs []Process, opts *Options) (*Supervisor, error) {
	set, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := validateAll(procs); err != nil {
		return nil, err
	}
	s := &Supervisor{opts: set, newSystem: func() *system { return systemOn(newHost()) }, done: make(chan struct{})}
	s.stop, s.endAll = context.WithCancel(context.Background())
	s.kill, s.endNow = context.WithCancel(context.Background())
	for _, p := range procs {
		s.loops = append(s.loops, &processLoop{proc: &p, opts: &s.opts, stop: s.stop, kill: s.kill, gate: s.updateGate,
			first: make(chan error, 1), asked: make(chan chan<- error),
			status: Status{Name: p.Name, Port: p.Port, State: Stopped}})
	}
	return s, nil
}

func systemOn(h *host) *system {
	return &system{
		start:  h.start,
		probe:  func(ctx context.Context, c Check) error { return c.Probe(ctx) },
		taken:  portTaken,
		random: rand.Float64,
		close:  h.close,
	}
}

// Start starts every process and returns once each was started; none need be
// ready by then. When one cannot be started the others are stopped again and
// the error says why: its port is taken ([*PortError]), or there is no such
// program. ctx bounds the start alone.
func (s *Supervisor) Start(ctx context.Context) error {
	s.mu.Lock()
	again := s.started || s.stop.Err() != nil
	s.started = true
	s.mu.Unlock()
	if again {
		return errors.New("a supervisor starts once: create a new one")
	}

	var running sync.WaitGroup
	sys := s.newSystem()
	for _, l := range s.loops {
		l.sys = sys
		if s.opts.Output != nil {
			l.out = newOutput(l.proc.Name, func(stream string, line []byte) {
				s.sinkMu.Lock()
				defer s.sinkMu.Unlock()
				s.opts.Output(l.proc.Name, stream, line)
			}, &s.opts)
		}
		running.Go(l.run)
	}

	go func() {
		running.Wait()
		sys.close()
		close(s.done)
	}()

	for _, l := range s.loops {
		var err error
		select {
		case err = <-l.first:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return s.abandon(l.proc.Name, err)
		}
	}
	return nil
}

// abandon undoes a start that failed.
func (s *Supervisor) abandon(process string, cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.Grace)
	defer cancel()
	if port := (*PortError)(nil); !errors.As(cause, &port) {
		cause = fmt.Errorf("process %s: %w", process, cause)
	}
	return errors.Join(cause, s.Stop(ctx))
}

// Stop has every process end with all that it started: TERM, KILL after the
// grace, or as soon as ctx or [Options.Hurry] is done. It returns when all are gone, with
// an error only when a process outlives its KILL, whatever ctx allows. It may be called
// again, also while another call waits, and the first ctx that is done counts.
func (s *Supervisor) Stop(ctx context.Context) error {
	s.mu.Lock()
	if s.stop.Err() == nil && !s.started {
		close(s.done)
	}
	s.endAll()
	s.mu.Unlock()

	select {
	case <-s.done:
		return nil
	case <-time.After(s.opts.Grace + killWait): // by then each process got its KILL
	case <-ctx.Done():
	case <-s.opts.Hurry.Done():
	}

	s.endNow()
	select {
	case <-s.done:
		return nil
	case <-time.After(killWait + waitDelay + sinkPatience):
	}

	var alive []string
	for _, st := range s.Status() {
		if st.PID != 0 {
			alive = append(alive, fmt.Sprintf("%s (pid %d)", st.Name, st.PID))
		}
	}
	return fmt.Errorf("still there %s after KILL: %s", killWait, strings.Join(alive, ", "))
}

// errStopped: the processes are stopped, so that none is started.
var errStopped = errors.New("the processes are being stopped")

// Restart ends a process with all that it started, as Stop does, and starts it again at once, also one that waits for a
// restart or was given up. It returns when the process was started again, or could not be; then it is tried again as
// after a failure. An end that was asked for is no failure.
func (s *Supervisor) Restart(ctx context.Context, process string) error {
	for _, l := range s.loops {
		if l.proc.Name == process {
			return l.startAnew(ctx, s.done)
		}
	}
	return fmt.Errorf("there is no process %q", process)
}

// Status returns a snapshot of each process, in the order given to New.
func (s *Supervisor) Status() []Status {
	all := make([]Status, len(s.loops))
	for i, l := range s.loops {
		all[i] = l.snapshot()
	}
	return all
}

// gateNow reports whether the app may be given work: every process that has a check
// passed it. A helper without one that fails is no reason to leave the app idle.
func (s *Supervisor) gateNow() (open bool, reason string) {
	if s.stop.Err() != nil {
		return false, "the app is being stopped"
	}
	for _, l := range s.loops {
		if st := l.snapshot(); !st.Ready && !l.proc.check().IsZero() {
			return false, cmp.Or(st.Reason, st.Name+" is not ready")
		}
	}
	return true, ""
}

// updateGate reports a change of the gate's answer. Holding the lock over the
// event keeps the events in order.
func (s *Supervisor) updateGate() {
	s.gateMu.Lock()
	defer s.gateMu.Unlock()
	if open, reason := s.gateNow(); open != s.open {
		s.open = open
		call(s.opts.Events.Gate, Gate{Open: open, Reason: reason})
	}
}
