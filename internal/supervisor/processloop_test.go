package supervisor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func web() Process { return Process{Name: "web", Shell: "app", Port: 5000} }

func (m *machine) wantTranscript(want string) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSpace(want), "\n") {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	var got []string
	for _, line := range m.transcript {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	if diff := cmp.Diff(lines, got); diff != "" {
		m.t.Errorf("transcript (-want +got):\n%s", diff)
	}
	if !m.closed {
		m.t.Error("the system was not closed")
	}
}

func TestStopEndsAHealthyProcess(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{lasts: never, onTerm: 2 * time.Second})
		s := m.supervisor(Options{}, web())
		if s.Ready() {
			t.Error("ready before the start")
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(time.Minute)
		if !s.Ready() {
			t.Error("not ready a minute after the start")
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Errorf("a second stop: %v", err)
		}
		if s.Ready() {
			t.Error("ready after the stop")
		}
		m.wantTranscript(`
			0s web started, pid 101
			0s web ready after 0s
			0s gate open
			1m0s gate closed: the app is being stopped
			1m0s not ready: web is being stopped
			1m0s -> terminated
			1m2s web exited, pid 101, killed by SIGTERM after 1m2s`)
	})
}

func TestTermIgnoredMeansKillAfterTheGrace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{lasts: never, onTerm: never, others: never})
		s := m.supervisor(Options{Grace: 7 * time.Second}, Process{Name: "clock", Shell: "app"})
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(time.Second)
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.wantTranscript(`
			0s clock started, pid 101
			0s clock ready after 0s
			0s gate open
			1s gate closed: the app is being stopped
			1s not ready: clock is being stopped
			1s -> terminated
			8s -> killed
			8s clock killed, pid 101: it did not exit within 7s
			8.005s clock exited, pid 101, killed by SIGKILL after 8s`)
	})
}

func TestOthersOfTheGroupGetTheRestOfTheGrace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{lasts: never, others: 2990 * time.Millisecond})
		s := m.supervisor(Options{}, Process{Name: "w", Shell: "app"})
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		m.wantTranscript(`
			0s w started, pid 101
			0s w ready after 0s
			0s gate open
			0s gate closed: the app is being stopped
			0s not ready: w is being stopped
			0s -> terminated
			3s w exited, pid 101, killed by SIGTERM after 0s`)
	})
}

func TestOthersThatOutlastTheGraceAreKilled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{lasts: never, onTerm: time.Second, others: never})
		s := m.supervisor(Options{Grace: 7 * time.Second}, Process{Name: "w", Shell: "app"})
		startIn(t, s)
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.wantTranscript(`
			0s w started, pid 101
			0s w ready after 0s
			0s gate open
			0s gate closed: the app is being stopped
			0s not ready: w is being stopped
			0s -> terminated
			7s -> killed
			7s w killed, pid 101: processes that it started did not exit within 7s
			7.005s w exited, pid 101, killed by SIGTERM after 1s`)
	})
}

func TestOthersOfACrashedProcessAreClearedBeforeTheRestart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t,
			life{lasts: time.Second, exit: Exit{Code: 3}, others: never},
			life{lasts: never})
		s := m.supervisor(Options{}, Process{Name: "w", Shell: "app"})
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(5 * time.Second)
		if st := s.Status()[0]; st.State != Ending || st.Reason != "processes that it started are still running" {
			t.Errorf("status while others live: %+v", st)
		}
		time.Sleep(20 * time.Second)
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.wantTranscript(`
			0s w started, pid 101
			0s w ready after 0s
			0s gate open
			1s not ready: w exited
			1s -> terminated
			11s -> killed
			11s w killed, pid 101: processes that it started did not exit within 10s
			11.005s w exited, pid 101, exit status 3 after 1s
			11.005s w restarts in 500ms, failure 1/10
			11.505s w started, pid 102
			11.505s w ready after 0s
			25s gate closed: the app is being stopped
			25s not ready: w is being stopped
			25s -> terminated
			25s w exited, pid 102, killed by SIGTERM after 13.495s`)
	})
}

