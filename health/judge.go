package health

import (
	"cmp"
	"fmt"
	"slices"
)

// rules are all of them. Each looks at one matter and stands beside the type that it looks at.
func rules() []func(*Inputs) []finding {
	return []func(*Inputs) []finding{
		appRule, processRule, operationRule, deploymentRule,
		serverErrorRule, clientErrorRule, unreachedRule, unsentRule, latencyRule,
		ageRule, backlogRule, deadLetterRule, expiredRule, storeRule, pollRule, leaderRule,
		cpuRule, memoryRule, diskRule,
		stopRule,
	}
}

// Judge applies all rules. Pass its report to [Steady.Settle].
func Judge(in Inputs) Report {
	givenUp := slices.ContainsFunc(in.App.Processes, func(p Process) bool { return p.GivenUp })
	starting := in.Now.Sub(in.Started)
	if !in.App.WasReady && !in.App.Ready && !givenUp && starting < cmp.Or(in.StartLimit, startLimit) {
		return grey(Pending, fmt.Sprintf("Performing initialization (running for %s).%s", ago(starting),
			because(in.App.Reason)))
	}
	var found []finding
	for _, rule := range rules() {
		found = append(found, rule(&in)...)
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

// grey is the report of a grey status.
func grey(s Status, cause string) Report {
	return Report{Status: s, Color: s.Color(), Causes: []string{cause}, certain: s}
}
