package supervisor

import (
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
	procs []Process
	opts  Options
	// newSystem makes what starts processes; a test puts its own.
	newSystem func(Options) *system
	sinkMu    sync.Mutex

	// stop, kill: see processLoop. failed is closed when a process is given up, done
	// when no process is left.
	stop, kill, failed, done chan struct{}

	mu      sync.Mutex
	loops   []*processLoop
	started bool
	stopped bool
	killed  bool
	err     error

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
	return &Supervisor{
		procs:     append([]Process(nil), procs...),
		opts:      set,
		newSystem: realSystem,
		stop:      make(chan struct{}),
		kill:      make(chan struct{}),
		failed:    make(chan struct{}),
		done:      make(chan struct{}),
	}, nil
}

func realSystem(o Options) *system { return systemOn(newHost(o.Reap)) }

func systemOn(h *host) *system {
	return &system{
		start:  h.start,
		probe:  func(ctx context.Context, c Check) error { return c.Probe(ctx) },
		taken:  portTaken,
		random: rand.Float64,
		close:  h.close,
	}
}

// Run starts the processes and returns when ctx is done and they have ended
// (nil), or when one was given up and the others have ended (a [*FailedError]).
// It is Start, a wait for [Supervisor.Failed], and Stop.
func (s *Supervisor) Run(ctx context.Context) error {
	if err := s.Start(ctx); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-s.failed:
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Grace+killWait)
	defer cancel()
	if err := s.Stop(bounded); err != nil {
		return errors.Join(s.Err(), err)
	}
	return s.Err()
}

// Start starts every process and returns once each was started; none need be
// ready by then. When one cannot be started the others are stopped again and
// the error says why: its port is taken ([*PortError]), or there is no such
// program. ctx bounds the start alone.
func (s *Supervisor) Start(ctx context.Context) error {
	firsts, err := s.launch()
	if err != nil {
		return err
	}
	for i, first := range firsts {
		select {
		case err := <-first:
			if err != nil {
				return s.abandon(s.procs[i].Name, err)
			}
		case <-ctx.Done():
			return s.abandon(s.procs[i].Name, ctx.Err())
		}
	}
	return nil
}

// launch starts the loops; each reports its first start on a channel.
func (s *Supervisor) launch() ([]chan error, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started || s.stopped {
		return nil, errors.New("a supervisor starts once: make a new one")
	}
	s.started = true
	sys := s.newSystem(s.opts)
	firsts := make([]chan error, len(s.procs))
	for i := range s.procs {
		s.loops = append(s.loops, s.newLoop(&s.procs[i], sys))
		firsts[i] = make(chan error, 1)
	}
	var running sync.WaitGroup
	for i, l := range s.loops {
		running.Go(func() { s.keep(l, firsts[i]) })
	}
	go func() {
		running.Wait()
		sys.close()
		close(s.done)
	}()
	return firsts, nil
}

func (s *Supervisor) newLoop(p *Process, sys *system) *processLoop {
	l := &processLoop{
		proc: p,
		opts: &s.opts,
		rule: restartRule{
			min: s.opts.RestartMin, max: s.opts.RestartMax,
			limit: s.opts.RestartLimit, window: s.opts.RestartWindow,
		},
		sys:      sys,
		stop:     s.stop,
		kill:     s.kill,
		restarts: make(chan chan<- error),
		ended:    make(chan struct{}),
		gate:     s.updateGate,
		status:   Status{Name: p.Name, State: Starting},
	}
	if s.opts.Output != nil {
		l.out = newOutput(p.Name, func(stream string, line []byte) {
			s.sinkMu.Lock()
			defer s.sinkMu.Unlock()
			s.opts.Output(p.Name, stream, line)
		}, &s.opts)
	}
	return l
}

// keep runs one loop to its end.
func (s *Supervisor) keep(l *processLoop, first chan<- error) {
	failure := l.run(first)
	close(l.ended)
	if l.out != nil {
		l.out.close(sinkPatience)
	}
	if failure == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = failure
		close(s.failed)
	}
}

// abandon undoes a start that failed.
func (s *Supervisor) abandon(process string, cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.Grace)
	defer cancel()
	var port *PortError
	if !errors.As(cause, &port) {
		cause = fmt.Errorf("process %s: %w", process, cause)
	}
	return errors.Join(cause, s.Stop(ctx))
}

