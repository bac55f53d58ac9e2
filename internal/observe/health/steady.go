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

// pastCheck is one report of the past.
type pastCheck struct {
	at     time.Time
	report Report
}

// steady keeps a status from flapping. The zero value is a start. It is a
// value: settle returns the next.
type steady struct {
	checks []pastCheck
	shown  Report
}

// settle takes the report of one check, about every ten seconds, and returns
// what to show. A status becomes worse when three checks within a minute are at
// least that bad (all of them, where there are fewer), and better when all
// within a minute are better. What is grey, and what is certain, is shown at
// once. The causes are those of now; while the status is worse than they are,
// those that made it so stand behind them, and while it is green, one that is
// not has to wait: nobody looks for a fault below the word Ok.
func (s steady) settle(r Report, now time.Time) (steady, Report) {
	out := r
	if r.Status.rank() == 0 {
		// What was before a start or a silence says nothing of what is after it.
		s.checks = nil
	} else {
		old := func(c pastCheck) bool { return now.Sub(c.at) >= span }
		s.checks = append(slices.DeleteFunc(slices.Clone(s.checks), old), pastCheck{now, r})
		out.Status = s.status(r)
		out.Color = out.Status.Color()
		if out.Color == Green && r.Color != Green {
			out.because(r.green)
		}
		if out.Status.rank() > r.Status.rank() || out.Status == Info && len(out.Causes) == 0 {
			out.because(s.remembered(out))
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

// between prepares for a report between two checks. It takes the place of the last check if it is as bad or
// worse: what was measured once is not a second measurement.
func (s steady) between(r Report) steady {
	if n := len(s.checks); n > 1 && r.Status.rank() >= s.checks[n-1].report.Status.rank() {
		s.checks = s.checks[:n-1]
	}
	return s
}

// status decides what is shown.
func (s steady) status(r Report) Status {
	ranks := make([]int, 0, len(s.checks))
	for _, c := range s.checks {
		ranks = append(ranks, c.report.Status.rank())
	}
	slices.Sort(ranks)
	worst, was := ranks[len(ranks)-1], s.shown.Status.rank()
	rank := min(max(was, s.agreed(ranks)), worst)
	if was == 0 { // at the start, and after a grey time, a measurement counts as good
		rank = r.calm
	}
	return traits[max(rank, r.certain, Ok.rank())].status
}

// agreed returns the rank that enough checks reach; 0 while there are too few.
// The ranks rise.
func (s steady) agreed(ranks []int) int {
	n := len(ranks)
	switch first, last := s.checks[0].at, s.checks[n-1].at; {
	case n >= votes:
		return ranks[n-votes]
	case last.Sub(first) >= span/3:
		return ranks[0]
	case n == 1:
		return ranks[0] // more than a minute lies between the checks, or this is the first
	}
	return 0
}

// remembered returns the causes of now and those that still hold the status.
func (s steady) remembered(out Report) []Cause {
	causes := slices.Clone(out.Details)
	for _, c := range slices.Backward(s.checks) {
		if c.report.Status.rank() < out.Status.rank() || out.Color == Green && c.report.Color != Green {
			continue
		}
		for _, cause := range c.report.Details {
			past := Cause{cause.Status, "Within the last minute: " + cause.Text}
			if !slices.Contains(causes, cause) && !slices.Contains(causes, past) {
				causes = append(causes, past)
			}
		}
		break
	}
	return causes
}
