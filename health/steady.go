package health

import (
	"slices"
	"time"
)

// span is the time over which a status is steadied, votes how many checks in
// it make it worse.
const (
	span  = time.Minute
	votes = 3
)

// check is one report of the past.
type check struct {
	at     time.Time
	status Status
	causes []string
}

// Steady keeps a status from flapping. The zero value is a start. It is a
// value: Settle returns the next.
type Steady struct {
	checks []check
	shown  Report
}

// Settle takes the report of one check, about every ten seconds, and returns
// what to show. A status becomes worse when three checks within a minute are at
// least that bad (all of them, where there are fewer), and better when all
// within a minute are better. What is grey, and what is certain, is shown at
// once. The causes are those of now; while the status is worse than they are,
// those that made it so stand behind them, and while it is green, one that is
// not has to wait: nobody looks for a fault below the word Ok.
func (s Steady) Settle(r Report, now time.Time) (Steady, Report) {
	out := r
	if r.Status.grey() {
		// What was before a start or a silence says nothing of what is after it.
		s.checks = nil
	} else {
		s.checks = append(s.recent(now), check{now, r.Status, r.Causes})
		out.Status = s.status(r)
		out.Color = out.Status.Color()
		if out.Color == Green && r.Color != Green {
			out.Causes = r.green
		}
		if out.Status.trait().rank > r.Status.trait().rank || out.Status == Info && len(out.Causes) == 0 {
			out.Causes = s.remembered(out)
		}
		if out.Status == Info && len(out.Causes) == 0 {
			out.Status = Ok
		}
	}
	out.Since = now
	if s.shown.Status == out.Status {
		out.Since = s.shown.Since
	}
	s.shown = out
	return s, out
}

// recent returns the checks of the last minute.
func (s Steady) recent(now time.Time) []check {
	first := slices.IndexFunc(s.checks, func(c check) bool { return now.Sub(c.at) < span })
	if first < 0 {
		return nil
	}
	return slices.Clone(s.checks[first:])
}

// status decides what is shown.
func (s Steady) status(r Report) Status {
	ranks := make([]int, 0, len(s.checks))
	for _, c := range s.checks {
		ranks = append(ranks, c.status.trait().rank)
	}
	slices.Sort(ranks)
	worst, was := ranks[len(ranks)-1], s.shown.Status.trait().rank
	agreed := s.agreed(ranks)
	rank := was
	switch {
	case was == 0 && agreed == 0:
		// At the start, and after a grey time, the first checks count as good.
		rank = r.calm.trait().rank
	case agreed > was:
		rank = agreed
	case worst < was:
		rank = worst
	}
	rank = max(rank, r.certain.trait().rank)
	for _, status := range []Status{Info, Warning, Degraded, Severe} {
		if status.trait().rank == rank {
			return status
		}
	}
	return Ok
}

// agreed returns the rank that enough checks reach; 0 while there are too few.
// The ranks rise.
func (s Steady) agreed(ranks []int) int {
	n := len(ranks)
	switch first, last := s.checks[0].at, s.checks[n-1].at; {
	case n >= votes:
		return ranks[n-votes]
	case n > 1 && last.Sub(first) >= span/3:
		return ranks[0]
	case n == 1 && !s.shown.Since.IsZero() && !s.shown.Status.grey():
		return ranks[0] // more than a minute lies between the checks
	}
	return 0
}

// remembered returns the causes of now and those that still hold the status.
func (s Steady) remembered(out Report) []string {
	causes := slices.Clone(out.Causes)
	for _, c := range slices.Backward(s.checks) {
		if c.status.trait().rank < out.Status.trait().rank || out.Color == Green && c.status.Color() != Green {
			continue
		}
		for _, cause := range c.causes {
			if past := "Within the last minute: " + cause; !slices.Contains(causes, cause) && !slices.Contains(causes, past) {
				causes = append(causes, past)
			}
		}
		break
	}
	return causes
}
