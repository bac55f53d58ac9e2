package series

import (
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tendril/internal/observe/health"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

type source struct {
	Reading
	next func(*Reading)
}

func (s *source) read(time.Time) Reading {
	if s.next != nil {
		s.next(&s.Reading)
	}
	return s.Reading
}

func latencies(t *testing.T, n, m int, d time.Duration) health.Latencies {
	t.Helper()
	monitor := health.NewMonitor(health.Options{})
	for range n {
		monitor.Delivered("jobs", health.Success, d, health.Failure{})
	}
	for range m {
		monitor.Delivered("jobs", health.Success, 100*d, health.Failure{})
	}
	return monitor.Latencies()
}

func curves(t *testing.T, r *Recorder, name string, now time.Time) Curves {
	t.Helper()
	c, ok := r.Curves(name, now)
	if !ok {
		t.Fatalf("there is no range %q", name)
	}
	for _, v := range []Values{c.Series.In, c.Series.Out, c.Series.InFlight, c.Series.Limit, c.Series.P50MS,
		c.Series.P95MS, c.Series.P99MS, c.Series.OldestSeconds} {
		if len(v) != len(c.At) || len(v) != points {
			t.Fatalf("range %s: %d times and a curve of %d points", name, len(c.At), len(v))
		}
	}
	return c
}

func known(v Values) (values []float32) {
	return slices.DeleteFunc(slices.Clone(v), isNone)
}

func isNear(got float32, want float64) bool {
	return float64(got) > 0.9*want && float64(got) < 1.1*want || want == 0 && got == 0
}

func TestRatesAreOfTheTimeBetweenReadings(t *testing.T) {
	r := New(nil)
	r.record(&Reading{Total: Counts{In: 1000, Out: 900}, Queues: map[string]Counts{"a": {500, 400}}}, noon)
	if got := known(curves(t, r, "15m", noon).Series.In); len(got) != 0 {
		t.Fatalf("after the first reading there are %v: it is not known when those messages came", got)
	}
	at := noon.Add(5 * time.Second)
	r.record(&Reading{Total: Counts{In: 1050, Out: 925}, InFlight: 7, Limit: 50, Oldest: 3 * time.Second, HasOldest: true,
		Queues: map[string]Counts{"a": {550, 425}, "new": {70, 70}}, Latencies: latencies(t, 90, 10, time.Second/10)}, at)
	c := curves(t, r, "", at)
	last := points - 1
	for _, v := range []struct {
		name string
		got  Values
		want float64
	}{
		{"in", c.Series.In, 10}, {"out", c.Series.Out, 5}, {"in flight", c.Series.InFlight, 7},
		{"limit", c.Series.Limit, 50}, {"oldest", c.Series.OldestSeconds, 3}, {"p50", c.Series.P50MS, 100},
		{"p95", c.Series.P95MS, 10_000}, {"p99", c.Series.P99MS, 10_000},
		{"queue in", c.Queues["a"].In, 10}, {"queue out", c.Queues["a"].Out, 5},
	} {
		if !isNear(v.got[last], v.want) || len(known(v.got)) != 1 {
			t.Errorf("%s is %v, want %v at the end alone", v.name, known(v.got), v.want)
		}
	}
	if c.At[last] != at.Unix() || c.At[0] >= c.At[1] {
		t.Errorf("the times are %v", c.At)
	}
	if _, there := c.Queues["new"]; there {
		t.Error("a queue has a rate from its first reading, when nobody knows since when its messages came")
	}
	if len(c.Queues) != 1 {
		t.Errorf("the queues are %v", c.Queues)
	}
}

func TestLongRangesAreComputedFromAllReadings(t *testing.T) {
	fast, slow := latencies(t, 99, 0, time.Millisecond*10), latencies(t, 0, 1, time.Millisecond*10)
	s := &source{Reading: Reading{HasOldest: true}}
	r := New(nil)
	for i := range int64(24 * 720) {
		s.Total.In += i % 2 * 100
		s.Total.Out += 50
		s.InFlight = int(i%2) * 10
		s.Oldest = time.Duration(i%12) * time.Second
		s.Latencies.Add(&fast)
		if i%10 == 0 {
			s.Latencies.Add(&slow)
		}
		r.record(&s.Reading, noon.Add(time.Duration(i)*5*time.Second))
	}
	end := noon.Add(24*time.Hour - 5*time.Second)
	for _, name := range []string{"3h", "24h"} {
		c := curves(t, r, name, end)
		for i := 1; i < points; i++ {
			if !isNear(c.Series.In[i], 10) || !isNear(c.Series.Out[i], 10) || !isNear(c.Series.InFlight[i], 5) ||
				c.Series.OldestSeconds[i] != 11 || !isNear(c.Series.P50MS[i], 10) || !isNear(c.Series.P99MS[i], 10) {
				t.Fatalf("%s, point %d: in %v, out %v, in flight %v, oldest %v, p50 %v, p99 %v", name, i, c.Series.In[i],
					c.Series.Out[i], c.Series.InFlight[i], c.Series.OldestSeconds[i], c.Series.P50MS[i], c.Series.P99MS[i])
			}
		}
	}
}

func TestGapsHaveNoValues(t *testing.T) {
	r := New(nil)
	for i := range 181 {
		r.record(&Reading{Total: Counts{In: int64(i)}}, noon.Add(time.Duration(i)*5*time.Second))
	}
	asleep := noon.Add(181*5*time.Second + time.Minute)
	r.record(&Reading{Total: Counts{In: 1000}}, asleep)
	c := curves(t, r, "15m", asleep)
	if got := len(known(c.Series.In)); got != points-12 {
		t.Errorf("%d points have values after twelve were missed", got)
	}
	if isNone(c.Series.In[points-1]) || !isNone(c.Series.In[points-2]) || isNone(c.Series.In[points-14]) {
		t.Errorf("the gap is not where it was: %v", c.Series.In[points-16:])
	}
	if got := known(curves(t, r, "15m", asleep.Add(14*time.Minute)).Series.In); len(got) > 13 || len(got) == 0 {
		t.Errorf("14 minutes later %d points are left", len(got))
	}
	if got := known(curves(t, r, "15m", asleep.Add(time.Hour)).Series.In); len(got) != 0 {
		t.Errorf("an hour later there are %v", got)
	}
}

func TestCounterResetsAndClockJumps(t *testing.T) {
	r := New(nil)
	r.record(&Reading{Total: Counts{In: 100}}, noon)
	r.record(&Reading{Total: Counts{In: 3}}, noon.Add(5*time.Second))
	if got := known(curves(t, r, "", noon.Add(5*time.Second)).Series.In); !slices.Equal(got, []float32{0}) {
		t.Errorf("a counter that fell gives %v", got)
	}
	r.record(&Reading{Total: Counts{In: 10}}, noon.Add(-5*time.Second))
	if got := known(curves(t, r, "", noon.Add(5*time.Second)).Series.In); !slices.Equal(got, []float32{0}) {
		t.Errorf("a small leap back gives %v", got)
	}
	back := noon.Add(-24 * time.Hour)
	r.record(&Reading{Total: Counts{In: 20}}, back)
	r.record(&Reading{Total: Counts{In: 70}}, back.Add(5*time.Second))
	if got := known(curves(t, r, "", back.Add(5*time.Second)).Series.In); !slices.Equal(got, []float32{10}) {
		t.Errorf("after a leap back of a day the curve is %v", got)
	}
}

func TestQueuesAreBoundedAndMakeRoom(t *testing.T) {
	r := New(nil)
	record := func(prefix string, from, to int) time.Time {
		at := noon
		for i := from; i < to; i++ {
			reading := Reading{Queues: map[string]Counts{}}
			for q := range 100 {
				reading.Queues[prefix+strconv.Itoa(q)] = Counts{In: int64(i)}
			}
			at = noon.Add(time.Duration(i) * 5 * time.Second)
			r.record(&reading, at)
		}
		return at
	}
	at := record("a", 0, 3)
	if got := len(curves(t, r, "15m", at).Queues); got != MaxQueues {
		t.Fatalf("%d queues have curves, want %d", got, MaxQueues)
	}
	at = record("b", 3, 200)
	c := curves(t, r, "15m", at)
	if len(c.Queues) != MaxQueues {
		t.Errorf("%d queues have curves, want %d", len(c.Queues), MaxQueues)
	}
	for name := range c.Queues {
		if !strings.HasPrefix(name, "b") {
			t.Errorf("queue %s is kept, 15 minutes after it was read last", name)
		}
	}
	before := size()
	record("b", 200, 1200)
	if grown := int64(size()) - int64(before); grown > 64<<10 {
		t.Errorf("it holds %d bytes more after a thousand readings", grown)
	}
	runtime.KeepAlive(r)
}

func size() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestMarksAreThoseOfTheRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New((&source{}).read)
		r.Mark(time.Now(), "deploy", "old")
		time.Sleep(time.Hour)
		r.Mark(time.Now(), "leadership", "this instance leads")
		if got := curves(t, r, "15m", time.Now()).Marks; len(got) != 1 || got[0].Kind != "leadership" ||
			got[0].At != time.Now().Unix() {
			t.Errorf("the marks of 15 minutes are %+v", got)
		}
		if got := curves(t, r, "3h", time.Now()).Marks; len(got) != 2 || got[0].Text != "old" {
			t.Errorf("the marks of three hours are %+v", got)
		}
		for i := range 2 * maxMarks {
			r.Mark(time.Now(), "deploy", strconv.Itoa(i))
		}
		if got := curves(t, r, "24h", time.Now()).Marks; len(got) != maxMarks || got[maxMarks-1].Text != "199" {
			t.Errorf("of 200 marks %d are kept, and the last is %+v", len(got), got[len(got)-1])
		}
	})
}

func TestRunReadsEveryFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{next: func(r *Reading) { r.Total.In += 50 }}
		r := New(s.read)
		ctx, stop := context.WithCancel(t.Context())
		go r.Run(ctx)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := known(curves(t, r, "", time.Now()).Series.In); len(got) < 11 || slices.Max(got) != 10 ||
			slices.Min(got) != 10 {
			t.Errorf("after a minute the curve is %v", got)
		}
		stop()
		synctest.Wait()
		if _, ok := r.Curves("1h", time.Now()); ok {
			t.Error("there is a range of an hour")
		}
	})
}

func TestValuesInJSON(t *testing.T) {
	text, err := json.Marshal(Values{none, 0, 0.33333334, 1234567, 12.5, none})
	if want := `[null,0,0.3333,1235000,12.5,null]`; err != nil || string(text) != want {
		t.Errorf("it is %s, %v; want %s", text, err, want)
	}
	var back Values
	if err := json.Unmarshal(text, &back); err != nil || len(back) != 6 || !isNone(back[0]) || back[4] != 12.5 {
		t.Errorf("it reads back as %v, %v", back, err)
	}
	if err := json.Unmarshal([]byte(`["a"]`), &back); err == nil {
		t.Error("a text is a value")
	}
	if text, err := json.Marshal(Values{}); string(text) != "[]" || err != nil {
		t.Errorf("no values are %s, %v", text, err)
	}
}

func BenchmarkRecord(b *testing.B) {
	r, reading := New(nil), Reading{Queues: map[string]Counts{}}
	for q := range MaxQueues {
		reading.Queues[strconv.Itoa(q)] = Counts{}
	}
	for i := range b.N {
		r.record(&reading, noon.Add(time.Duration(i)*5*time.Second))
	}
}
