package autoscale

import (
	"slices"
	"time"
)

// maxDecisions is the number of decisions in a status.
const maxDecisions = 100

// Status is a snapshot of a loop.
type Status struct {
	// Policy is the policy with its defaults.
	Policy Policy
	// Inputs are those of the last decision. Desired is the size that the policy wants,
	// applied or not; 0 before the first decision. Ready is the number that is ready.
	Inputs         Inputs
	Desired, Ready int
	// Decisions are the last hundred, newest first. Repeated decisions are one entry.
	Decisions []Entry
	// Failed is the last failed call, until it succeeds again.
	Failed *Failed
}

// Entry is one decision, with its repetitions.
type Entry struct {
	Decided
	// Until is when the decision was last repeated, Times how often it was made.
	Until time.Time
	Times int
}

// Status returns a snapshot.
func (l *Loop) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.status
	s.Decisions = slices.Clone(s.Decisions)
	slices.Reverse(s.Decisions)
	if s.Failed != nil {
		failed := *s.Failed
		s.Failed = &failed
	}
	return s
}

// record adds a decision, oldest first, and reports whether it differs from the one
// before. A repeated decision keeps the newer sentence, because its numbers are newer.
func (s *Status) record(d Decided) (changed bool) {
	if n := len(s.Decisions); n > 0 {
		last := &s.Decisions[n-1]
		if last.Rule == d.Rule && last.From == d.From && last.Desired == d.Desired &&
			last.Applied == d.Applied && last.NotApplied == d.NotApplied {
			last.Until, last.Why = d.At, d.Why
			last.Times++
			return false
		}
		if n == maxDecisions {
			s.Decisions = slices.Delete(s.Decisions, 0, 1)
		}
	}
	s.Decisions = append(s.Decisions, Entry{Decided: d, Until: d.At, Times: 1})
	return true
}
