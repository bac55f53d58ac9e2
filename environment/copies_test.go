package environment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tendril/app"
	"tendril/autoscale"
	"tendril/config"
	"tendril/logging"
)

func discard() *logging.Logger { return logging.New(logging.Options{Out: io.Discard}) }

// fakeCopies takes a while for each change.
type fakeCopies struct {
	mu      sync.Mutex
	n       int
	takes   time.Duration
	err     error
	changes []int
}

func (f *fakeCopies) Size() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}

func (f *fakeCopies) Scale(ctx context.Context, n int) error {
	select {
	case <-time.After(f.takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes = append(f.changes, n)
	if f.err == nil {
		f.n = n
	}
	return f.err
}

func newTestCopies(t *testing.T, f *fakeCopies) (c *copies, stop context.CancelFunc, failures *[]string) {
	run, stop := context.WithCancel(context.Background())
	failures = &[]string{}
	c = &copies{resizer: f, ready: f.Size, run: run, failed: func(n int, err error) {
		*failures = append(*failures, fmt.Sprintf("%d: %v", n, err))
	}}
	t.Cleanup(func() { stop(); c.all.Wait() })
	return c, stop, failures
}

func wantSize(t *testing.T, c *copies, ready, desired int) {
	t.Helper()
	synctest.Wait()
	if r, d, err := c.Size(t.Context()); r != ready || d != desired || err != nil {
		t.Errorf("%d are ready and %d wanted (%v), should be %d and %d", r, d, err, ready, desired)
	}
}

func TestCopiesChangeInTheBackground(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeCopies{n: 1, takes: time.Minute}
		c, _, failures := newTestCopies(t, f)
		set := func(n int) {
			t.Helper()
			if err := c.SetSize(t.Context(), n); err != nil {
				t.Error(err)
			}
		}
		set(1)
		wantSize(t, c, 1, 1)
		set(3)
		wantSize(t, c, 1, 3)
		set(2) // waits for the change to 3
		set(4) // and takes its place
		wantSize(t, c, 1, 4)
		time.Sleep(time.Minute)
		wantSize(t, c, 3, 4)
		time.Sleep(time.Minute)
		wantSize(t, c, 4, 4)
		set(0) // there is always one
		time.Sleep(time.Minute)
		wantSize(t, c, 1, 1)
		if got := fmt.Sprint(f.changes); got != "[3 4 1]" || len(*failures) > 0 {
			t.Errorf("changes %s, failures %v", got, *failures)
		}
	})
}

func TestCopiesThatDoNotComeUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeCopies{n: 2, takes: time.Second, err: errors.New("it ends at once")}
		c, _, failures := newTestCopies(t, f)
		for i, pause := range []time.Duration{firstGrowthPause, 2 * firstGrowthPause, 4 * firstGrowthPause} {
			if err := c.SetSize(t.Context(), 3); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			wantSize(t, c, 2, 2)
			if len(*failures) != i+1 || (*failures)[i] != "3: it ends at once" {
				t.Errorf("told %v", *failures)
			}
			time.Sleep(pause - time.Second)
			if err := c.SetSize(t.Context(), 3); err == nil || !strings.Contains(err.Error(), "another 1s") {
				t.Errorf("within the pause of %s: %v", pause, err)
			}
			time.Sleep(time.Second)
		}
		f.err = nil
		if err := c.SetSize(t.Context(), 1); err != nil { // fewer need not come up
			t.Error(err)
		}
		time.Sleep(time.Second)
		wantSize(t, c, 1, 1)
		if c.pause != 0 {
			t.Errorf("after a success the pause is %s", c.pause)
		}
	})
}

func TestCopiesGiveWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeCopies{n: 1, takes: time.Second, err: fmt.Errorf("not now: %w", app.ErrBusy)}
		c, stop, failures := newTestCopies(t, f)
		if err := c.SetSize(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		wantSize(t, c, 1, 1) // a deployment came first, which is no failure
		f.err = nil
		if err := c.SetSize(t.Context(), 2); err != nil {
			t.Errorf("after a deployment: %v", err)
		}
		stop() // in the middle of it
		wantSize(t, c, 1, 1)
		if err := c.SetSize(t.Context(), 2); !errors.Is(err, app.ErrStopped) {
			t.Errorf("during a stop: %v", err)
		}
		if len(*failures) > 0 {
			t.Errorf("told %v", *failures)
		}
	})
}

func TestScalePolicy(t *testing.T) {
	t.Parallel()
	load := func(flags map[string]string) *Environment {
		flags["data-dir"] = "/nowhere"
		cfg, err := config.Load(config.Sources{Flags: flags})
		if err != nil {
			t.Fatal(err)
		}
		return New(Options{Config: cfg, Logger: discard()})
	}
	e := load(map[string]string{"processes-max": "8", "http-connections": "5"})
	p, err := e.scalePolicy(1, e.mostCopies()).Complete()
	if err != nil || p.MaxSize != 5 || p.Cooldown != 360*time.Second || p.TargetBusy != 75 ||
		p.DrainWithin != time.Minute || p.Measure != "" {
		t.Errorf("the usual policy is %+v (%v)", p, err)
	}
	if got := rhythm(gaugeRhythm, p); got != gaugeRhythm {
		t.Errorf("it is read each %s", got)
	}
	e = load(map[string]string{
		"scale-target": "asg:g", "scale-cooldown": "0", "scale-measure-name": "BacklogPerProcess",
		"scale-statistic": "Maximum", "scale-lower-threshold": "2",
		"scale-upper-threshold": "9", "scale-lower-breach-scale-increment": "-3", "scale-upper-breach-scale-increment": "4",
		"scale-period":             "4s",
		"scale-evaluation-periods": "2", "scale-breach-duration": "12s", "processes-min": "3", "http-connections": "2",
	})
	p, err = e.scalePolicy(2, 7).Complete()
	want := autoscale.Policy{
		MinSize: 2, MaxSize: 7, Cooldown: -1, Measure: autoscale.BacklogPerProcess, Statistic: autoscale.Maximum,
		Unit: "Count", LowerThreshold: 2, UpperThreshold: 9,
		LowerBreachScaleIncrement: -3, UpperBreachScaleIncrement: 4, Period: 4 * time.Second, EvaluationPeriods: 3,
		BreachDuration: 12 * time.Second,
		TargetBusy:     75, DrainWithin: time.Minute, ScaleOutAfter: 20 * time.Second, ScaleInAfter: 5 * time.Minute,
	}
	if err != nil || p != want {
		t.Errorf("the trigger is\n%+v, want\n%+v (%v)", p, want, err)
	}
	if got := rhythm(groupRhythm, p); got != 2*time.Second {
		t.Errorf("it is read each %s", got)
	}
	if got := e.mostCopies(); got != 3 {
		t.Errorf("the most copies are %d: never fewer than the least", got)
	}
	for _, tt := range []struct {
		all  int
		each []int
		want int
	}{{50, []int{50}, 50}, {50, []int{10, 20}, 30}, {5, []int{5, 5}, 5}, {5, nil, 1}} {
		var lines []*line
		for _, n := range tt.each {
			lines = append(lines, newLine(&config.QueueSettings{Concurrency: n}))
		}
		if got := slotsOf(tt.all, lines); got != tt.want {
			t.Errorf("slots of %+v: %d", tt, got)
		}
	}
}
