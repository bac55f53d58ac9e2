package logging

import (
	"maps"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tendril/queue"
)

var sampleStart = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

func admits(s *sampler, o queue.Outcome, n int, begin time.Time, over time.Duration) (printed, reported int) {
	for i := range n {
		ok, omitted := s.admit(o, begin.Add(over*time.Duration(i)/time.Duration(n)))
		if ok {
			printed++
		}
		reported += omitted
	}
	return printed, reported
}

type omissions map[queue.Outcome]int

func (o omissions) report(outcome queue.Outcome, lines int) { o[outcome] += lines }

func TestSamplerPrintsTheFirstOfEachSecond(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name              string
		perSecond, n      int
		over              time.Duration
		printed, reported int
	}{
		{"few", 100, 100, time.Second, 100, 0},
		{"just more", 100, 101, time.Second, 100, 0},
		{"slow", 100, 1000, 10 * time.Second, 1000, 0},
		{"twice too many", 100, 2000, 10 * time.Second, 1000, 900},
		{"all at once", 100, 5000, 0, 100, 0},
		{"own bound", 3, 10, time.Second, 3, 0},
		{"no sampling", 0, 5000, 0, 5000, 0},
	} {
		s := &sampler{perSecond: tt.perSecond}
		printed, reported := admits(s, queue.Done, tt.n, sampleStart, tt.over)
		if printed != tt.printed || reported != tt.reported {
			t.Errorf("%s: %d printed and %d reported, want %d and %d", tt.name, printed, reported, tt.printed, tt.reported)
		}
		rest := omissions{}
		s.reportOmitted(sampleStart.Add(time.Hour), rest.report)
		if printed+reported+rest[queue.Done] != tt.n {
			t.Errorf("%s: %d printed and %d left out of %d", tt.name, printed, reported+rest[queue.Done], tt.n)
		}
	}
}

func TestSuccessesHideNoFailures(t *testing.T) {
	t.Parallel()
	s := &sampler{perSecond: 100}
	admits(s, queue.Done, 100_000, sampleStart, time.Second)
	if printed, _ := admits(s, queue.Failed, 100, sampleStart.Add(time.Second/2), time.Second/2); printed != 100 {
		t.Errorf("%d of 100 failures printed", printed)
	}
	if ok, _ := s.admit(queue.Postponed, sampleStart.Add(time.Second/2)); !ok {
		t.Error("the first line about another outcome was left out")
	}
}

func TestSamplerReportsOmittedLines(t *testing.T) {
	t.Parallel()
	s := &sampler{perSecond: 1}
	at := func(ms int) time.Time { return sampleStart.Add(time.Duration(ms) * time.Millisecond) }
	due := func(now time.Time) omissions {
		o := omissions{}
		s.reportOmitted(now, o.report)
		return o
	}
	for range 4 {
		s.admit(queue.Done, at(0))
	}
	for range 3 {
		s.admit(queue.Failed, at(500))
	}
	if got := due(at(999)); len(got) > 0 {
		t.Errorf("due before the second is over: %v", got)
	}
	if got, want := due(at(1000)), (omissions{queue.Done: 3}); !maps.Equal(got, want) {
		t.Errorf("due %v, want %v", got, want)
	}
	if ok, omitted := s.admit(queue.Done, at(1100)); !ok || omitted != 0 {
		t.Errorf("printed %v, and reported %d again", ok, omitted)
	}
	if ok, omitted := s.admit(queue.Failed, at(1600)); !ok || omitted != 2 {
		t.Errorf("printed %v, reported %d, want 2", ok, omitted)
	}
	s.admit(queue.Failed, at(1700))
	s.admit(queue.Done, at(1700))
	rest := omissions{}
	s.reportOmitted(sampleStart.Add(time.Hour), rest.report)
	if want := (omissions{queue.Done: 1, queue.Failed: 1}); !maps.Equal(rest, want) {
		t.Errorf("rest %v, want %v", rest, want)
	}
	again := omissions{}
	if s.reportOmitted(sampleStart.Add(time.Hour), again.report); len(again) > 0 {
		t.Errorf("reported twice: %v", again)
	}
}

func TestEveryLineIsPrintedOrCounted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := &sampler{perSecond: rapid.IntRange(1, 5).Draw(t, "per second")}
		var at time.Duration
		lines, printed, reported := map[queue.Outcome]int{}, map[queue.Outcome]int{}, omissions{}
		last := map[queue.Outcome]time.Duration{}
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			at += time.Duration(rapid.IntRange(0, 300).Draw(t, "ms")) * time.Millisecond
			if rapid.IntRange(0, 19).Draw(t, "sweep?") == 0 {
				s.reportOmitted(sampleStart.Add(at), reported.report)
				continue
			}
			o := rapid.SampledFrom([]queue.Outcome{queue.Done, queue.Failed}).Draw(t, "outcome")
			ok, omitted := s.admit(o, sampleStart.Add(at))
			lines[o]++
			reported[o] += omitted
			if ok {
				printed[o]++
				last[o] = at
			} else if at-last[o] >= time.Second {
				t.Fatalf("nothing about %v was printed for %s", o, at-last[o])
			}
		}
		s.reportOmitted(sampleStart.Add(time.Hour), reported.report)
		for o, n := range lines {
			if printed[o]+reported[o] != n {
				t.Fatalf("%v: %d printed, %d reported, %d came", o, printed[o], reported[o], n)
			}
		}
	})
}

func TestSamplerForConcurrentUse(t *testing.T) {
	t.Parallel()
	s := &sampler{perSecond: 10}
	var wg sync.WaitGroup
	var mu sync.Mutex
	printed := 0
	for range 8 {
		wg.Go(func() {
			n, _ := admits(s, queue.Done, 1000, sampleStart, 0)
			mu.Lock()
			printed += n
			mu.Unlock()
		})
	}
	wg.Wait()
	if printed != 10 {
		t.Errorf("%d printed, want 10", printed)
	}
}

func BenchmarkSampler(b *testing.B) {
	s := &sampler{perSecond: 100}
	b.ReportAllocs()
	for b.Loop() {
		s.admit(queue.Done, sampleStart)
	}
}
