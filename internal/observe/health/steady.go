package health

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// A cause becomes worse only if votes checks within span agree.
const (
	span  = time.Minute
	votes = 3
)

type pastCheck struct {
	at    time.Time
	found map[causeID]finding
}

// steady smooths the causes, so that the status does not flap. It is immutable.
type steady struct {
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

// settle takes the findings of one check and returns the report to display. A grey status, such as Pending, replaces
// everything. Between rounds, findings are added to the last check.
//
// A fact counts at once. A measured cause becomes worse once three checks within a minute (or all, if fewer) are at
// least that bad. A cause becomes better once all checks within a minute are better. Until then, an ended cause is
// shown with its end, unless its status is Info.
func (s steady) settle(found []finding, now time.Time, round bool) (steady, Report) {
	var out Report
	if len(found) > 0 && found[0].Status.rank() == 0 {
		s.checks, s.starts = nil, nil // checks before a startup no longer apply
		out = reportOf(causesOf(found))
	} else {
		s.checks = s.with(found, now, round)
		var causes []Cause
		causes, s.starts = s.causes(found, now)
		out = reportOf(causes)
	}

	out.Since = now
	if s.shown.Status == out.Status {
		out.Since = s.shown.Since
	}
	s.shown = out
	return s, out
}

func (s steady) with(found []finding, now time.Time, round bool) []pastCheck {
	old := func(c pastCheck) bool { return now.Sub(c.at) >= span }
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

func (s steady) causes(found []finding, now time.Time) (causes []Cause, since map[causeID]starts) {
	listed := map[causeID]bool{}
	since = map[causeID]starts{}
	add := func(f *finding) {
		id := f.id()
		listed[id] = true
		cause, start := s.cause(f, now)
		if start.rank() > Ok.rank() {
			causes = append(causes, cause)
		}
		if start.rank() > since[id].rank() {
			since[id] = start
		}
	}

	for i := range found {
		add(&found[i])
	}
	for _, check := range slices.Backward(s.checks) {
		past := slices.DeleteFunc(slices.Collect(maps.Values(check.found)), func(f finding) bool {
			return listed[f.id()] || traits[s.starts[f.id()].rank()].color == Green
		})
		slices.SortFunc(past, func(a, b finding) int { return strings.Compare(a.Text, b.Text) })
		for i := range past {
			past[i].Until = s.end(past[i].id(), now)
			add(&past[i])
		}
	}
	return causes, since
}

// A cause is not displayed if the rank of its starts is Ok.
func (s steady) cause(f *finding, now time.Time) (Cause, starts) {
	id := f.id()
	first := now
	ranks := make([]int, 0, len(s.checks))
	for _, c := range slices.Backward(s.checks) {
		past, known := c.found[id]
		ranks = append(ranks, max(past.Status.rank(), Ok.rank()))
		if known {
			first = c.at
		}
	}
	slices.Sort(ranks)

	start := s.starts[id]
	was := start.rank()
	rank := min(max(was, s.agreed(ranks)), ranks[len(ranks)-1])
	if s.shown.Status.rank() == 0 && f.Status.Color() != Green {
		rank = Ok.rank() // one measurement is not enough at startup or after a grey status
	}
	if !f.measured && f.Until.IsZero() {
		rank = max(rank, f.Status.rank())
	}
	if was > Ok.rank() {
		first = now
	}
	for r := range start {
		switch {
		case r > rank:
			start[r] = time.Time{}
		case r > was:
			start[r] = first
		}
	}

	cause := f.Cause
	cause.Status = traits[rank].status
	if cause.Since.IsZero() {
		cause.Since = start[rank]
	}
	return cause, start
}

func (s steady) end(id causeID, now time.Time) time.Time {
	for _, c := range slices.Backward(s.checks) {
		if _, found := c.found[id]; found {
			break
		}
		now = c.at
	}
	return now
}

// agreed returns the highest rank that votes checks reach. With fewer checks, it returns the lowest rank if they span a
// third of span or there is only one, and 0 otherwise. ranks must be ascending.
func (s steady) agreed(ranks []int) int {
	n := len(ranks)
	switch first, last := s.checks[0].at, s.checks[n-1].at; {
	case n >= votes:
		return ranks[n-votes]
	case last.Sub(first) >= span/3:
		return ranks[0]
	case n == 1:
		return ranks[0] // the first check in more than a minute
	}
	return 0
}
