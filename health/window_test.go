package health

import (
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestWindow(t *testing.T) {
	t.Parallel()
	var w Window
	if r := w.Requests(noon); r != (Requests{}) {
		t.Errorf("an empty window holds %+v", r)
	}
	for _, status := range []int{200, 204, 302, 404, 429, 500, 503, 599, 0} {
		w.Count(ClassOf(status), 100*time.Millisecond, noon)
	}
	w.Count(Unreached, time.Hour, noon)
	w.Count(FailedInside, 100*time.Millisecond, noon)
	w.Count(Class(99), time.Second, noon)
	r := w.Requests(noon)
	if r.Success != 2 || r.Other != 2 || r.Client != 2 || r.Server != 3 || r.NoAnswer != 1 || r.Unreached != 1 ||
		r.FailedInside != 1 || r.Total() != 12 {
		t.Errorf("it holds %+v", r)
	}
	if p := r.Percentiles; p.P999 > 2*time.Second || p.P50 < 90*time.Millisecond || p.P50 > 110*time.Millisecond {
		t.Errorf("percentiles %+v: those without an answer count", p)
	}
}

func TestWindowMovesOn(t *testing.T) {
	t.Parallel()
	var w Window
	for i := range 60 { // one each ten seconds, for ten minutes
		w.Count(Success, time.Millisecond, noon.Add(time.Duration(i)*bucketTime))
	}
	end := noon.Add(59 * bucketTime)
	for _, c := range []struct {
		after time.Duration
		want  int64
	}{{0, 30}, {10 * time.Second, 29}, {290 * time.Second, 1}, {5 * time.Minute, 0}, {time.Hour, 0},
		{-10 * time.Second, 29}} {
		if got := w.Requests(end.Add(c.after)).Total(); got != c.want {
			t.Errorf("%v later it holds %d, want %d", c.after, got, c.want)
		}
	}
	w.Count(Success, 0, end.Add(-time.Hour)) // the clock was set back
	if got := w.Requests(end).Total(); got != 30 {
		t.Errorf("after a leap back it holds %d", got)
	}
}

func TestPercentiles(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Int64Range(int64(time.Millisecond), int64(10*time.Hour)), 1, 300).Draw(t, "latencies")
		var w Window
		for _, d := range all {
			w.Count(Success, time.Duration(d), noon)
		}
		slices.Sort(all)
		p := w.Requests(noon).Percentiles
		for share, got := range map[float64]time.Duration{0.1: p.P10, 0.5: p.P50, 0.75: p.P75, 0.85: p.P85, 0.9: p.P90,
			0.95: p.P95, 0.99: p.P99, 0.999: p.P999} {
			want := all[int(math.Ceil(share*float64(len(all))))-1]
			if off := math.Abs(float64(got)/float64(want) - 1); off > 0.1 {
				t.Fatalf("at %v it is %v, and %v is right", share, got, time.Duration(want))
			}
		}
	})
}

func TestWindowFromManySides(t *testing.T) {
	t.Parallel()
	var w Window
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				w.Count(Server, -time.Second, noon) // a duration below nothing is the least
				w.Requests(noon)
			}
		})
	}
	all.Wait()
	if r := w.Requests(noon); r.Server != 8000 || r.Percentiles.P10 > 2*time.Millisecond {
		t.Errorf("it holds %+v", r)
	}
}

func BenchmarkCount(b *testing.B) {
	var w Window
	for i := range b.N {
		w.Count(Success, time.Duration(i), noon)
	}
}
