package supervisor

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestARestartEndsTheProcessAndStartsItAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{lasts: never, onTerm: 2 * time.Second})
		s := m.supervisor(Options{}, Process{Name: "clock", Shell: "app"})
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := s.Restart(t.Context(), "clock"); err != nil {
			t.Error(err)
		}
		if st := s.Status()[0]; st.State != Running || st.PID != 102 || st.Restarts != 0 {
			t.Errorf("after the restart it is %+v", st)
		}
		time.Sleep(time.Minute)
		if err := s.Restart(t.Context(), "other"); err == nil {
			t.Error("a process that there is not was restarted")
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Restart(t.Context(), "clock"); !errors.Is(err, errStopped) {
			t.Errorf("a restart after the stop: %v", err)
		}
		m.wantTranscript(`
			0s clock started, pid 101
			0s clock ready after 0s
			0s gate open
			1m0s not ready: clock is being restarted
			1m0s -> terminated
			1m2s clock exited, pid 101, killed by SIGTERM after 1m2s
			1m2s clock started, pid 102
			1m2s clock ready after 0s
			2m2s gate closed: the app is being stopped
			2m2s not ready: clock is being stopped
			2m2s -> terminated
			2m4s clock exited, pid 102, killed by SIGTERM after 1m2s`)
	})
}

func TestARestartDoesNotWaitForAPause(t *testing.T) {
	for name, retryAfter := range map[string]time.Duration{"tried again": time.Hour, "not tried again": 0} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				crash := life{lasts: time.Second, exit: Exit{Code: 1}}
				m := newMachine(t, crash, crash, life{lasts: never}, crash, life{lasts: never})
				s := m.supervisor(Options{RestartLimit: 1, RestartMin: time.Minute, RestartMax: time.Minute,
					RetryAfter: retryAfter}, Process{Name: "clock", Shell: "app"})
				if err := s.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
				if st := s.Status()[0]; st.State != Waiting {
					t.Errorf("it is %+v", st)
				}
				if err := s.Restart(t.Context(), "clock"); err != nil {
					t.Error(err)
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if st := s.Status()[0]; st.State != Running || st.PID != 103 {
					t.Errorf("the failure before the restart counts: %+v", st)
				}
				if err := s.Restart(t.Context(), "clock"); err != nil {
					t.Error(err)
				}
				time.Sleep(2 * time.Minute)
				if st := s.Status()[0]; st.State != Running || st.PID != 105 {
					t.Errorf("at the end it is %+v", st)
				}
				if err := s.Stop(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

func TestAProcessThatWasGivenUpIsRestarted(t *testing.T) {
	for name, retryAfter := range map[string]time.Duration{"tried again": time.Hour, "not tried again": 0} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := newMachine(t, life{lasts: time.Second, exit: Exit{Code: 1}}, life{lasts: never})
				s := m.supervisor(Options{RestartLimit: -1, RetryAfter: retryAfter}, Process{Name: "clock", Shell: "app"})
				if err := s.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				if st := s.Status()[0]; st.State != Failed {
					t.Errorf("it is %+v", st)
				}
				if err := s.Restart(t.Context(), "clock"); err != nil {
					t.Error(err)
				}
				if st := s.Status()[0]; st.State != Running || st.PID != 102 {
					t.Errorf("after the restart it is %+v", st)
				}
				if err := s.Stop(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

func TestRestartReturnsTheStartError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broken := errors.New("no such program")
		m := newMachine(t, life{lasts: never}, life{startErr: broken}, life{lasts: never})
		s := m.supervisor(Options{RestartMin: time.Minute, RestartMax: time.Minute}, Process{Name: "clock", Shell: "app"})
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Restart(t.Context(), "clock"); !errors.Is(err, broken) {
			t.Errorf("the restart: %v", err)
		}
		time.Sleep(2 * time.Minute)
		if st := s.Status()[0]; st.State != Running {
			t.Errorf("it is not tried again: %+v", st)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAProcessThatMayFinishIsRestartedAfterAFailureOnly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(t, life{lasts: time.Second, exit: Exit{Code: 3}}, life{lasts: time.Second}, life{lasts: never})
		s := m.supervisor(Options{RestartLimit: 1, RetryAfter: time.Minute},
			Process{Name: "worker", Shell: "app", MayFinish: true})
		startIn(t, s)
		time.Sleep(time.Hour)
		if st := s.Status()[0]; st.State != Finished || st.Restarts != 1 || st.LastExit.String() != "exit status 0" {
			t.Errorf("status %+v, want it finished after one restart", st)
		}
		if err := s.Restart(t.Context(), "worker"); err != nil {
			t.Error(err)
		}
		if st := s.Status()[0]; st.State != Running {
			t.Errorf("status %+v after the restart, want running", st)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
