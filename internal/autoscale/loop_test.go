package autoscale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type target struct {
	mu     sync.Mutex
	size   int
	reads  int
	sets   []int
	failed error
	unread error
}

func (g *target) Size(context.Context) (int, int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reads++
	return g.size, g.size, g.unread
}

func (g *target) SetSize(_ context.Context, n int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sets = append(g.sets, n)
	if g.failed == nil {
		g.size = n
	}
	return g.failed
}

type synchronized[T any] struct {
	mu    sync.Mutex
	value T
}

func (b *synchronized[T]) set(v T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.value = v
}

func (b *synchronized[T]) get() T {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.value
}

func (g *target) fail(read, set error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unread, g.failed = read, set
}

type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (j *recorder) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *recorder) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := j.lines
	j.lines = nil
	return lines
}

func (j *recorder) events() Events {
	return Events{
		Decided: func(d Decided) {
			j.add("%s %d to %d %v %s", d.Decision.Rule, d.Decision.From, d.Decision.Desired, d.Applied, d.NotApplied)
		},
		Failed:      func(f Failed) { j.add("%s: %v (%d)", f.Doing, f.Err, f.Consecutive) },
		Protected:   func(on bool) { j.add("protected %v", on) },
		Terminating: func() { j.add("terminating") },
		Terminated:  func(err error) { j.add("terminated %v", err) },
	}
}

func start(run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { run(ctx); close(ended) }()
	return func() { cancel(); <-ended }
}

func newLoop(load func() Inputs, target Target, opts Options) *Loop {
	opts.Policy = withDefaults(opts.Policy)
	opts.Interval = 10 * time.Second
	return New(load, target, opts)
}

func TestLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var j recorder
		busy := func() Inputs { return measured(100, 1e6) }
		g := &target{size: 1}
		l := newLoop(busy, g, Options{Policy: Policy{MaxSize: 8}, Events: j.events()})
		stop := start(l.Run)
		time.Sleep(time.Minute - time.Second)
		synctest.Wait()
		stop()
		want := []string{"steady 1 to 1 false ", "out 1 to 5 true ", "out 5 to 8 true ", "limit 8 to 8 false "}
		if diff := cmp.Diff(want, j.take()); diff != "" {
			t.Error(diff)
		}
		s := l.Status()
		if s.Desired != 8 || s.Ready != 8 || len(s.Decisions) != 4 || s.Decisions[0].Decided.Decision.Rule != ruleLimit ||
			s.Decisions[0].Times != 3 || s.Inputs.Backlog.Value != 1e6 {
			t.Errorf("the status is %+v", s)
		}
		if s.Decisions[0].Until.Sub(s.Decisions[0].Decided.Decision.At) != 20*time.Second {
			t.Error("the last decision does not say how long it has been so")
		}
	})
}

func TestLoopSetsNothingUnlessLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var j recorder
		var isLeader synchronized[bool]
		g := &target{size: 1}
		l := newLoop(func() Inputs { return measured(100, 1e6) }, g,
			Options{IsLeader: isLeader.get, Events: j.events()})
		stop := start(l.Run)
		time.Sleep(35 * time.Second)
		synctest.Wait()
		if s := l.Status(); s.Desired != 4 {
			t.Errorf("the status is %+v", s)
		}
		isLeader.set(true)
		time.Sleep(10 * time.Second)
		stop()
		want := []string{"steady 1 to 1 false ", "out 1 to 4 false another instance is the leader", "out 1 to 4 true "}
		if diff := cmp.Diff(want, j.take()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]int{4}, g.sets); diff != "" {
			t.Error(diff)
		}
	})
}

func TestMetricReplacesTheMeasureOfTheInstances(t *testing.T) {
	t.Parallel()
	from := time.Unix(1_800_000_000, 0)
	for name, c := range map[string]struct {
		leader bool
		point  Datapoint
		err    error
		want   string
	}{
		"low":             {true, Datapoint{5, from, 3}, nil, "in 3 to 2 true "},
		"high":            {true, Datapoint{95, from, 3}, nil, "out 3 to 4 true "},
		"of one instance": {true, Datapoint{5, from, 1}, nil, "scale-in held 3 to 3 false "},
		"missing":         {true, Datapoint{}, nil, "missing 3 to 3 false "},
		"refused": {true, Datapoint{}, errors.New("denied"),
			"reading CPUUtilization: denied (1)\nmissing 3 to 3 false "},
		"of a follower": {false, Datapoint{95, from, 3}, nil, "missing 3 to 3 false "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var j recorder
				calls := 0
				l := newLoop(func() Inputs { return Inputs{CPU: readingOf(5), Busy: readingOf(0), Backlog: readingOf(0)} }, &target{size: 3}, Options{
					Policy: Policy{MaxSize: 8, Measure: CPUUtilization, Instances: true}, Events: j.events(),
					IsLeader: func() bool { return c.leader },
					Metric:   func(context.Context) (Datapoint, error) { calls++; return c.point, c.err },
				})
				stop := start(l.Run)
				time.Sleep(time.Second)
				stop()
				if got := strings.Join(j.take(), "\n"); got != c.want || (calls > 0) != c.leader {
					t.Errorf("after %d calls it went\n%s, want\n%s", calls, got, c.want)
				}
			})
		})
	}
}

func TestFollowersReadTheSizeSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var j recorder
		var isLeader synchronized[bool]
		g := &target{size: 1}
		var elected synchronized[bool]
		load := func() Inputs {
			if elected.get() {
				isLeader.set(true)
			}
			return measured(100, 1e6)
		}
		l := newLoop(load, g, Options{Policy: Policy{MaxSize: 16}, IsLeader: isLeader.get, Events: j.events()})
		stop := start(l.Run)
		time.Sleep(time.Hour - time.Second)
		synctest.Wait()
		if g.reads != 36 {
			t.Errorf("a follower read the size %d times in an hour, want 36", g.reads)
		}
		g.fail(errors.New("throttled"), nil)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if g.reads != 42 {
			t.Errorf("%d reads after 10 minutes in which they fail, want 6 more", g.reads-36)
		}
		g.fail(nil, nil)
		time.Sleep(15 * time.Second)
		synctest.Wait()
		g.mu.Lock()
		g.size = 8
		g.mu.Unlock()
		elected.set(true)
		j.take()
		time.Sleep(20 * time.Second)
		stop()
		want := []string{"out 8 to 16 true "}
		if diff := cmp.Diff(want, j.take()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]int{16}, g.sets); diff != "" {
			t.Error(diff)
		}
	})
}

func TestLoopContinuesAfterFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var j recorder
		var load synchronized[Inputs]
		g := &target{size: 1, unread: errors.New("no group")}
		l := newLoop(load.get, g, Options{Events: j.events()})
		pass := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		stop := start(l.Run)
		pass(15 * time.Second)
		g.fail(nil, nil)
		pass(20 * time.Second)
		load.set(measured(100, 1e6))
		g.fail(nil, errors.New("not allowed"))
		pass(30 * time.Second)
		if s := l.Status(); s.Failed == nil || s.Failed.Doing != "setting the size" {
			t.Errorf("the status is %+v", s)
		}
		g.fail(nil, nil)
		pass(10 * time.Second)
		load.set(Inputs{})
		pass(10 * time.Second)
		load.set(measured(100, 1e6))
		pass(10 * time.Second)
		stop()
		if s := l.Status(); s.Failed != nil || s.Desired != 4 {
			t.Errorf("the status is %+v", s)
		}
		want := []string{
			"reading the size: no group (1)", "reading the size: no group (2)",
			"missing 1 to 1 false ",
			"steady 1 to 1 false ",
			"setting the size: not allowed (1)", "out 1 to 4 false not allowed", "setting the size: not allowed (2)",
			"out 1 to 4 true ", "missing 4 to 4 false ", "limit 4 to 4 false ",
		}
		if diff := cmp.Diff(want, j.take()); diff != "" {
			t.Error(diff)
		}
	})
}

type hangingTarget struct{ Target }

func (hangingTarget) Size(ctx context.Context) (int, int, error) {
	<-ctx.Done()
	return 0, 0, ctx.Err()
}

func TestLoopLimitsItsCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var j recorder
		opts := Options{Events: j.events()}
		l := newLoop(func() Inputs { return Inputs{} }, hangingTarget{}, opts)
		stop := start(l.Run)
		time.Sleep(10*time.Second + 1)
		synctest.Wait()
		want := []string{"reading the size: context deadline exceeded (1)"}
		if diff := cmp.Diff(want, j.take()); diff != "" {
			t.Error(diff)
		}
		time.Sleep(9 * time.Second)
		stop()
		if lines := j.take(); len(lines) != 0 {
			t.Errorf("the stop is reported as a failure: %v", lines)
		}
	})
}

