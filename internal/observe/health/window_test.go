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
	var w window
	if r, last := w.sum(noon); r != (bucket{}) || last != (lastFailures{}) {
		t.Errorf("an empty window holds %+v", r)
	}
	for _, status := range []int{200, 204, 302, 404, 429, 500, 503, 599, 0} {
		w.count(ClassOf(status), 100*time.Millisecond, Failure{}, noon)
	}
	w.count(Unreached, time.Hour, Failure{}, noon)
	w.count(FailedInside, 100*time.Millisecond, Failure{}, noon)
	w.count(Class(99), time.Second, Failure{}, noon)
	w.count(classes, time.Second, Failure{}, noon)
	r, _ := w.sum(noon)
	want := counts{Success: 2, Other: 3, Client: 2, Server: 3, NoAnswer: 1, Unreached: 1, FailedInside: 1}
	if r.classes != want || r.classes.total() != 13 {
		t.Errorf("it holds %+v", r)
	}
	if p50 := r.latencies.Percentile(0.5); r.latencies.Percentile(0.999) > 2*time.Second ||
		p50 < 90*time.Millisecond || p50 > 110*time.Millisecond {
		t.Errorf("latencies %+v: those without a response count", r.latencies)
	}
	if total := w.latencies(); total != r.latencies {
		t.Errorf("the latencies since the start are %v, want %v", total, r.latencies)
	}
}

func TestWindowKeepsTheLastFailureOfEachClass(t *testing.T) {
	t.Parallel()
	var w window
	w.count(Client, time.Second, Failure{MessageID: "1"}, noon)
	w.count(Client, time.Second, Failure{MessageID: "2"}, noon)
	w.count(NoAnswer, time.Second, Failure{MessageID: "3"}, noon)
	w.count(Success, time.Second, Failure{MessageID: "4"}, noon)
	_, last := w.sum(noon)
	for class, want := range map[Class]string{Client: "2", NoAnswer: "3", Success: "", Server: ""} {
		if got := last.latest([]Class{class}).MessageID; got != want {
			t.Errorf("class %d: %q, want %q", class, got, want)
		}
	}
	if got := last.latest([]Class{NoAnswer, Client}).MessageID; got != "3" {
		t.Errorf("of both %q", got)
	}
}

func TestForgottenDeliveriesKeepTheLatenciesSinceStartup(t *testing.T) {
	t.Parallel()
	var w window
	w.count(Server, time.Second, Failure{}, noon)
	w.forget()
	if r, _ := w.sum(noon); r != (bucket{}) {
		t.Errorf("the recent deliveries are %+v", r)
	}
	w.count(Success, time.Second, Failure{}, noon)
	if r, _ := w.sum(noon); r.classes != (counts{Success: 1}) || w.latencies() == (Latencies{}) || w.latencies() == r.latencies {
		t.Errorf("after another delivery: %+v, since startup %v", r.classes, w.latencies())
	}
}

func TestLongestLatencyIsCountedInTheLastBucket(t *testing.T) {
	t.Parallel()
	var w window
	w.count(Success, 1000*24*time.Hour, Failure{}, noon)
	if r, _ := w.sum(noon); r.latencies[maxSteps-1] != 1 || w.latencies()[maxSteps-1] != 1 {
		t.Errorf("it holds %v", r.latencies)
	}
}

func TestLatenciesSinceAnEarlierState(t *testing.T) {
	t.Parallel()
	var w window
	w.count(Success, time.Millisecond, Failure{}, noon)
	earlier := w.latencies()
	w.count(Success, time.Millisecond, Failure{}, noon)
	w.count(Success, time.Hour, Failure{}, noon)
	now, want := w.latencies(), w.latencies()
	want[0] = 1
	if got := now.Since(&earlier); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestWindowMovesOn(t *testing.T) {
	t.Parallel()
	var w window
	for i := range 60 {
		w.count(Success, time.Millisecond, Failure{}, noon.Add(time.Duration(i)*bucketTime))
	}
	end := noon.Add(59 * bucketTime)
	for _, c := range []struct {
		after time.Duration
		want  int64
	}{{0, 30}, {10 * time.Second, 29}, {290 * time.Second, 1}, {5 * time.Minute, 0}, {time.Hour, 0},
		{-10 * time.Second, 29}} {
		if sum, _ := w.sum(end.Add(c.after)); sum.classes.total() != c.want {
			t.Errorf("%v later it holds %d, want %d", c.after, sum.classes.total(), c.want)
		}
	}
	w.count(Success, 0, Failure{}, end.Add(-time.Hour))
	if sum, _ := w.sum(end); sum.classes.total() != 30 {
		t.Errorf("after a leap back it holds %d", sum.classes.total())
	}
}

func TestPercentiles(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Int64Range(int64(time.Millisecond), int64(10*time.Hour)), 1, 300).Draw(t, "latencies")
		var w window
		for _, d := range all {
			w.count(Success, time.Duration(d), Failure{}, noon)
		}
		slices.Sort(all)
		recent, _ := w.sum(noon)
		for _, share := range []float64{0.1, 0.5, 0.75, 0.85, 0.9, 0.95, 0.99, 0.999} {
			got := recent.latencies.Percentile(share)
			want := all[int(math.Ceil(share*float64(len(all))))-1]
			if off := math.Abs(float64(got)/float64(want) - 1); off > 0.1 {
				t.Fatalf("at %v it is %v, and %v is right", share, got, time.Duration(want))
			}
		}
	})
}

func TestWindowIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	var w window
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				w.count(Server, -time.Second, Failure{}, noon)
				w.sum(noon)
			}
		})
	}
	all.Wait()
	if r, _ := w.sum(noon); r.classes[Server] != 8000 || r.latencies.Percentile(0.1) > 2*time.Millisecond {
		t.Errorf("it holds %+v", r)
	}
}

func BenchmarkCount(b *testing.B) {
	var w window
	for i := range b.N {
		w.count(Success, time.Duration(i), Failure{}, noon)
	}
}
