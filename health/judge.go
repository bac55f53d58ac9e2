package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// judge applies all rules. Pass its report to settle of steady.
func judge(in inputs) Report {
	givenUp := slices.ContainsFunc(in.App.Processes, func(p Process) bool { return p.GivenUp })
	starting := in.Now.Sub(in.Started)
	if !in.App.WasReady && !in.App.Ready && !givenUp && starting < cmp.Or(in.StartLimit, startLimit) {
		return grey(Pending, fmt.Sprintf("Performing initialization (running for %s).%s", ago(starting),
			because(in.App.Reason)))
	}
	var found []finding
	for _, rule := range []func(*inputs) []finding{
		appRule, processRule, operationRule, deploymentRule,
		serverErrorRule, clientErrorRule, unreachedRule, unsentRule, latencyRule,
		ageRule, backlogRule, deadLetterRule, expiredRule, storeRule, pollRule, leaderRule,
		cpuRule, memoryRule, diskRule,
		stopRule,
	} {
		found = append(found, rule(&in)...)
	}
	slices.SortStableFunc(found, func(a, b finding) int { return b.status.rank() - a.status.rank() })
	out := Report{certain: Ok.rank(), calm: Ok.rank()}
	worst := Ok.rank()
	for _, f := range found {
		rank := f.status.rank()
		worst = max(worst, rank)
		out.Causes = append(out.Causes, f.cause)
		if f.status.Color() == Green {
			out.green = append(out.green, f.cause)
			out.calm = max(out.calm, rank)
		}
		if f.certain {
			out.certain = max(out.certain, rank)
		}
	}
	out.Status = traits[worst].status
	out.Color = out.Status.Color()
	return out
}

// grey is the report of a grey status.
func grey(s Status, cause string) Report {
	return Report{Status: s, Color: s.Color(), Causes: []string{cause}}
}

// finding is what one rule says.
type finding struct {
	status Status
	cause  string
	// certain findings are not smoothed: they are facts or counts, not measurements
	// of a moment.
	certain bool
}

// level is a threshold: the status from the value at on.
type level struct {
	at     float64
	status Status
}

// reach returns the status of the highest level that v reaches; "" for none.
// The levels rise.
func reach(v float64, levels ...level) (s Status) {
	for _, l := range levels {
		if v >= l.at {
			s = l.status
		}
	}
	return s
}

// measured is a finding about a measurement; none if the status is "".
func measured(s Status, format string, args ...any) []finding {
	if s == "" {
		return nil
	}
	return []finding{{s, fmt.Sprintf(format, args...), false}}
}

// certain is a finding that is not smoothed; none if the status is "".
func certain(s Status, format string, args ...any) []finding {
	if s == "" {
		return nil
	}
	return []finding{{s, fmt.Sprintf(format, args...), true}}
}

const (
	// startLimit is the default time that a start or an operation may take.
	startLimit = 10 * time.Minute
	// recent is how long an event of the past is mentioned.
	recent = 5 * time.Minute
)

// because turns the reason of another part into a sentence after a sentence; "" for no
// reason.
func because(reason string) string {
	s := strings.TrimRight(strings.TrimSpace(reason), ".")
	if s == "" {
		return ""
	}
	return " " + strings.ToUpper(s[:1]) + s[1:] + "."
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
	return count(n, unit)
}

// count writes a number of things.
func count(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
