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

// sinkPatience is how long a stop waits for a blocked output callback.
const sinkPatience = time.Second

// Supervisor keeps a set of processes running. It can be started only once. It is safe for concurrent use.
type Supervisor struct {
	opts      Options
	loops     []*processLoop
	sinkMu    sync.Mutex
	newSystem func() *system

	// SIGTERM is sent when stop is done, SIGKILL when kill is done.
	stop, kill     context.Context
	endAll, endNow context.CancelFunc
	done           chan struct{}

	mu      sync.Mutex
	started bool

	gateMu sync.Mutex
	open   bool
}

// New returns a supervisor for procs. opts may be nil. The error names the invalid process.
func New(procs []Process, opts *Options) (*Supervisor, error) {
	if err := validateAll(procs); err != nil {
		return nil, err
	}
	s := &Supervisor{opts: opts.withDefaults(), newSystem: func() *system { return systemOn(newHost()) }, done: make(chan struct{})}
	s.stop, s.endAll = context.WithCancel(context.Background())
	s.kill, s.endNow = context.WithCancel(context.Background())
	for _, p := range procs {
		s.loops = append(s.loops, &processLoop{proc: &p, opts: &s.opts, stop: s.stop, kill: s.kill, gate: s.updateGate,
			firstStart: make(chan error, 1), restartRequests: make(chan chan<- error),
			status: Status{Name: p.Name, Port: p.Port, State: Stopped}})
	}
	return s, nil
}

func systemOn(h *host) *system {
	return &system{
		start:  h.start,
		probe:  func(ctx context.Context, c Check) error { return c.Probe(ctx) },
		taken:  PortTaken,
		random: rand.Float64,
		close:  h.close,
	}
}

// Start starts all processes. It returns once they run, even if they are not ready. If one cannot be started, the
// others are stopped; the error is a [*PortError] if a port is taken. ctx limits the startup only.
func (s *Supervisor) Start(ctx context.Context) error {
	s.mu.Lock()
	again := s.started || s.stop.Err() != nil
	s.started = true
	s.mu.Unlock()
	if again {
		return errors.New("a supervisor starts once: create a new one")
	}

	s.runLoops()
	for _, l := range s.loops {
		var err error
		select {
		case err = <-l.firstStart:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return s.abandon(l.proc.Name, err)
		}
	}
	return nil
}

func (s *Supervisor) runLoops() {
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
}

func (s *Supervisor) abandon(process string, cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.Grace)
	defer cancel()
	if port := (*PortError)(nil); !errors.As(cause, &port) {
		cause = fmt.Errorf("process %s: %w", process, cause)
	}
	return errors.Join(cause, s.Stop(ctx))
}

// Stop stops every process and its descendants. It sends SIGTERM, and SIGKILL after the grace period or once ctx or
// [Options.Hurry] is done. It fails if a process survives SIGKILL. Stop may be called repeatedly and concurrently; the
// first ctx to be done counts.
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
	case <-time.After(s.opts.Grace + killWait): // by then, SIGKILL has been sent
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
	return fmt.Errorf("still running after KILL: %s", strings.Join(alive, ", "))
}

var errStopped = errors.New("the processes are being stopped")

// Restart stops a process if it is running, forgets its failures and starts it immediately. It returns the error of the
// start, which is retried as usual.
func (s *Supervisor) Restart(ctx context.Context, process string) error {
	for _, l := range s.loops {
		if l.proc.Name == process {
			return l.requestRestart(ctx, s.done)
		}
	}
	return fmt.Errorf("process %q not found", process)
}

// Status returns a snapshot of each process, in [New]'s order.
func (s *Supervisor) Status() []Status {
	all := make([]Status, len(s.loops))
	for i, l := range s.loops {
		all[i] = l.snapshot()
	}
	return all
}

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

// updateGate holds the lock during the call, so that calls are in order.
func (s *Supervisor) updateGate() {
	s.gateMu.Lock()
	defer s.gateMu.Unlock()
	if open, reason := s.gateNow(); open != s.open {
		s.open = open
		callIfSet(s.opts.Events.Gate, Gate{Open: open, Reason: reason})
	}
}
