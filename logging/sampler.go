package logging

import (
	"sync"
	"time"

	"tendril/queue"
)

// sampler decides which of many lines about deliveries are printed: of each outcome the
// first ones in every second, while the others are counted. A second begins with its
// first line, so that a rare line is always printed, and successes never hide failures.
// It is safe for concurrent use.
type sampler struct {
	kinds [queue.Postponed + 1]sample // by outcome
}

// sample counts the lines about one outcome.
type sample struct {
	perSecond int // 0 means all

	mu               sync.Mutex
	since            time.Time
	printed, omitted int
}

func newSampler(perSecond int) *sampler {
	s := &sampler{}
	for i := range s.kinds {
		s.kinds[i].perSecond = perSecond
	}
	return s
}

// admit reports whether a line is printed at now. With the first line of a new second
// comes how many lines of the last one were omitted and not reported yet.
func (k *sample) admit(now time.Time) (ok bool, omitted int) {
	if k.perSecond == 0 {
		return true, 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if now.Sub(k.since) >= time.Second {
		omitted = k.omitted
		k.since, k.printed, k.omitted = now, 0, 0
	}
	if k.printed >= k.perSecond {
		k.omitted++
		return false, omitted
	}
	k.printed++
	return true, omitted
}

// due reports what was omitted in seconds that are over, for outcomes whose next line
// has not come yet. What was reported once is not reported again.
func (s *sampler) due(now time.Time, report func(outcome queue.Outcome, lines int)) {
	s.collect(func(k *sample) bool { return now.Sub(k.since) >= time.Second }, report)
}

// rest reports everything that was omitted and not reported yet.
func (s *sampler) rest(report func(outcome queue.Outcome, lines int)) {
	s.collect(func(*sample) bool { return true }, report)
}

func (s *sampler) collect(over func(*sample) bool, report func(outcome queue.Outcome, lines int)) {
	for outcome := range s.kinds {
		k := &s.kinds[outcome]
		k.mu.Lock()
		lines := 0
		if over(k) {
			lines, k.omitted = k.omitted, 0
		}
		k.mu.Unlock()
		if lines > 0 {
			report(queue.Outcome(outcome), lines)
		}
	}
}
