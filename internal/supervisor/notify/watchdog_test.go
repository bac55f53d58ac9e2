package notify

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

type watchdogHarness struct {
	*Systemd
	start    time.Time
	notified []time.Duration
	skipped  []time.Duration
	failures []error
}

func newWatchdogHarness(within time.Duration, err error) *watchdogHarness {
	w := &watchdogHarness{start: time.Now()}
	w.Systemd = New(Events{
		WatchdogSkipped: func(got time.Duration) {
			if got != within {
				w.failures = append(w.failures, errors.New("skipped with "+got.String()))
			}
			w.skipped = append(w.skipped, time.Since(w.start))
		},
		SendFailed: func(err error) { w.failures = append(w.failures, err) },
	})
	w.watchdogTimeout = func() (time.Duration, error) { return within, err }
	w.write = func(message string) error {
		if message != "WATCHDOG=1" {
			return errors.New("sent " + message)
		}
		w.notified = append(w.notified, time.Since(w.start))
		return nil
	}
	return w
}

func (w *watchdogHarness) run(t *testing.T, d time.Duration, alive func() bool) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	w.Watchdog(ctx, alive)
}

func TestWatchdogIsNotifiedTwiceWithinItsTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatchdogHarness(30*time.Second, nil)
		w.run(t, 50*time.Second, func() bool { return true })
		if want := []time.Duration{0, 15 * time.Second, 30 * time.Second, 45 * time.Second}; !slices.Equal(w.notified, want) {
			t.Errorf("notified at %v, want %v", w.notified, want)
		}
		if len(w.skipped) != 0 || len(w.failures) != 0 {
			t.Errorf("skipped at %v, failures %v", w.skipped, w.failures)
		}
	})
}

func TestWatchdogIsSkippedWhileTheCheckFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatchdogHarness(16*time.Second, nil)
		dead := func(at time.Duration) bool {
			return at >= 10*time.Second && at < 19*time.Second || at >= 40*time.Second
		}
		w.run(t, 80*time.Second, func() bool { return !dead(time.Since(w.start)) })
		if slices.ContainsFunc(w.notified, dead) {
			t.Errorf("notified at %v, also while the check fails", w.notified)
		}
		want := []time.Duration{0, 8 * time.Second, 19 * time.Second, 27 * time.Second, 35 * time.Second}
		if !slices.Equal(w.notified, want) {
			t.Errorf("notified at %v, want %v", w.notified, want)
		}
		if want := []time.Duration{16 * time.Second, 43 * time.Second}; !slices.Equal(w.skipped, want) {
			t.Errorf("skipped at %v, want %v", w.skipped, want)
		}
	})
}

func TestHangingCheckSkipsTheWatchdog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatchdogHarness(10*time.Second, nil)
		calls := 0
		w.run(t, 45*time.Second, func() bool {
			if calls++; calls == 3 {
				time.Sleep(33 * time.Second)
			}
			return true
		})
		if want := []time.Duration{0, 5 * time.Second, 43 * time.Second}; !slices.Equal(w.notified, want) {
			t.Errorf("notified at %v, want %v", w.notified, want)
		}
	})
}

func TestWatchdogReturnsWithoutATimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, within := range []time.Duration{0, -time.Second} {
			w := newWatchdogHarness(within, nil)
			w.Watchdog(t.Context(), func() bool { t.Error("alive was called"); return true })
		}
		w := newWatchdogHarness(time.Second, errors.New("no number"))
		w.Watchdog(t.Context(), func() bool { t.Error("alive was called"); return true })
		if len(w.failures) != 1 {
			t.Errorf("an invalid timeout was reported as %v", w.failures)
		}
	})
}

func TestWatchdogReadsTheVariablesOfTheUnit(t *testing.T) {
	for _, c := range []struct {
		name, usec, pid string
		want            bool
	}{
		{"this process", "50000", strconv.Itoa(os.Getpid()), true},
		{"any process", "50000", "", true},
		{"another process", "50000", "1", false},
		{"none", "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, s := newSystemdSocket(t), newPatient(failOnError(t))
			t.Setenv("WATCHDOG_USEC", c.usec)
			t.Setenv("WATCHDOG_PID", c.pid)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			checks := 0
			s.Watchdog(ctx, func() bool {
				if checks++; checks == 2 {
					cancel() // after the second notification, which an old kernel's short queue still takes
				}
				return true
			})
			if (checks > 0) != c.want {
				t.Errorf("alive was called %d times", checks)
			}
			if !c.want {
				return
			}
			m.want("WATCHDOG=1")
			m.want("WATCHDOG=1")
		})
	}
}

func TestWithoutVariables(t *testing.T) {
	t.Parallel()
	given := []string{"PATH=/bin", "NOTIFY_SOCKET=/run/systemd/notify", "WATCHDOG_USEC=1", "WATCHDOG_PID=2",
		"NOTIFY_SOCKETS=3", "WATCHDOG=4", "ODD"}
	before := slices.Clone(given)
	want := []string{"PATH=/bin", "NOTIFY_SOCKETS=3", "WATCHDOG=4", "ODD"}
	if got := WithoutVariables(given); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !slices.Equal(given, before) {
		t.Errorf("the given environment was changed to %q", given)
	}
}
