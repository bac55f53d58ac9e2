package health

import (
	"cmp"
	"fmt"
	"slices"
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
