package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const never = -1

type life struct {
	startErr error
	lasts    time.Duration
	exit     Exit
	// onTerm is the time from SIGTERM to the exit; never means that SIGTERM is ignored.
	onTerm time.Duration
	// others is how long descendants survive SIGTERM; 0 means no descendants.
	others   time.Duration
	immortal bool
}

type machine struct {
	t     *testing.T
	lives []life
	began time.Time

	mu         sync.Mutex
	starts     int
	probes     int
	current    *fakeGroup
	ready      bool
	taken      bool
	foreign    string
	transcript []string
	closed     bool
}

func newMachine(t *testing.T, lives ...life) *machine {
	return &machine{t: t, lives: lives, began: time.Now(), ready: true}
}

func (m *machine) supervisor(opts Options, procs ...Process) *Supervisor {
	m.t.Helper()
	opts.Events = m.events()
	s, err := New(procs, &opts)
	if err != nil {
		m.t.Fatal(err)
	}
	s.newSystem = func() *system {
		return &system{
			start:  m.start,
			probe:  m.probe,
			taken:  m.portTaken,
			random: func() float64 { return 1 },
			close:  func() { m.closed = true },
		}
	}
	return s
}

func (s *Supervisor) Run(ctx context.Context) error {
	failed := make(chan *FailedError, len(s.loops))
	gaveUp := s.opts.Events.GaveUp
	s.opts.Events.GaveUp = func(e GaveUp) {
		callIfSet(gaveUp, e)
		failed <- e.Err
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Grace+killWait)
	defer cancel()
	err = errors.Join(err, s.Stop(bounded))
	s.awaitOutput()
	return err
}

// awaitOutput waits for all output, because Stop waits only briefly for a slow callback.
func (s *Supervisor) awaitOutput() {
	for _, l := range s.loops {
		if l.out != nil {
			<-l.out.drained
		}
	}
}

func (s *Supervisor) Ready() bool {
	open, _ := s.gateNow()
	return open
}

func (m *machine) start(p *Process, _ *output) (*child, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lives[min(m.starts, len(m.lives)-1)]
	m.starts++
	if l.startErr != nil {
		return nil, l.startErr
	}
	g := &fakeGroup{m: m, life: l, done: make(chan struct{})}
	if l.others != 0 {
		g.others = true
	}
	m.current = g
	if l.lasts != never {
		time.AfterFunc(l.lasts, func() { g.end(l.exit) })
	}
	return &child{pid: 100 + m.starts, exited: g.done, group: g, foreignListener: func(int) (string, bool) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.foreign, m.foreign != ""
	}}, nil
}

func (m *machine) probe(context.Context, Check) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.probes++
	if m.ready {
		return nil
	}
	return errors.New("nothing listens")
}

func (m *machine) portTaken(int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.taken
}

func (m *machine) setReady(ready bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ready = ready
}

func (m *machine) setTaken(taken bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken = taken
}

func (m *machine) note(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.transcript = append(m.transcript, fmt.Sprintf("%-6s ", time.Since(m.began))+fmt.Sprintf(format, args...))
}

func (m *machine) events() Events {
	return Events{
		Started:   func(e Started) { m.note("%s started, pid %d", e.Process, e.PID) },
		Ready:     func(e Ready) { m.note("%s ready after %s", e.Process, e.After) },
		ReadyLate: func(e ReadyLate) { m.note("%s not ready after %s: %s", e.Process, e.After, e.Reason) },
		NotReady:  func(e NotReady) { m.note("not ready: %s", e.Reason) },
		Exited:    func(e Exited) { m.note("%s exited, pid %d, %s after %s", e.Process, e.PID, e.Exit, e.Exit.Ran) },
		Restarting: func(e Restarting) {
			m.note("%s restarts in %s, failure %d/%d", e.Process, e.Delay, e.Failures, e.Limit)
			if e.OnTrial {
				m.note("which is a trial")
			}
		},
		GaveUp: func(e GaveUp) { m.note("gave up: %v", e.Err) },
		Killed: func(e Killed) { m.note("%s killed, pid %d: %s", e.Process, e.PID, e.Reason) },
		Gate: func(e Gate) {
			if e.Open {
				m.note("gate open")
			} else {
				m.note("gate closed: %s", e.Reason)
			}
		},
	}
}

type fakeGroup struct {
	m    *machine
	life life
	done chan struct{}

	mu     sync.Mutex
	over   bool
	others bool
	exit   Exit
}

func (g *fakeGroup) signal(sig syscall.Signal) {
	if sig != syscall.SIGCONT {
		g.m.note("-> %v", sig)
	}
	switch sig {
	case syscall.SIGTERM:
		if g.life.onTerm != never {
			time.AfterFunc(g.life.onTerm, func() { g.end(Exit{Code: -1, Signal: "SIGTERM"}) })
		}
		if g.life.others > 0 {
			time.AfterFunc(g.life.others, g.endOthers)
		}
	case syscall.SIGKILL:
		if g.life.immortal {
			return
		}
		g.end(Exit{Code: -1, Signal: "SIGKILL"})
		time.AfterFunc(time.Millisecond, g.endOthers)
	}
}

func (g *fakeGroup) empty() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.others
}

func (g *fakeGroup) reap() Exit {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.over {
		g.m.t.Error("reaped before it ended")
	}
	return g.exit
}

func (g *fakeGroup) end(exit Exit) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.over {
		g.over, g.exit = true, exit
		close(g.done)
	}
}

func (g *fakeGroup) endOthers() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.others = false
}

func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}
