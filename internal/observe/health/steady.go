package health

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// A measured cause becomes worse only if minAgreeing checks within checkPeriod agree.
const (
	checkPeriod = time.Minute
	minAgreeing = 3
)

type pastCheck struct {
	at    time.Time
	found map[causeID]finding
}

// smoother keeps the status from flapping. It is immutable.
type smoother struct {
	checks []pastCheck
	starts map[causeID]starts
	shown  Report
}

// starts holds, for each rank, when a cause became at least that bad; zero above the displayed rank.
type starts [len(traits)]time.Time

func (s starts) rank() int {
	for rank := len(s) - 1; rank > Ok.rank(); rank-- {
		if !s[rank].IsZero() {
			return rank
		}
	}
	return Ok.rank()
}

// smooth returns the report to display. A grey status, such as Pending, replaces everything. Between rounds, findings
// are added to the last check, unless it is the only one.
//
// A fact counts at once. A measured cause becomes worse once three checks within a minute (or fewer, see agreed) are at
// least that bad. A cause becomes better once no check within a minute is worse. Until then, an ended cause stays,
// unless its status is Info.
func (s smoother) smooth(found []finding, now time.Time, round bool) (smoother, Report) {
	var causes []Cause
	if len(found) > 0 && found[0].Status.Color() == Grey {
		s.checks, s.starts = nil, nil // they precede a startup
		causes = causesOf(found)
	} else {
		s.checks = s.withCheck(found, now, round)
		causes, s.starts = s.smoothedCauses(found, now)
	}

	report := reportOf(causes)
	report.Since = now
	if s.shown.Status == report.Status {
		report.Since = s.shown.Since
	}
	s.shown = report
	return s, report
}

func (s smoother) withCheck(found []finding, now time.Time, round bool) []pastCheck {
	old := func(c pastCheck) bool { return now.Sub(c.at) >= checkPeriod }
	checks := slices.DeleteFunc(slices.Clone(s.checks), old)
	check := pastCheck{now, map[causeID]finding{}}
	if n := len(checks); !round && n > 1 {
		check.found = maps.Clone(checks[n-1].found)
		checks = checks[:n-1]
	}
	for _, f := range found {
		if before, known := check.found[f.id()]; !known || f.Status.rank() >= before.Status.rank() {
			check.found[f.id()] = f
		}
	}
	return append(checks, check)
}

func (s smoother) smoothedCauses(found []finding, now time.Time) (causes []Cause, since map[causeID]starts) {
	since = map[causeID]starts{}
	for _, f := range append(slices.Clone(found), s.ended(found, now)...) {
		cause, start := s.smoothed(&f, now)
		if start.rank() > Ok.rank() {
			causes = append(causes, cause)
		}
		if start.rank() > since[f.id()].rank() {
			since[f.id()] = start
		}
	}
	return causes, since
}

func (s smoother) ended(found []finding, now time.Time) (ended []finding) {
	listed := map[causeID]bool{}
	for i := range found {
		listed[found[i].id()] = true
	}
	for _, check := range slices.Backward(s.checks) {
		past := slices.DeleteFunc(slices.Collect(maps.Values(check.found)), func(f finding) bool {
			return listed[f.id()] || traits[s.starts[f.id()].rank()].color == Green
		})
		slices.SortFunc(past, func(a, b finding) int { return strings.Compare(a.Text, b.Text) })
		for i := range past {
			listed[past[i].id()] = true
			past[i].Until = s.endOf(past[i].id(), now)
		}
		ended = append(ended, past...)
	}
	return ended
}

// smoothed also returns when the cause reached each rank. Callers omit causes with rank Ok.
func (s smoother) smoothed(f *finding, now time.Time) (Cause, starts) {
	ranks, first := s.ranksOf(f.id(), now)
	start := s.starts[f.id()]
	rank := min(max(start.rank(), s.agreed(ranks)), ranks[len(ranks)-1])
	if s.shown.Status.Color() == Grey && f.Status.Color() != Green {
		rank = Ok.rank() // one measurement is not enough at startup
	}
	if !f.measured && f.Until.IsZero() {
		rank = max(rank, f.Status.rank())
	}

	if start.rank() > Ok.rank() {
		first = now
	}
	start.setRank(rank, first)
	cause := f.Cause
	cause.Status = traits[rank].status
	isUndated := f.undated && cause.Status == f.Status
	if cause.Since.IsZero() && !isUndated {
		cause.Since = start[rank]
	}
	return cause, start
}

func (s smoother) ranksOf(id causeID, now time.Time) (ranks []int, first time.Time) {
	first = now
	for _, c := range slices.Backward(s.checks) {
		past, known := c.found[id]
		ranks = append(ranks, max(past.Status.rank(), Ok.rank()))
		if known {
			first = c.at
		}
	}
	slices.Sort(ranks)
	return ranks, first
}

func (s *starts) setRank(rank int, at time.Time) {
	was := s.rank()
	for r := range s {
		switch {
		case r > rank:
			s[r] = time.Time{}
		case r > was:
			s[r] = at
		}
	}
}

func (s smoother) endOf(id causeID, now time.Time) time.Time {
	for _, c := range slices.Backward(s.checks) {
		if _, found := c.found[id]; found {
			break
		}
		now = c.at
	}
	return now
}

// agreed returns the highest rank that at least minAgreeing checks reached. With fewer checks, it returns the lowest
// rank, but 0 for two checks less than checkPeriod/3 apart. ranks must be in ascending order.
func (s smoother) agreed(ranks []int) int {
	n := len(ranks)
	switch first, last := s.checks[0].at, s.checks[n-1].at; {
	case n >= minAgreeing:
		return ranks[n-minAgreeing]
	case n == 1 || last.Sub(first) >= checkPeriod/3:
		return ranks[0]
	}
	return 0
}