func TestStopThatCannotWaitKills(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{lasts: never, onTerm: never})
		s := m.supervisor(Options{}, Process{Name: "w", Shell: "app"})
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		patient := make(chan error)
		go func() { patient <- s.Stop(context.Background()) }()
		time.Sleep(2 * time.Second)
		done, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Stop(done); err != nil {
			t.Errorf("the stop that could not wait: %v", err)
		}
		if err := <-patient; err != nil {
			t.Errorf("the stop that could wait: %v", err)
		}
		m.wantTranscript(`
			0s w started, pid 101
			0s w ready after 0s
			0s gate open
			0s gate closed: the app is being stopped
			0s not ready: w is being stopped
			0s -> terminated
			2s -> killed
			2s w killed, pid 101: the stop did not wait for it
			2s w exited, pid 101, killed by SIGKILL after 2s`)
	})
}

func TestStopGivesUpOnAProcessThatSurvivesKill(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, patience := range []time.Duration{time.Second, time.Hour} {
			m := newMachine(t, life{lasts: never, onTerm: never, immortal: true})
			s := m.supervisor(Options{}, Process{Name: "w", Shell: "app"})
			if err := s.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			began := time.Now()
			err := s.Stop(ctx)
			if err == nil || !strings.Contains(err.Error(), "after KILL: w (pid 101)") {
				t.Errorf("stop error = %v, want one that names the process", err)
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("a stop with %s for it took %s", patience, took)
			}
			m.current.end(Exit{})
			if err := s.Stop(t.Context()); err != nil {
				t.Errorf("once it is gone: %v", err)
			}
		}
	})
}

func TestCrashLoopGivesUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{exit: Exit{Code: 1}})
		m.setReady(false)
		s := m.supervisor(Options{RestartLimit: 3}, web())
		err := s.Run(t.Context())
		var failed *FailedError
		if !errors.As(err, &failed) || failed.Failures != 4 || failed.Process != "web" {
			t.Fatalf("Run = %v, want a FailedError after 4 failures", err)
		}
		if want := "web failed 4 times in 5m0s and is not restarted; last: exit status 1 after 0s"; err.Error() != want {
			t.Errorf("error %q, want %q", err, want)
		}
		m.wantTranscript(`
			0s web started, pid 101
			0s web exited, pid 101, exit status 1 after 0s
			0s web restarts in 500ms, failure 1/3
			500ms web started, pid 102
			500ms web exited, pid 102, exit status 1 after 0s
			500ms web restarts in 1s, failure 2/3
			1.5s web started, pid 103
			1.5s web exited, pid 103, exit status 1 after 0s
			1.5s web restarts in 2s, failure 3/3
			3.5s web started, pid 104
			3.5s web exited, pid 104, exit status 1 after 0s
			3.5s gave up: web failed 4 times in 5m0s and is not restarted; last: exit status 1 after 0s`)
		if st := s.Status()[0]; st.State != Stopped || st.Restarts != 3 || st.PID != 0 || st.LastExit.Code != 1 {
			t.Errorf("status %+v, want stopped after 3 restarts", st)
		}
	})
}

func TestDefaultCrashLoopEndsWithinTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{exit: Exit{Code: 1}})
		err := m.supervisor(Options{}, Process{Name: "w", Shell: "app"}).Run(t.Context())
		if err == nil || m.starts != 11 {
			t.Errorf("%d starts, error %v, want 11 and a failure", m.starts, err)
		}
		if took := time.Since(m.began); took != 151500*time.Millisecond {
			t.Errorf("gave up after %s, want 151.5s", took)
		}
	})
}

func TestStatusZeroIsAFailureToo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{lasts: time.Hour}, life{lasts: never})
		s := m.supervisor(Options{}, web())
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(61 * time.Minute)
		if st := s.Status()[0]; st.State != Running || !st.Ready || st.Restarts != 1 ||
			st.LastExit.String() != "exit status 0" {
			t.Errorf("status %+v, want running again", st)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestACommandThatCannotRunIsNotTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{exit: Exit{Code: 127}})
		missing := web()
		missing.Env = []string{"PATH=/no/such/folder"}
		err := m.supervisor(Options{}, missing).Run(t.Context())
		if want := `web failed and is not restarted: exit status 127: program "app" not found in PATH`; err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	})
	t.Run("later", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			m := newMachine(t, life{lasts: time.Minute, exit: Exit{Code: 1}}, life{exit: Exit{Code: 127}}, life{lasts: never})
			s := m.supervisor(Options{}, Process{Name: "w", Shell: "app"})
			if err := s.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Minute)
			if st := s.Status()[0]; st.State != Running || st.Restarts != 2 {
				t.Errorf("status %+v, want running after 2 restarts", st)
			}
			if err := s.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	})
}

