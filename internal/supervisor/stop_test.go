package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestStopDuringWork(t *testing.T) {
	t.Parallel()
	w := newObserver(t)
	s, r := realSupervisor(t, Options{Grace: hangGuard}, self("worker", "exit-when-told", w))
	start(t, s)
	g := w.next()
	stopped := make(chan error)
	go func() { stopped <- s.Stop(context.Background()) }()
	if got := g.line(); got != "finishing" {
		t.Errorf("after TERM it says %q", got)
	}
	fmt.Fprintln(g.conn, "the job is done")
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	g.awaitGone()
	if len(r.killed) != 0 || len(r.exits) != 1 || r.exits[0].Exit.String() != "exit status 0" {
		t.Errorf("killed %v, exits %+v, want it to have ended by itself", r.killed, r.exits)
	}
}

func TestStopWithAStuckJob(t *testing.T) {
	t.Parallel()
	eachTreeKind(t, func(t *testing.T, with func(*Supervisor) *Supervisor) {
		const grace = 300 * time.Millisecond
		w, second := newObserver(t), bystander(t)
		s, r := realSupervisor(t, Options{Grace: grace}, self("worker", "ignore-term-with-daemons", w))
		start(t, with(s))
		children := []*reportingChild{w.next(), w.next(), w.next()}
		stop(t, s)
		for _, g := range children {
			g.awaitGone()
		}
		if len(r.killed) != 1 || r.exits[0].Exit.Signal != "SIGKILL" || r.exits[0].Exit.Ran < grace {
			t.Errorf("killed %v, exits %+v, want one KILL once the grace was over", r.killed, r.exits)
		}
		second.answers()
	})
}

func TestCrashLoopEndsAtItsLimit(t *testing.T) {
	t.Parallel()
	var started int
	s, r := realSupervisor(t, Options{
		RestartLimit: 4, RestartMin: time.Millisecond, RestartMax: 5 * time.Millisecond,
		Events: Events{Started: func(Started) { started++ }},
	}, Process{Name: "worker", Shell: "exit 9"})
	err := s.Run(t.Context())
	var failed *FailedError
	if !errors.As(err, &failed) || failed.Failures != 5 || failed.Last.Code != 9 {
		t.Errorf("Run = %v, want five failures", err)
	}
	if started != 5 || len(r.exits) != 5 {
		t.Errorf("%d starts, %d ends, want one and four restarts", started, len(r.exits))
	}
}

func TestCrashLoopLeavesTheRestRunning(t *testing.T) {
	t.Parallel()
	w := newObserver(t)
	gaveUp := make(chan GaveUp, 1)
	s, _ := realSupervisor(t, Options{
		RestartLimit: 2, RestartMin: time.Millisecond,
		Events: Events{GaveUp: func(g GaveUp) { gaveUp <- g }},
	}, Process{Name: "worker", Shell: "exit 9"}, self("helper", "idle", w))
	start(t, s)
	g := w.next()
	if e := <-gaveUp; e.Process != "worker" ||
		!strings.Contains(e.Err.Error(), "is not restarted") {
		t.Errorf("gave up %+v: %v", e, e.Err)
	}
	g.answers()
	if st := s.Status(); st[0].State != Failed || st[1].State != Running {
		t.Errorf("states %s and %s, want failed and running", st[0].State, st[1].State)
	}
	stop(t, s)
}
