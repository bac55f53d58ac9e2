package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// finding is what one rule says.
type finding struct {
	status Status
	cause  string
	// certain findings are not smoothed: they are facts or counts, not measurements
	// of a moment.
	certain bool
}

// rule looks at one matter.
type rule struct {
	name string
	look func(in *Inputs, now time.Time) []finding
}

// rules are all of them.
func rules() []rule {
	return []rule{
		{"app", appRule}, {"processes", processRule}, {"operation", operationRule}, {"deployment", deploymentRule},
		{"server errors", serverErrorRule}, {"client errors", clientErrorRule}, {"unreached", unreachedRule},
		{"unsent", unsentRule}, {"latency", latencyRule},
		{"age", ageRule}, {"backlog", backlogRule}, {"dead letters", deadLetterRule}, {"expired", expiredRule},
		{"store", storeRule},
		{"poll", pollRule}, {"leader", leaderRule},
		{"cpu", cpuRule}, {"memory", memoryRule}, {"disk", diskRule},
		{"stop", stopRule},
	}
}

// level is a threshold: from at on, the status.
type level struct {
	at     float64
	status Status
}

// reach returns the status of the highest level that v reaches; "" for none.
// The levels rise.
func reach(v float64, levels ...level) Status {
	var s Status
	for _, l := range levels {
		if v >= l.at {
			s = l.status
		}
	}
	return s
}

// at makes a finding of a status that may be none.
func at(s Status, format string, args ...any) []finding {
	if s == "" {
		return nil
	}
	return []finding{{status: s, cause: fmt.Sprintf(format, args...)}}
}

// fact is at for a finding that is certain.
func fact(s Status, format string, args ...any) []finding {
	found := at(s, format, args...)
	for i := range found {
		found[i].certain = true
	}
	return found
}

const (
	// startLimit is the time that a start or an operation may take.
	startLimit = 10 * time.Minute
	// stale is how old a reading may be.
	stale = time.Minute
	// recent is how long an event of the past is worth a line.
	recent = 5 * time.Minute
)

// Judge applies all rules to one reading. Pass its report to [Steady.Settle].
func Judge(in Inputs, now time.Time) Report {
	if age := now.Sub(in.Taken); !in.Taken.IsZero() && age > stale {
		return report(NoData, "No data. Last seen "+ago(age)+" ago.")
	}
	if in.App.Checked && !in.App.WasReady && !in.App.Ready && !in.givenUp() &&
		now.Sub(in.Started) < cmp.Or(in.StartLimit, startLimit) {
		return report(Pending,
			fmt.Sprintf("Performing initialization (running for %s).%s", ago(now.Sub(in.Started)), because(in.App.Reason)))
	}
	var found []finding
	for _, r := range rules() {
		found = append(found, r.look(&in, now)...)
	}
	slices.SortStableFunc(found, func(a, b finding) int { return b.status.trait().rank - a.status.trait().rank })
	out := Report{Status: Ok, certain: Ok, calm: Ok}
	for _, f := range found {
		out.Causes = append(out.Causes, f.cause)
		if f.status.Color() == Green {
			out.green = append(out.green, f.cause)
			out.calm = worse(out.calm, f.status)
		}
		out.Status = worse(out.Status, f.status)
		if f.certain {
			out.certain = worse(out.certain, f.status)
		}
	}
	if out.Status == Ok && !in.App.Checked && !in.Poll.Reached && in.Requests.Total() == 0 {
		return report(Unknown, "Not enough is known yet: no receive was answered, and no delivery made.")
	}
	out.Color = out.Status.Color()
	return out
}

// worse returns the worse of two statuses that are not grey.
func worse(a, b Status) Status {
	if b.trait().rank > a.trait().rank {
		return b
	}
	return a
}

// report is one of a grey status, or of one cause.
func report(s Status, cause string) Report {
	return Report{Status: s, Color: s.Color(), Causes: []string{cause}, certain: s}
}

func (in *Inputs) givenUp() bool {
	return slices.ContainsFunc(in.App.Processes, func(p Process) bool { return p.GivenUp })
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " " + sentence(reason)
}

// sentence gives a reason of another part a capital and a full stop.
func sentence(s string) string {
	s = strings.TrimRight(strings.TrimSpace(s), ".")
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// ago writes a duration as people say it.
func ago(d time.Duration) string {
	n, unit := int64(max(d, 0)/time.Second), "second"
	switch {
	case d >= 48*time.Hour:
		n, unit = int64(d/(24*time.Hour)), "day"
	case d >= 2*time.Hour:
		n, unit = int64(d/time.Hour), "hour"
	case d >= 2*time.Minute:
		n, unit = int64(d/time.Minute), "minute"
	}
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// count writes a number of things.
func count(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