func TestNumberOfDecisionsIsLimited(t *testing.T) {
	t.Parallel()
	var s Status
	for i := range 250 {
		s.record(Decided{Decision: Decision{From: i, Desired: i, Rule: ruleSteady}}, Inputs{Ready: i})
	}
	if len(s.Decisions) != 100 || s.Decisions[99].Decided.Decision.From != 249 || s.Decisions[0].Decided.Decision.From != 150 ||
		s.Decisions[99].Inputs.Ready != 249 {
		t.Errorf("the log has %d entries", len(s.Decisions))
	}
}

func TestAdvice(t *testing.T) {
	t.Parallel()
	var a Advice
	ctx := context.Background()
	if c, d, err := a.Size(ctx); c != 1 || d != 1 || err != nil {
		t.Errorf("the zero value has %d, %d, %v", c, d, err)
	}
	if err := a.SetSize(ctx, 7); err != nil {
		t.Error(err)
	}
	if c, d, _ := a.Size(ctx); c != 7 || d != 7 {
		t.Errorf("advised 7, it has %d, %d", c, d)
	}
}

func TestScale(t *testing.T) {
	t.Parallel()
	out, err := json.Marshal(NewScale([]QueueState{{Name: "jobs", Known: true, Backlog: 7, Oldest: 3 * time.Second},
		{Name: "mail", Known: true, Backlog: 5, Oldest: 90 * time.Second}, {Name: "not counted"}}, 4))
	want := `{"queues":{"jobs":{"backlog":7,"oldestSeconds":3},"mail":{"backlog":5,"oldestSeconds":90}},` +
		`"backlog":12,"oldestSeconds":90,"desired":4}`
	if err != nil || string(out) != want {
		t.Errorf("it is %s, %v", out, err)
	}
	out, _ = json.Marshal(NewScale(nil, 0))
	if string(out) != `{"queues":{},"backlog":0,"oldestSeconds":0,"desired":1}` {
		t.Errorf("an empty one is %s", out)
	}
}

func TestSizeChangesInEveryPeriodWithoutCooldown(t *testing.T) {
	t.Parallel()
	p := withDefaults(Policy{Cooldown: -1, Measure: BusyShare, Period: time.Second})
	var s policyState
	var d Decision
	now, size := time.Unix(1_800_000_000, 0), 1
	for range 6 {
		s, d = p.Decide(s, Inputs{Desired: size, Ready: size, Busy: readingOf(100)}, now)
		now, size = now.Add(time.Second), d.Desired
	}
	if size != 4 {
		t.Errorf("the size is %d after six periods of too much work: %+v", size, d)
	}
}

type bounded struct {
	target
	least, most int
}

func (b *bounded) Bounds() (least, most int) { return b.least, b.most }

func (b *bounded) SetSize(ctx context.Context, n int) error {
	if n < b.least || n > b.most {
		return errors.New("out of bounds")
	}
	return b.target.SetSize(ctx, n)
}

func TestLoopWithinTheBoundsOfTheTarget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                      string
		least, most, minimum, max int
		size, want                int
		load                      float64
	}{
		{"the target's most is less", 1, 3, 1, 100, 2, 3, 1e6},
		{"the policy's most is less", 1, 9, 1, 4, 2, 4, 1e6},
		{"the target's least is more", 3, 9, 1, 100, 6, 3, 0},
		{"the policy's least is more", 1, 9, 2, 100, 6, 2, 0},
		{"all of the policy's is less", 6, 9, 1, 4, 6, 6, 0},
		{"all of the policy's is more", 1, 3, 5, 8, 3, 3, 1e6},
		{"it may have none", 0, 0, 1, 8, 0, 0, 1e6},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var j recorder
				load := func() Inputs {
					if c.load == 0 {
						return measured(0, 0)
					}
					return measured(100, c.load)
				}
				g := &bounded{target: target{size: c.size}, least: c.least, most: c.most}
				l := newLoop(load, g, Options{Policy: Policy{MinSize: c.minimum, MaxSize: c.max, Cooldown: -1},
					Events: j.events()})
				stop := start(l.Run)
				time.Sleep(time.Hour)
				stop()
				if _, size, _ := g.Size(t.Context()); size != c.want {
					t.Errorf("the size is %d after an hour, want %d", size, c.want)
				}
				for _, line := range j.take() {
					if strings.Contains(line, "out of bounds") {
						t.Error(line)
					}
				}
				if p := l.Status().Policy; c.most > 0 && (p.MinSize < c.least || p.MaxSize > c.most) {
					t.Errorf("the bounds shown are %d and %d", p.MinSize, p.MaxSize)
				}
			})
		})
	}
}
