package autoscale

import (
	"slices"
	"time"
)

// logged is how many decisions a status holds.
const maxDecisions = 100

// Status is a snapshot of a loop.
type Status struct {
	// Policy is complete, with its defaults.
	Policy Policy
	DryRun bool
	// Inputs are the last that were decided on. Desired is the size that the
	// policy wants, whether it was set or not; 0 before the first decision. Ready
	// is how many can work.
	Inputs         Inputs
	Desired, Ready int
	// Decisions are the last hundred, newest first; equal ones in a row are one
	// entry.
	Decisions []Entry
	// Failed is the last call that failed, while it has not worked since.
	Failed *Failed
}

// Entry is a line of the log of decisions.
type Entry struct {
	Decided
	// Until is when the same was decided last, Times how often.
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

// note adds a decision to the log, oldest first, and tells whether it is
// another than the one before. The sentence of the latest is kept: its figures
// are the newer ones.
func (s *Status) note(d Decided) (news bool) {
	if n := len(s.Decisions); n > 0 {
		last := &s.Decisions[n-1]
		if last.Rule == d.Rule && last.From == d.From && last.Desired == d.Desired && last.Applied == d.Applied && last.NotApplied == d.NotApplied {
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