// Stop has every process end with all that it started: TERM, KILL after the
// grace, or as soon as ctx or [Options.Hurry] is done. It returns when all are gone,
// with an error only when a process outlives its KILL, whatever ctx allows. It may be called again, also
// while another call waits, and the first ctx that is done counts.
func (s *Supervisor) Stop(ctx context.Context) error {
	s.mu.Lock()
	if !s.stopped {
		s.stopped = true
		close(s.stop)
		if !s.started {
			close(s.done)
		}
	}
	s.mu.Unlock()
	gentle := time.NewTimer(s.opts.Grace + killWait) // by then each process got its KILL
	defer gentle.Stop()
	select {
	case <-s.done:
		return nil
	case <-gentle.C:
	case <-ctx.Done():
	case <-s.opts.Hurry.Done():
	}
	s.killNow()
	timer := time.NewTimer(killWait + waitDelay + sinkPatience)
	defer timer.Stop()
	select {
	case <-s.done:
		return nil
	case <-timer.C:
		return fmt.Errorf("still there %s after KILL: %s", killWait, strings.Join(s.alive(), ", "))
	}
}

func (s *Supervisor) killNow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.killed {
		s.killed = true
		close(s.kill)
	}
}

func (s *Supervisor) alive() []string {
	var names []string
	for _, st := range s.Status() {
		if st.PID != 0 {
			names = append(names, fmt.Sprintf("%s (pid %d)", st.Name, st.PID))
		}
	}
	return names
}

// Failed is closed when a process has been given up for good; the others go on
// until Stop. With [Options.KeepTrying] that never happens.
func (s *Supervisor) Failed() <-chan struct{} { return s.failed }

// Err returns the [*FailedError] of the first process that was given up for
// good, or nil.
func (s *Supervisor) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Status returns a snapshot of each process, in the order given to New.
func (s *Supervisor) Status() []Status {
	s.mu.Lock()
	loops := s.loops
	s.mu.Unlock()
	if loops == nil {
		idle := make([]Status, len(s.procs))
		for i := range s.procs {
			idle[i] = Status{Name: s.procs[i].Name, State: Stopped}
		}
		return idle
	}
	all := make([]Status, len(loops))
	for i, l := range loops {
		all[i] = l.snapshot()
	}
	return all
}

// Ready reports whether the app may be given work: the supervisor was started
// and every process that has a check passed it. Processes without a check do
// not count: a helper that fails is no reason to leave the app idle.
func (s *Supervisor) Ready() bool {
	open, _ := s.gateNow()
	return open
}

// gateNow says whether the gate belongs open, and if not, why.
func (s *Supervisor) gateNow() (open bool, reason string) {
	s.mu.Lock()
	loops, stopped := s.loops, s.stopped
	s.mu.Unlock()
	switch {
	case stopped:
		return false, "the app is being stopped"
	case loops == nil:
		return false, "the app is not started"
	}
	for _, l := range loops {
		st := l.snapshot()
		if st.Ready || l.proc.check().IsZero() {
			continue
		}
		if st.Reason != "" {
			return false, st.Reason
		}
		return false, st.Name + " is not ready"
	}
	return true, ""
}

// updateGate tells when the gate's answer changed. Holding the lock over the
// event keeps the events in order.
func (s *Supervisor) updateGate() {
	s.gateMu.Lock()
	defer s.gateMu.Unlock()
	open, reason := s.gateNow()
	if open == s.open {
		return
	}
	s.open = open
	call(s.opts.Events.Gate, Gate{Open: open, Reason: reason})
}

// Restart ends one process as a stop does (TERM, KILL after the grace) and
// starts it again at once, whatever state it is in: a process that waits or
// failed is started now, and its failures are forgotten. It returns once the
// process was started, which does not mean that it is ready, or with the reason
// why it was not, which then counts as a failure. ctx bounds the wait alone: the
// restart goes on.
func (s *Supervisor) Restart(ctx context.Context, name string) error {
	l, err := s.loopOf(name)
	if err != nil {
		return err
	}
	result := make(chan error, 1)
	select {
	case l.restarts <- result:
	case <-ctx.Done():
		return fmt.Errorf("restarting %s: %w", name, ctx.Err())
	case <-l.ended:
		return fmt.Errorf("restarting %s: it is not kept running any more", name)
	}
	select {
	case err = <-result:
	case <-ctx.Done():
		err = ctx.Err()
	case <-l.ended:
		err = errStopping
	}
	if err != nil {
		return fmt.Errorf("restarting %s: %w", name, err)
	}
	return nil
}

func (s *Supervisor) loopOf(name string) (*processLoop, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var known []string
	for _, l := range s.loops {
		if l.proc.Name == name {
			return l, nil
		}
		known = append(known, l.proc.Name)
	}
	if len(known) == 0 {
		return nil, fmt.Errorf("restarting %s: nothing was started yet", name)
	}
	return nil, fmt.Errorf("restarting %s: no process has that name: there is %s", name, strings.Join(known, ", "))
}

// Usage measures each process, in the order given to New. It reads files of the
// system for every process there is: ask every few seconds, not in a loop.
func (s *Supervisor) Usage() []Usage {
	s.mu.Lock()
	loops := s.loops
	s.mu.Unlock()
	all := make([]Usage, len(s.procs))
	for i := range s.procs {
		if loops != nil {
			all[i] = loops[i].usage()
		}
		all[i].Process = s.procs[i].Name
	}
	return all
}
