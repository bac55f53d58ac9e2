package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

type fakeReplicas struct {
	mu      sync.Mutex
	n       int
	takes   time.Duration
	err     error // of scale-outs
	changes []int
}

func (f *fakeReplicas) Size() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}

func (f *fakeReplicas) Scale(ctx context.Context, n int) error {
	select {
	case <-time.After(f.takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes = append(f.changes, n)
	if f.err != nil && n > f.n {
		return f.err
	}
	f.n = n
	return nil
}

func newTestScaler(t *testing.T, f *fakeReplicas) (s *Scaler, stop context.CancelFunc, failures func() []string) {
	run, stop := context.WithCancel(context.Background())
	log := &records{}
	s = &Scaler{size: f.Size, ready: f.Size, scale: f.Scale, run: run, log: slog.New(log)}
	t.Cleanup(func() { stop(); s.changes.Wait() })
	return s, stop, func() []string { return log.of("number of replicas not changed") }
}

func wantSize(t *testing.T, c *Scaler, ready, desired int) {
	t.Helper()
	synctest.Wait()
	if r, d, err := c.Size(t.Context()); r != ready || d != desired || err != nil {
		t.Errorf("%d are ready and %d wanted (%v), should be %d and %d", r, d, err, ready, desired)
	}
}

func TestReplicasChangeInTheBackground(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeReplicas{n: 1, takes: time.Minute}
		c, _, failures := newTestScaler(t, f)
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
		set(2)
		set(4)
		wantSize(t, c, 1, 4)
		time.Sleep(time.Minute)
		wantSize(t, c, 3, 4)
		time.Sleep(time.Minute)
		wantSize(t, c, 4, 4)
		set(0)
		time.Sleep(time.Minute)
		wantSize(t, c, 1, 1)
		if got := fmt.Sprint(f.changes); got != "[3 4 1]" || len(failures()) > 0 {
			t.Errorf("changes %s, failures %v", got, failures())
		}
	})
}

func TestReplicasThatDoNotComeUpAreTriedLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeReplicas{n: 2, takes: time.Second, err: errors.New("it ends at once")}
		c, _, failures := newTestScaler(t, f)
		for i, pause := range []time.Duration{firstGrowthPause, 2 * firstGrowthPause, 4 * firstGrowthPause} {
			if err := c.SetSize(t.Context(), 3); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			wantSize(t, c, 2, 2)
			if len(failures()) != i+1 || !strings.HasPrefix(failures()[i], "replicas=3 err=it ends at once hint=") {
				t.Errorf("told %v", failures())
			}
			time.Sleep(pause - time.Second)
			if err := c.SetSize(t.Context(), 3); err == nil || !strings.Contains(err.Error(), "another 1s") {
				t.Errorf("within the pause of %s: %v", pause, err)
			}
			time.Sleep(time.Second)
		}
		f.err = nil
		if err := c.SetSize(t.Context(), 1); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		wantSize(t, c, 1, 1)
		if c.pause != 0 {
			t.Errorf("after a success the pause is %s", c.pause)
		}
	})
}

func TestScaleInRequestedDuringAFailedScaleOutIsApplied(t *testing.T) {
	t.Parallel()
	for _, next := range []struct {
		size, reached int
		changes       string
		pause         time.Duration
	}{{1, 1, "[3 1]", 0}, {2, 2, "[3 2]", firstGrowthPause}, {4, 2, "[3]", firstGrowthPause}} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeReplicas{n: 2, takes: time.Second, err: errors.New("it ends at once")}
			c, _, failures := newTestScaler(t, f)
			for _, n := range []int{3, next.size} {
				if err := c.SetSize(t.Context(), n); err != nil {
					t.Fatal(err)
				}
				wantSize(t, c, 2, n)
			}
			time.Sleep(time.Minute)
			wantSize(t, c, next.reached, next.reached)
			if c.pause != next.pause {
				t.Errorf("then %d: the pause is %s, want %s", next.size, c.pause, next.pause)
			}
			if got := fmt.Sprint(f.changes); got != next.changes || len(failures()) != 1 {
				t.Errorf("then %d: changes %s, want %s; failures %v", next.size, got, next.changes, failures())
			}
		})
	}
}

func TestScalingGivesWayToDeployments(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeReplicas{n: 1, takes: time.Second, err: fmt.Errorf("not now: %w", ErrBusy)}
		c, stop, failures := newTestScaler(t, f)
		if err := c.SetSize(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		wantSize(t, c, 1, 1)
		f.err = nil
		if err := c.SetSize(t.Context(), 2); err != nil {
			t.Errorf("after a deployment: %v", err)
		}
		stop()
		wantSize(t, c, 1, 1)
		if err := c.SetSize(t.Context(), 2); !errors.Is(err, ErrStopped) {
			t.Errorf("during a stop: %v", err)
		}
		if len(failures()) > 0 {
			t.Errorf("told %v", failures())
		}
	})
}
