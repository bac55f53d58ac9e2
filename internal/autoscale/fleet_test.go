package autoscale

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestProtection(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	long, short, none := Work{2, time.Minute}, Work{9, time.Second}, Work{}
	for _, c := range []struct {
		name  string
		after time.Duration
		work  []Work
		want  string
	}{
		{"idle", 0, []Work{none, none}, "--"},
		{"short work needs none", 0, []Work{short, short, short}, "---"},
		{"long work, then a while", 0, []Work{long, long, none, none, none, none}, "++++--"},
		{"long work with short breaks", 0, []Work{long, none, short, long, none, none, none}, "++++++-"},
		{"any work", -1, []Work{short, none, none, none}, "+++-"},
		{"a duration without work", 0, []Work{{0, time.Hour}}, "-"},
	} {
		var s protectionState
		got := ""
		for i, w := range c.work {
			s = s.next(w, c.after, now.Add(time.Duration(i)*10*time.Second))
			got += map[bool]string{true: "+", false: "-"}[s.on]
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

type guardFunc func(context.Context, bool) error

func (f guardFunc) Protect(ctx context.Context, on bool) error { return f(ctx, on) }

func TestProtector(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var j recorder
		var refuse synchronized[error]
		var busy atomic.Bool
		began := time.Now()
		p := &Protector{
			Guard: guardFunc(func(_ context.Context, on bool) error {
				j.add("%v: set %v", time.Since(began), on)
				return refuse.get()
			}),
			Work: func() Work {
				if busy.Load() {
					return Work{1, time.Minute}
				}
				return Work{}
			},
			Events: j.events(),
		}
		stop := start(p.Run)
		pass := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		pass(time.Hour + time.Second)
		busy.Store(true)
		pass(time.Hour)
		busy.Store(false)
		pass(time.Minute)
		refuse.set(errors.New("throttled"))
		busy.Store(true)
		pass(time.Minute)
		refuse.set(nil)
		pass(time.Minute)
		stop()
		want := []string{
			"0s: set false",
			"1h0m5s: set true", "protected true",
			"2h0m30s: set false", "protected false",
			"2h1m5s: set true", "setting scale-in protection: throttled (1)",
			"2h1m15s: set true", "setting scale-in protection: throttled (2)",
			"2h1m35s: set true", "setting scale-in protection: throttled (3)",
			"2h2m15s: set true", "protected true",
			"2h3m1s: set false", "protected false",
		}
		if diff := cmp.Diff(want, j.take()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestProtectionIsRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var j recorder
		began := time.Now()
		calls := 0
		p := &Protector{
			Guard: guardFunc(func(_ context.Context, on bool) error {
				j.add("%v: set %v", time.Since(began), on)
				if calls++; calls == 2 {
					return errors.New("no answer")
				}
				return nil
			}),
			Work: func() Work {
				if time.Since(began) < 70*time.Minute {
					return Work{1, time.Minute}
				}
				return Work{}
			},
			Renew: 30 * time.Minute, Events: j.events(),
		}
		stop := start(p.Run)
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		stop()
		want := []string{
			"0s: set true", "protected true",
			"30m0s: set true", "setting scale-in protection: no answer (1)",
			"30m10s: set true",
			"1h0m10s: set true",
			"1h10m25s: set false", "protected false",
		}
		if diff := cmp.Diff(want, j.take()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestProtectionOfAnEarlierProcessIsRemoved(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		busy bool
		want []string
	}{
		{false, []string{"set false", "setting scale-in protection: no answer (1)"}},
		{true, []string{"set true", "setting scale-in protection: no answer (1)", "set false",
			"setting scale-in protection: no answer (2)"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var j recorder
			p := &Protector{
				Guard: guardFunc(func(_ context.Context, on bool) error { j.add("set %v", on); return errors.New("no answer") }),
				Work: func() Work {
					if c.busy {
						return Work{1, time.Minute}
					}
					return Work{}
				},
				Events: j.events(),
			}
			stop := start(p.Run)
			time.Sleep(2 * time.Second)
			stop()
			if diff := cmp.Diff(c.want, j.take()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

type group struct {
	j       *recorder
	leaving atomic.Bool
	silent  atomic.Bool
	refuse  atomic.Int64
}

func (g *group) chosen(context.Context) (bool, error) {
	if g.silent.Load() {
		return true, errors.New("no metadata")
	}
	return g.leaving.Load(), nil
}

func (g *group) Heartbeat(context.Context) error { g.j.add("heartbeat"); return nil }
func (g *group) Complete(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if g.refuse.Add(-1) >= 0 {
		return errors.New("throttled")
	}
	g.j.add("complete")
	return nil
}

func TestTermination(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		drain  time.Duration
		refuse int64
		want   string
	}{
		{"at once", 0, 0, "terminating, complete, terminated <nil>"},
		{"after a minute", time.Minute + time.Second, 0,
			"terminating, heartbeat, heartbeat, heartbeat, heartbeat, complete, terminated <nil>"},
		{"refused twice", 0, 2, "terminating, completing the lifecycle hook: throttled (1), " +
			"completing the lifecycle hook: throttled (2), complete, terminated <nil>"},
		{"refused for good", 0, 99, "terminating, 1, 2, 3, 4, 5, terminated throttled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var j recorder
				g := &group{j: &j}
				g.refuse.Store(c.refuse)
				d := &Termination{Chosen: g.chosen, Hook: g, Events: j.events(),
					Drain: func(context.Context) error { time.Sleep(c.drain); return nil }}
				stop := start(d.Run)
				time.Sleep(time.Hour)
				if lines := j.take(); len(lines) != 0 {
					t.Errorf("before anything: %v", lines)
				}
				g.leaving.Store(true)
				time.Sleep(time.Hour)
				synctest.Wait()
				got := strings.Join(j.take(), ", ")
				if c.refuse == 99 {
					for i := range completionAttempts {
						got = strings.Replace(got, fmt.Sprintf("completing the lifecycle hook: throttled (%d)", i), fmt.Sprint(i), 1)
					}
				}
				if got != c.want {
					t.Errorf("it went\n%s, want\n%s", got, c.want)
				}
				stop()
			})
		})
	}
}

func TestTerminationCompletesTheHookWhenCanceled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var j recorder
		g := &group{j: &j}
		d := &Termination{Chosen: g.chosen, Hook: g, Events: j.events(),
			Drain: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		stop := start(d.Run)
		time.Sleep(time.Minute)
		stop()
		if lines := j.take(); len(lines) != 0 {
			t.Errorf("a stop without a termination: %v", lines)
		}
		g.leaving.Store(true)
		g.silent.Store(true)
		stop = start(d.Run)
		time.Sleep(7 * time.Second)
		synctest.Wait()
		g.silent.Store(false)
		time.Sleep(5 * time.Second)
		g.refuse.Store(2)
		began := time.Now()
		if stop(); time.Since(began) != 0 {
			t.Errorf("the stop took %v", time.Since(began))
		}
		want := []string{
			"checking for termination: no metadata (1)", "checking for termination: no metadata (2)",
			"terminating",
			"completing the lifecycle hook: throttled (1)", "completing the lifecycle hook: throttled (2)",
			"complete", "terminated context canceled",
		}
		if diff := cmp.Diff(want, j.take()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestReporter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var j recorder
		var in synchronized[Inputs]
		var refuse synchronized[error]
		var notLeader atomic.Bool
		in.set(Inputs{Backlog: readingOf(90), OldestAge: readingOf(12)})
		r := &Reporter{
			Load:      in.get,
			Publish:   func(_ context.Context, m []Metric) error { j.add("%v", m); return refuse.get() },
			Instances: func(context.Context) (int, error) { return 4, nil },
			IsLeader:  func() bool { return !notLeader.Load() },
			Events:    j.events(),
		}
		stop := start(r.Run)
		pass := func() { time.Sleep(time.Minute); synctest.Wait() }
		time.Sleep(time.Second)
		synctest.Wait()
		in.set(Inputs{Backlog: readingOf(90)})
		refuse.set(errors.New("throttled"))
		pass()
		in.set(Inputs{})
		pass()
		in.set(Inputs{Backlog: readingOf(1)})
		notLeader.Store(true)
		pass()
		stop()
		want := []string{
			"[{BacklogPerInstance 22.5 Count} {OldestAgeSeconds 12 Seconds}]",
			"[{BacklogPerInstance 22.5 Count}]", "publishing the load: throttled (1)",
		}
		if diff := cmp.Diff(want, j.take()); diff != "" {
			t.Error(diff)
		}
	})
}
