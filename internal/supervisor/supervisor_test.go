package supervisor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestGateFollowsReadiness(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{lasts: 50 * time.Second, exit: Exit{Code: 9}}, life{lasts: never})
		m.setReady(false)
		s := m.supervisor(Options{ReadyLateAfter: time.Second, HealthInterval: 10 * time.Second}, web())
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(2050 * time.Millisecond)
		if st := s.Status()[0]; st.State != Running || st.Ready || st.Reason != "nothing listens" {
			t.Errorf("status %+v, want running and not ready", st)
		}
		m.setReady(true)
		time.Sleep(20 * time.Second)
		m.setReady(false)
		time.Sleep(15 * time.Second)
		m.setReady(true)
		time.Sleep(20 * time.Second)
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.wantTranscript(`
			0s web started, pid 101
			1s web not ready after 1s: nothing listens
			2s web not ready after 2s: nothing listens
			2.1s web ready after 2.1s
			2.1s gate open
			23.1s gate closed: web is not ready: nothing listens
			23.1s not ready: web is not ready: nothing listens
			24.1s web not ready after 12s: nothing listens
			28.1s web not ready after 16s: nothing listens
			37.1s web ready after 25s
			37.1s gate open
			50s gate closed: web exited
			50s not ready: web exited
			50s web exited, pid 101, exit status 9 after 50s
			50s web restarts in 500ms, failure 1/10
			50.5s web started, pid 102
			50.5s web ready after 0s
			50.5s gate open
			57.05s gate closed: the app is being stopped
			57.05s not ready: web is being stopped
			57.05s -> terminated
			57.05s web exited, pid 102, killed by SIGTERM after 6.55s`)
	})
}

func TestHelpersDoNotCloseTheGate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{lasts: never}, life{lasts: time.Second, exit: Exit{Code: 1}}, life{lasts: never})
		s := m.supervisor(Options{}, web(), Process{Name: "helper", Argv: []string{"app"}})
		both := s.newSystem
		s.newSystem = func() *system {
			sys := both()
			start := sys.start
			sys.start = func(p *Process, out *output) (*child, error) {
				if p.Name == "helper" {
					time.Sleep(time.Millisecond)
				}
				return start(p, out)
			}
			return sys
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(1200 * time.Millisecond)
		if st := s.Status(); !s.Ready() || st[1].State != Waiting {
			t.Errorf("ready %t while the helper is %s, want true and waiting", s.Ready(), st[1].State)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestTakenPortIsWaitedForABit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{lasts: never})
		m.setTaken(true)
		time.AfterFunc(950*time.Millisecond, func() { m.setTaken(false) })
		s := m.supervisor(Options{}, web())
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if waited := time.Since(m.began); waited != time.Second {
			t.Errorf("started after %s, want 1s", waited)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestTakenPortRefusesTheStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{lasts: never})
		m.setTaken(true)
		s := m.supervisor(Options{}, web(), Process{Name: "clock", Shell: "app"})
		err := s.Run(t.Context())
		var port *PortError
		if !errors.As(err, &port) || port.Port != 5000 || port.Process != "web" {
			t.Fatalf("Run = %v, want a PortError", err)
		}
		if m.starts != 1 || s.Status()[1].State != Stopped || s.Ready() {
			t.Errorf("%d starts, clock is %s: want the clock started and stopped again", m.starts, s.Status()[1].State)
		}
		synctest.Wait()
		if !m.closed {
			t.Error("the system was not closed")
		}
	})
}

func TestTakenPortAtARestartCounts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{lasts: time.Second, exit: Exit{Code: 1}})
		time.AfterFunc(time.Second, func() { m.setTaken(true) })
		err := m.supervisor(Options{RestartLimit: 1}, web()).Run(t.Context())
		var port *PortError
		if !errors.As(err, &port) || !strings.Contains(err.Error(), "web failed 2 times") {
			t.Errorf("Run = %v, want a failure because of the port", err)
		}
	})
}

func TestStartFailsWhereNothingCanBeStarted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{startErr: errors.New("no such program")})
		s := m.supervisor(Options{}, web())
		err := s.Start(t.Context())
		if err == nil || err.Error() != "process web: no such program" {
			t.Errorf("Start = %v", err)
		}
		if st := s.Status()[0]; st.State != Stopped || st.Reason != "no such program" {
			t.Errorf("status %+v", st)
		}
	})
}

func TestStartIsBoundByItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{lasts: never})
		m.setTaken(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := m.supervisor(Options{}, web()).Start(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Start = %v, want the context's end", err)
		}
		if m.starts != 0 || time.Since(m.began) != time.Second {
			t.Errorf("%d starts, after %s", m.starts, time.Since(m.began))
		}
	})
}

func TestASupervisorStartsOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{lasts: never})
		s := m.supervisor(Options{}, web())
		if st := s.Status(); len(st) != 1 || st[0].Name != "web" || st[0].State != Stopped {
			t.Errorf("status before the start: %+v", st)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := s.Start(t.Context()); err == nil {
			t.Error("a second start succeeds")
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		unstarted := m.supervisor(Options{}, web())
		if err := unstarted.Stop(t.Context()); err != nil {
			t.Errorf("stopping before the start: %v", err)
		}
		if err := unstarted.Start(t.Context()); err == nil {
			t.Error("a start after the stop succeeds")
		}
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{lasts: never, onTerm: never})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := m.supervisor(Options{}, web()).Run(ctx); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		if took := time.Since(m.began); took != 70*time.Second {
			t.Errorf("ended after %s, want a minute and the grace", took)
		}
	})
}

func TestReadyAppIsNotConnectedToWhileItsPortIsTaken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{lasts: never})
		s := m.supervisor(Options{}, web())
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		m.setTaken(true)
		time.Sleep(time.Hour)
		if m.probes != 1 || !s.Ready() {
			t.Errorf("%d connections, ready %t", m.probes, s.Ready())
		}
		last := time.Now()
		m.setTaken(false)
		m.setReady(false)
		time.Sleep(7 * time.Second)
		if st := s.Status()[0]; st.Ready || last.Sub(st.LastReady) > 5*time.Second || st.LastReady.After(last) {
			t.Errorf("7 s after it closed its port: %+v", st)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
