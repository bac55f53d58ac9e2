package supervisor

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func startIn(t *testing.T, s *Supervisor) {
	t.Helper()
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func TestAnExcusedEndDoesNotCount(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{lasts: time.Second, exit: Exit{Code: 1}})
		var asked []string
		n := 0
		s := m.supervisor(Options{RestartLimit: 1, Excused: func(process string, e Exit) bool {
			asked = append(asked, process+" "+e.String())
			n++
			return n != 2
		}}, Process{Name: "w", Shell: "app"})
		startIn(t, s)
		time.Sleep(20 * time.Second)
		if st := s.Status()[0]; st.State == Failed || st.Restarts != 13 {
			t.Errorf("status %+v, want 13 restarts of which one counts", st)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(asked) != 13 || asked[0] != "w exit status 1" {
			t.Errorf("asked %d times: %q", len(asked), asked)
		}
		for i, line := range m.transcript {
			if strings.Contains(line, "restarts in") && !strings.Contains(line, "restarts in 500ms") {
				t.Errorf("line %d: %s, want the shortest pause", i, line)
			}
		}
	})
}

func TestAFailedStartIsNotExcused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{lasts: time.Second, exit: Exit{Code: 1}}, life{startErr: errors.New("no such program")})
		err := m.supervisor(Options{RestartLimit: 2, Excused: func(_ string, e Exit) bool {
			return true
		}}, web()).Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "web failed 3 times") {
			t.Errorf("Run = %v, want it to give up on starts that fail", err)
		}
	})
}

func TestACrashLoopIsTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		bad := life{exit: Exit{Code: 1}}
		m := newMachine(t, bad, bad, bad, bad, life{lasts: time.Hour, exit: Exit{Code: 2}}, life{lasts: never})
		s := m.supervisor(Options{RestartLimit: 1, RetryAfter: time.Minute}, web())
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		if st := s.Status()[0]; st.State != Failed || s.Ready() ||
			!strings.HasPrefix(st.Reason, "web failed 2 times in 5m0s and is retried every 1m0s") {
			t.Errorf("status %+v, want failed", st)
		}
		if open, reason := s.gateNow(); open || !strings.HasPrefix(reason, "web failed 2 times") {
			t.Errorf("gate %t, %q", open, reason)
		}
		time.Sleep(3 * time.Hour)
		if st := s.Status()[0]; st.State != Running || !st.Ready {
			t.Errorf("status %+v, want running", st)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		var reported []string
		for _, line := range m.transcript {
			if strings.Contains(line, "gave up") || strings.Contains(line, "restarts in") || strings.Contains(line, "trial") {
				reported = append(reported, strings.Join(strings.Fields(line), " "))
			}
		}
		want := []string{
			"0s web restarts in 500ms, failure 1/1",
			"500ms gave up: web failed 2 times in 5m0s and is retried every 1m0s; last: exit status 1 after 0s",
			"500ms web restarts in 1m0s, failure 2/1", "500ms which is a trial",
			"1m0.5s web restarts in 1m0s, failure 2/1", "1m0.5s which is a trial",
			"2m0.5s web restarts in 1m0s, failure 2/1", "2m0.5s which is a trial",
			"1h3m0.5s web restarts in 500ms, failure 1/1",
		}
		if strings.Join(reported, "\n") != strings.Join(want, "\n") {
			t.Errorf("told\n%s\nwant\n%s", strings.Join(reported, "\n"), strings.Join(want, "\n"))
		}
	})
}

func TestAStopEndsTheWaitOfAFailedProcess(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{exit: Exit{Code: 1}})
		s := m.supervisor(Options{RestartLimit: -1, RetryAfter: time.Hour}, web())
		startIn(t, s)
		if st := s.Status()[0]; st.State != Failed {
			t.Fatalf("status %+v, want failed", st)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(m.began); took != 0 || s.Status()[0].State != Stopped {
			t.Errorf("stopped after %s as %s, want at once", took, s.Status()[0].State)
		}
	})
}

func TestForeignListenerOnThePortKeepsTheGateClosed(t *testing.T) {
	for _, tt := range []struct {
		name string
		proc Process
		open bool
	}{
		{"its own port", web(), false},
		{"a check elsewhere", Process{Name: "web", Shell: "app", Port: 5000, Check: Check{Port: 6000}}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := newMachine(t, life{lasts: never})
				m.foreign = "nginx (pid 7)"
				s := m.supervisor(Options{}, tt.proc)
				startIn(t, s)
				time.Sleep(time.Second)
				if s.Ready() != tt.open {
					t.Errorf("ready %t, want %t", s.Ready(), tt.open)
				}
				if st := s.Status()[0]; !tt.open && !strings.Contains(st.Reason, "already in use by nginx (pid 7)") {
					t.Errorf("reason %q", st.Reason)
				}
				m.mu.Lock()
				m.foreign = ""
				m.mu.Unlock()
				time.Sleep(time.Second)
				if !s.Ready() {
					t.Error("not ready once the foreign listener is gone")
				}
				if err := s.Stop(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}