func TestStopDuringThePause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{exit: Exit{Code: -1, Signal: "SIGSEGV"}})
		s := m.supervisor(Options{RestartMin: 20 * time.Second}, Process{Name: "w", Shell: "app"})
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(time.Second)
		if st := s.Status()[0]; st.State != Waiting || st.Reason != "w: killed by SIGSEGV" {
			t.Errorf("status %+v, want waiting", st)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(m.began); took != time.Second || s.Status()[0].State != Stopped {
			t.Errorf("stopped after %s as %s, want at once", took, s.Status()[0].State)
		}
	})
}

func TestOneGivenUpEndsTheRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		good, bad := newMachine(t, life{lasts: never}), newMachine(t, life{startErr: nil, exit: Exit{Code: 1}})
		s := good.supervisor(Options{RestartLimit: -1}, web(), Process{Name: "clock", Shell: "app"})
		both := s.newSystem
		s.newSystem = func() *system {
			sys := both()
			sys.start = func(p *Process, out *output) (*child, error) {
				if p.Name == "clock" {
					return bad.start(p, out)
				}
				return good.start(p, out)
			}
			return sys
		}
		err := s.Run(t.Context())
		if err == nil || !strings.HasPrefix(err.Error(), "clock failed") {
			t.Errorf("Run = %v, want the clock's failure", err)
		}
	})
}

func TestEndIsReportedBeforeTheGroupIsCleared(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t,
			life{lasts: time.Second, exit: Exit{Code: 9}, others: never},
			life{lasts: never, onTerm: 2 * time.Second, others: 2990 * time.Millisecond})
		s := m.supervisor(Options{}, Process{Name: "w", Shell: "app"})
		s.opts.Events.Ended = func(e Ended) { m.note("%s ended, pid %d", e.Process, e.PID) }
		s.opts.Excused = func(string, Exit) bool { m.note("is it excused?"); return true }
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(20 * time.Second)
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.wantTranscript(`
			0s w started, pid 101
			0s w ready after 0s
			0s gate open
			1s not ready: w exited
			1s w ended, pid 101
			1s -> terminated
			11s -> killed
			11s w killed, pid 101: processes that it started did not exit within 10s
			11.005s w exited, pid 101, exit status 9 after 1s
			11.005s is it excused?
			11.005s w restarts in 500ms, failure 0/10
			11.505s w started, pid 102
			11.505s w ready after 0s
			20s gate closed: the app is being stopped
			20s not ready: w is being stopped
			20s -> terminated
			22s w ended, pid 102
			23s w exited, pid 102, killed by SIGTERM after 10.495s`)
	})
}

func TestAStartThatIsUndoneCanBeHurried(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for patience, want := range map[time.Duration]time.Duration{time.Hour: 7 * time.Second,
			2 * time.Second: 2 * time.Second, 0: 0} {
			m := newMachine(t, life{lasts: never, onTerm: never}, life{startErr: errors.New("no such program")})
			hurry, cancel := context.WithTimeout(t.Context(), patience)
			s := m.supervisor(Options{Grace: 7 * time.Second, Hurry: hurry}, Process{Name: "a", Shell: "app"},
				Process{Name: "b", Shell: "app"})
			began := time.Now()
			if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "no such program") {
				t.Errorf("the start: %v", err)
			}
			if took := time.Since(began); took != want || !m.closed {
				t.Errorf("hurried after %s: it took %s, want %s", patience, took, want)
			}
			cancel()
		}
	})
}

func TestExitOfADaemonSaysToRunInTheForeground(t *testing.T) {
	for name, tt := range map[string]struct {
		life life
		want bool
	}{
		"others go on":         {life{others: 10 * time.Millisecond}, true},
		"nothing goes on":      {life{}, false},
		"it failed":            {life{exit: Exit{Code: 1}, others: 10 * time.Millisecond}, false},
		"it ran for some time": {life{lasts: time.Minute, others: 10 * time.Millisecond}, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				err := newMachine(t, tt.life).supervisor(Options{RestartLimit: -1}, web()).Run(t.Context())
				if err == nil || strings.Contains(err.Error(), "run it in the foreground") != tt.want {
					t.Errorf("%v; advised: want %t", err, tt.want)
				}
			})
		})
	}
}
