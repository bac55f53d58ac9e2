package environment

import (
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var (
	sampleStart = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	doneLine    = lineKind{"worker", "done"}
	failedLine  = lineKind{"worker", "failed"}
)

// admits counts how many of n lines of a kind are printed, spread over a time.
func admits(s *sampler, kind lineKind, n int, begin time.Time, over time.Duration) (printed, told int) {
	k := s.of(kind.component, kind.outcome)
	for i := range n {
		ok, before := k.admit(begin.Add(over * time.Duration(i) / time.Duration(n)))
		if ok {
			printed++
		}
		told += before
	}
	return printed, told
}

func TestSamplerPrintsTheFirstOfEachSecond(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		most, n       int
		over          time.Duration
		printed, told int
	}{
		{"few", 0, 100, time.Second, 100, 0},
		{"just more", 0, 101, time.Second, 100, 0},
		{"slow", 0, 1000, 10 * time.Second, 1000, 0},
		{"twice too many", 0, 2000, 10 * time.Second, 1000, 900}, // the last second is not over
		{"all at once", 0, 5000, 0, 100, 0},
		{"own bound", 3, 10, time.Second, 3, 0},
		{"no sampling", -1, 5000, 0, 5000, 0},
	} {
		s := newSampler(tt.most)
		printed, told := admits(s, doneLine, tt.n, sampleStart, tt.over)
		if printed != tt.printed || told != tt.told {
			t.Errorf("%s: %d printed and %d told of, want %d and %d", tt.name, printed, told, tt.printed, tt.told)
		}
		for _, l := range s.rest() {
			told += l.lines
		}
		if printed+told != tt.n {
			t.Errorf("%s: %d printed and %d left out of %d", tt.name, printed, told, tt.n)
		}
	}
}

// TestSuccessesHideNoFailures: a flood of one kind leaves the others alone.
func TestSuccessesHideNoFailures(t *testing.T) {
	t.Parallel()
	s := newSampler(0)
	admits(s, doneLine, 100_000, sampleStart, time.Second)
	if printed, _ := admits(s, failedLine, 100, sampleStart.Add(time.Second/2), time.Second/2); printed != 100 {
		t.Errorf("%d of 100 failures printed", printed)
	}
	if ok, _ := s.of("periodic", "failed").admit(sampleStart.Add(time.Second / 2)); !ok {
		t.Error("the first line of another component was left out")
	}
}

func TestSamplerTellsWhatItLeftOut(t *testing.T) {
	t.Parallel()
	s := newSampler(1)
	done, failed := s.of("worker", "done"), s.of("worker", "failed")
	at := func(ms int) time.Time { return sampleStart.Add(time.Duration(ms) * time.Millisecond) }
	for range 4 {
		done.admit(at(0))
	}
	for range 3 {
		failed.admit(at(500))
	}
	if got := s.due(at(999)); got != nil {
		t.Errorf("due before the second is over: %v", got)
	}
	if got, want := s.due(at(1000)), []leftOut{{doneLine, 3}}; !slices.Equal(got, want) {
		t.Errorf("due %v, want %v", got, want)
	}
	if ok, before := done.admit(at(1100)); !ok || before != 0 {
		t.Errorf("printed %v, and told again of %d", ok, before)
	}
	ok, before := failed.admit(at(1600))
	if !ok || before != 2 {
		t.Errorf("printed %v, told of %d, want 2", ok, before)
	}
	failed.admit(at(1700))
	done.admit(at(1700))
	if got, want := s.rest(), []leftOut{{doneLine, 1}, {failedLine, 1}}; !slices.Equal(got, want) {
		t.Errorf("rest %v, want %v", got, want)
	}
	if got := s.rest(); got != nil {
		t.Errorf("told twice: %v", got)
	}
}

func TestLeftOutReadsWell(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "1 line like this one was left out",
		4211: "4211 lines like this one were left out"} {
		if got := (leftOut{doneLine, n}).String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestEveryLineIsPrintedOrCounted, whatever the order of the times, and a kind is
// never silent for a second in which it has lines.
func TestEveryLineIsPrintedOrCounted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newSampler(rapid.IntRange(1, 5).Draw(t, "most"))
		var at time.Duration
		lines, printed, told := map[lineKind]int{}, map[lineKind]int{}, map[lineKind]int{}
		last := map[lineKind]time.Duration{}
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			at += time.Duration(rapid.IntRange(0, 300).Draw(t, "ms")) * time.Millisecond
			if rapid.IntRange(0, 19).Draw(t, "sweep?") == 0 {
				for _, l := range s.due(sampleStart.Add(at)) {
					told[l.kind] += l.lines
				}
				continue
			}
			kind := rapid.SampledFrom([]lineKind{doneLine, failedLine}).Draw(t, "kind")
			ok, before := s.of(kind.component, kind.outcome).admit(sampleStart.Add(at))
			lines[kind]++
			told[kind] += before
			if ok {
				printed[kind]++
				last[kind] = at
			} else if at-last[kind] >= time.Second {
				t.Fatalf("nothing of %v was printed for %s", kind, at-last[kind])
			}
		}
		for _, l := range s.rest() {
			told[l.kind] += l.lines
		}
		for kind, n := range lines {
			if printed[kind]+told[kind] != n {
				t.Fatalf("%v: %d printed, %d told of, %d came", kind, printed[kind], told[kind], n)
			}
		}
	})
}

func TestSamplerForMany(t *testing.T) {
	t.Parallel()
	s := newSampler(10)
	var wg sync.WaitGroup
	var mu sync.Mutex
	printed := 0
	for range 8 {
		wg.Go(func() {
			n, _ := admits(s, doneLine, 1000, sampleStart, 0)
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
	k := newSampler(0).of("worker", "done")
	b.ReportAllocs()
	for b.Loop() {
		k.admit(sampleStart)
	}
}
