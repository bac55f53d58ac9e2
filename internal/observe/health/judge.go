package health

import (
	"cmp"
	"fmt"
	"slices"
)

// judge applies all rules. The result is not smoothed.
func judge(in inputs) Report {
	givenUp := slices.ContainsFunc(in.App.Processes, func(p Process) bool { return p.GivenUp })
	starting := in.Now.Sub(in.Started)
	stored := in.Queue.Failed == "" && in.DataDir.Lost == "" // failures of the storage are urgent even before the app is ready
	if !in.App.WasReady && !in.App.Ready && !givenUp && stored && starting < cmp.Or(in.StartLimit, startLimit) {
		return grey(Pending, fmt.Sprintf("Performing initialization (running for %s).%s", ago(starting),
			in.because(in.App.Reason)))
	}

	var found []finding
	for _, rule := range []func(*inputs) []finding{
		appRule, processRule, operationRule, deploymentRule,
		serverErrorRule, clientErrorRule, unreachedRule, unsentRule, latencyRule,
		ageRule, backlogRule, deadLetterRule, expiredRule, problemRule,
		storeRule, dataDirRule, pollRule, leaderRule, taskRule,
		cpuRule, memoryRule, diskRule, scalingRule,
		stopRule,
	} {
		found = append(found, rule(&in)...)
	}

	slices.SortStableFunc(found, func(a, b finding) int { return b.status.rank() - a.status.rank() })
	out := Report{certain: Ok.rank(), calm: Ok.rank()}
	worst := Ok.rank()
	var causes []Cause
	for _, f := range found {
		cause := Cause{f.status, f.cause}
		rank := f.status.rank()
		worst = max(worst, rank)
		causes = append(causes, cause)
		if f.status.Color() == Green {
			out.green = append(out.green, cause)
			out.calm = max(out.calm, rank)
		}
		if f.certain {
			out.certain = max(out.certain, rank)
		}
	}

	out.because(causes)
	out.Status = traits[worst].status
	out.Color = out.Status.Color()
	return out
}

func grey(s Status, cause string) Report {
	r := Report{Status: s, Color: s.Color()}
	r.because([]Cause{{s, cause}})
	return r
}
