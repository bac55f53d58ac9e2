package health

import (
	"slices"
	"time"
)

// span is the time over which a status is smoothed. votes is the number of checks that must agree before it gets
// worse.
const (
	span  = time.Minute
	votes = 3
)

type pastCheck struct {
	at     time.Time
	report Report
}

// steady smooths the status so that it does not flap. It is immutable. The zero value is the state at startup.
type steady struct {
	checks []pastCheck
	shown  Report
}

// settle takes the report of one check and returns the report to display.
//
// The status becomes worse when three checks within a minute are at least that bad (or all, if there are fewer), and
// better when all are better. Grey and certain statuses are displayed immediately. Past causes follow the current
// ones while they hold the status. Causes that are not green are withheld while the status is green.
func (s steady) settle(r Report, now time.Time) (steady, Report) {
	out := r
	if r.Status.rank() == 0 {
		// Checks before a startup or a pause in the rounds no longer apply.
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

// between returns the state for an evaluation between two checks. It prevents a measurement from counting twice.
func (s steady) between(r Report) steady {
	if n := len(s.checks); n > 1 && r.Status.rank() >= s.checks[n-1].report.Status.rank() {
		s.checks = s.checks[:n-1]
	}
	return s
}

func (s steady) status(r Report) Status {
	ranks := make([]int, 0, len(s.checks))
	for _, c := range s.checks {
		ranks = append(ranks, c.report.Status.rank())
	}
	slices.Sort(ranks)
	worst, was := ranks[len(ranks)-1], s.shown.Status.rank()
	rank := min(max(was, s.agreed(ranks)), worst)
	if was == 0 { // at startup and after a grey status, a measurement makes the status green at worst
		rank = r.calm
	}
	return traits[max(rank, r.certain, Ok.rank())].status
}

// agreed returns the highest rank that at least votes checks reach. With fewer checks, it returns the lowest rank if
// they span at least a third of span or there is only one, and 0 otherwise. ranks is in ascending order.
func (s steady) agreed(ranks []int) int {
	n := len(ranks)
	switch first, last := s.checks[0].at, s.checks[n-1].at; {
	case n >= votes:
		return ranks[n-votes]
	case last.Sub(first) >= span/3:
		return ranks[0]
	case n == 1:
		return ranks[0] // first check at all, or first in more than a minute
	}
	return 0
}

// remembered returns the current causes and those that still hold the status.
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
