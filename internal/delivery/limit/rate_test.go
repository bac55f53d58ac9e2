package limit

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

func allow(l *Limiter, now time.Time, n int) (ok bool, wait time.Duration, reason string) {
	permit, wait, reason := l.Acquire(now, n)
	return permit != 0, wait, reason
}

func TestBurstIsSmall(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		perSecond    float64
		batch, burst int
		wait         time.Duration
	}{
		{0.1, 1, 1, 10 * time.Second}, {0.5, 1, 1, 2 * time.Second},
		{1, 1, 1, time.Second}, {2.5, 1, 1, 400 * time.Millisecond},
		{10, 1, 1, 100 * time.Millisecond}, {20, 1, 2, 50 * time.Millisecond}, {1000, 1, 100, time.Millisecond},
		// The burst is a full batch, but at most the messages of a second.
		{0.1, 10, 1, 10 * time.Second}, {2.5, 10, 2, 400 * time.Millisecond},
		{20, 10, 10, 50 * time.Millisecond}, {1000, 10, 100, time.Millisecond},
	} {
		l := New(&Options{Rate: tt.perSecond, Batch: tt.batch})
		for i := range tt.burst {
			if ok, wait, reason := allow(l, noon, 1); !ok {
				t.Fatalf("rate %v: message %d refused: %s, %s", tt.perSecond, i+1, reason, wait)
			}
		}
		ok, wait, reason := allow(l, noon, 1)
		if ok || reason != reasonRate || (wait-tt.wait).Abs() > time.Microsecond {
			t.Errorf("rate %v: allowed %v, wait %s, reason %q; want a wait of %s", tt.perSecond, ok, wait, reason, tt.wait)
		}
		if ok, again, _ := allow(l, noon.Add(wait), 1); !ok {
			t.Errorf("rate %v: refused after the wait of %s, for %s more", tt.perSecond, wait, again)
		}
	}
}

func TestBurstAddsAtMostATenthInTheFirstSecond(t *testing.T) {
	t.Parallel()
	for _, perSecond := range []int{10, 20, 100, 1000} {
		l := New(&Options{Rate: float64(perSecond)})
		allow(l, noon.Add(-time.Hour), 1)
		var started [10]int
		for now := noon; now.Before(noon.Add(10 * time.Second)); {
			ok, wait, _ := allow(l, now, 1)
			if ok {
				started[now.Sub(noon)/time.Second]++
			}
			now = now.Add(wait)
		}
		for i, n := range started {
			if n < perSecond || n > perSecond+perSecond/10 {
				t.Errorf("rate %d: %d started in second %d", perSecond, n, i+1)
			}
		}
	}
}

func TestBatchAboveTheBurstBorrows(t *testing.T) {
	t.Parallel()
	l := New(&Options{Rate: 2})
	now := noon
	if ok, _, _ := allow(l, now, 10); !ok {
		t.Fatal("a batch of 10 at 2 per second must not wait for ever")
	}
	ok, wait, _ := allow(l, now, 10)
	if ok || wait != 5*time.Second {
		t.Errorf("the next batch: allowed %v, wait %s; want 5s", ok, wait)
	}
	if ok, wait, _ = allow(l, now, 1); ok || wait != 5*time.Second {
		t.Errorf("the next message: allowed %v, wait %s; want 5s", ok, wait)
	}
}

func TestRatesThatMeanNoLimit(t *testing.T) {
	t.Parallel()
	for _, perSecond := range []float64{0, -1, math.NaN()} {
		l := New(&Options{Rate: perSecond})
		for range 1000 {
			if ok, _, _ := allow(l, noon, 1); !ok {
				t.Fatalf("refused at the rate %v", perSecond)
			}
		}
	}
}

func TestRateHoldsInEveryPeriod(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		perSecond := rapid.SampledFrom([]float64{0.3, 1, 2.5, 7, 100}).Draw(t, "rate")
		l := New(&Options{Rate: perSecond})
		type start struct {
			at time.Duration
			n  int
		}
		var starts []start
		var at time.Duration
		for range rapid.IntRange(1, 80).Draw(t, "calls") {
			at += time.Duration(rapid.IntRange(-50, 400).Draw(t, "ms")) * time.Millisecond
			n := rapid.SampledFrom([]int{1, 1, 1, 2, 10}).Draw(t, "n")
			ok, wait, _ := allow(l, noon.Add(at), n)
			seen := l.last.Sub(noon)
			if !ok && n == 1 {
				if room, _ := l.Room(noon.Add(at), wait); room < 1 {
					t.Fatalf("no room within %s, although a message may start then", wait)
				}
			}
			if !ok && rapid.Bool().Draw(t, "wait") {
				at = seen + wait
				if ok, wait, _ = allow(l, noon.Add(at), n); !ok {
					t.Fatalf("refused for %s more after the wait", wait)
				}
				seen = at
			}
			if ok {
				starts = append(starts, start{seen, n})
			}
		}
		burst := float64(burstOf(perSecond, 1))
		for i := range starts {
			sum := 0.0
			for _, s := range starts[i:] {
				sum += float64(s.n)
				most := burst + perSecond*(s.at-starts[i].at).Seconds()
				if beyond := float64(s.n) - burst; beyond > 0 {
					most += beyond // with future capacity
				}
				if sum > most+1e-3 {
					t.Fatalf("%v messages from %s to %s, at most %v", sum, starts[i].at, s.at, most)
				}
			}
		}
	})
}
