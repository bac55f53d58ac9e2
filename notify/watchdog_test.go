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

// watched is a watchdog in virtual time, and what it did when.
type watchdogHarness struct {
	*Systemd
	begin    time.Time
	told     []time.Duration
	withheld []time.Duration
	unsent   []error
}

func newWatchdogHarness(within time.Duration, err error) *watchdogHarness {
	w := &watchdogHarness{begin: time.Now()}
	w.Systemd = New(&Options{Events: Events{
		Withheld: func(h Withheld) {
			if h.Within != within {
				w.unsent = append(w.unsent, errors.New("withheld with "+h.Within.String()))
			}
			w.withheld = append(w.withheld, time.Since(w.begin))
		},
		Unsent: func(u Unsent) { w.unsent = append(w.unsent, u.Err) },
	}})
	w.watchdogTimeout = func() (time.Duration, error) { return within, err }
	w.write = func(message string) error {
		if message != "WATCHDOG=1" {
			return errors.New("sent " + message)
		}
		w.told = append(w.told, time.Since(w.begin))
		return nil
	}
	return w
}

// run watches for a time.
func (w *watchdogHarness) run(t *testing.T, d time.Duration, alive func() bool) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	w.Watchdog(ctx, alive)
}

func TestTheWatchdogIsToldTwiceInItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatchdogHarness(30*time.Second, nil)
		w.run(t, 50*time.Second, func() bool { return true })
		if want := []time.Duration{0, 15 * time.Second, 30 * time.Second, 45 * time.Second}; !slices.Equal(w.told, want) {
			t.Errorf("told at %v, want %v", w.told, want)
		}
		if len(w.withheld) != 0 || len(w.unsent) != 0 {
			t.Errorf("withheld at %v, unsent %v", w.withheld, w.unsent)
		}
	})
}

func TestTheWatchdogIsNotToldOfADeadLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatchdogHarness(16*time.Second, nil)
		dead := func(at time.Duration) bool {
			return at >= 10*time.Second && at < 19*time.Second || at >= 40*time.Second
		}
		w.run(t, 80*time.Second, func() bool { return !dead(time.Since(w.begin)) })
		if slices.ContainsFunc(w.told, dead) {
			t.Errorf("told at %v, also while dead", w.told)
		}
		// Asked again each second after a no, and told as soon as it lives.
		if want := []time.Duration{0, 8 * time.Second, 19 * time.Second, 27 * time.Second, 35 * time.Second}; !slices.Equal(w.told, want) {
			t.Errorf("told at %v, want %v", w.told, want)
		}
		if want := []time.Duration{16 * time.Second, 43 * time.Second}; !slices.Equal(w.withheld, want) {
			t.Errorf("withheld at %v, want %v", w.withheld, want)
		}
	})
}

func TestAHangingCheckKeepsTheWatchdogSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatchdogHarness(10*time.Second, nil)
		asked := 0
		w.run(t, 45*time.Second, func() bool {
			if asked++; asked == 3 {
				time.Sleep(33 * time.Second)
			}
			return true
		})
		if want := []time.Duration{0, 5 * time.Second, 43 * time.Second}; !slices.Equal(w.told, want) {
			t.Errorf("told at %v, want %v", w.told, want)
		}
	})
}

func TestAWatchdogThatIsNotOurs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, within := range []time.Duration{0, -time.Second} {
			w := newWatchdogHarness(within, nil)
			w.Watchdog(t.Context(), func() bool { t.Error("asked"); return true })
		}
		w := newWatchdogHarness(time.Second, errors.New("no number"))
		w.Watchdog(t.Context(), func() bool { t.Error("asked"); return true })
		if len(w.unsent) != 1 {
			t.Errorf("a limit that cannot be read was told as %v", w.unsent)
		}
	})
}

// The real variables, and the real socket.
func TestTheWatchdogOfAUnit(t *testing.T) {
	for _, c := range []struct {
		name, usec, pid string
		watchdogHarness         bool
	}{
		{"this process", "50000", strconv.Itoa(os.Getpid()), true},
		{"any process", "50000", "", true},
		{"another process", "50000", "1", false},
		{"none", "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, s := newSystemdSocket(t), New(failOnUnsent(t))
			t.Setenv("WATCHDOG_USEC", c.usec)
			t.Setenv("WATCHDOG_PID", c.pid)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); s.Watchdog(ctx, func() bool { return true }) }()
			if c.watchdogHarness {
				m.want("WATCHDOG=1")
				m.want("WATCHDOG=1")
				cancel()
			}
			<-done
			cancel()
		})
	}
}

func TestVariablesAreKeptFromChildren(t *testing.T) {
	t.Parallel()
	given := []string{"PATH=/bin", "NOTIFY_SOCKET=/run/systemd/notify", "WATCHDOG_USEC=1", "WATCHDOG_PID=2", "NOTIFY_SOCKETS=3", "WATCHDOG=4", "ODD"}
	before := slices.Clone(given)
	if got, want := WithoutVariables(given), []string{"PATH=/bin", "NOTIFY_SOCKETS=3", "WATCHDOG=4", "ODD"}; !slices.Equal(got, want) {
		t.Errorf("children get %q, want %q", got, want)
	}
	if !slices.Equal(given, before) {
		t.Errorf("the environment given became %q", given)
	}
}
