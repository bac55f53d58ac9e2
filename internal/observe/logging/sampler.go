package logging

import (
	"sync"
	"time"

	"tendril/queue"
)

// sampler admits each outcome's first lines per second, so that successes never hide failures. It is safe for
// concurrent use.
type sampler struct {
	perSecond int // 0 means no limit

	mu    sync.Mutex
	kinds [queue.Postponed + 1]struct { // by outcome; Postponed is the last
		since            time.Time
		printed, omitted int
	}
}

func (s *sampler) admit(outcome queue.Outcome, now time.Time) (ok bool, omitted int) {
	if s.perSecond == 0 {
		return true, 0
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	k := &s.kinds[outcome]
	if now.Sub(k.since) >= time.Second {
		omitted = k.omitted
		k.since = now
		k.printed = 0
		k.omitted = 0
	}

	if k.printed >= s.perSecond {
		k.omitted++
		return false, omitted
	}

	k.printed++
	return true, omitted
}

func (s *sampler) reportOmitted(now time.Time, report func(outcome queue.Outcome, lines int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for outcome := range s.kinds {
		if k := &s.kinds[outcome]; k.omitted > 0 && now.Sub(k.since) >= time.Second {
			report(queue.Outcome(outcome), k.omitted)
			k.omitted = 0
		}
	}
}

// Interval limits a recurring line to one per Every. The zero value does not limit it.
type Interval struct {
	Every time.Duration

	mu   sync.Mutex
	last time.Time
}

// Allow reports whether the line may be printed now.
func (i *Interval) Allow() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := time.Now()
	if !i.last.IsZero() && now.Sub(i.last) < i.Every {
		return false
	}
	i.last = now
	return true
}
