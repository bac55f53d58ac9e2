package health

import (
	"cmp"
	"slices"
)

type finding struct {
	Cause
	measured bool // counts only if several checks agree; others count at once
	undated  bool // already existed when the environment started
}

func judge(in inputs) (found []finding) {
	if in.isStarting() {
		return fact(Cause{Kind: "start", Status: Pending, Text: "Performing initialization." + in.because(in.App.Reason),
			Remedy: "tendril logs", Since: in.Started})
	}

	// Among equally severe causes, earlier rules come first.
	for _, rule := range []func(*inputs) []finding{
		storeRule, diskRule, dataDirRule, appRule, processRule, operationRule, deploymentRule,
	} {
		found = append(found, rule(&in)...)
	}
	for i := range in.Queues {
		for _, rule := range []func(*inputs, *queueInputs) []finding{
			serverErrorRule, clientErrorRule, unreachedRule, unsentRule, latencyRule, ageRule, deadLetterRule, expiredRule,
			pollRule, pauseRule,
		} {
			found = append(found, rule(&in, &in.Queues[i])...)
		}
	}
	for _, rule := range []func(*inputs) []finding{
		problemRule, leaderRule, taskRule, cpuRule, memoryRule, scalingRule, registryLossRule, drainRule,
	} {
		found = append(found, rule(&in)...)
	}
	return found
}

func (in *inputs) isStarting() bool {
	givenUp := slices.ContainsFunc(in.App.Processes, func(p Process) bool { return p.GivenUp })
	storageFails := in.Store != "" || in.DataDir.Lost != "" // urgent even before the app is ready
	return !in.App.WasReady && !in.App.Ready && !givenUp && !storageFails &&
		in.Now.Sub(in.Started) < cmp.Or(in.StartLimit, startLimit)
}

func reportOf(causes []Cause) (r Report) {
	slices.SortStableFunc(causes, func(a, b Cause) int { return b.Status.rank() - a.Status.rank() })
	r.Status, r.Details = Ok, causes
	if len(causes) > 0 {
		r.Status = causes[0].Status
	}
	r.Color = r.Status.Color()
	for _, c := range causes {
		r.Causes = append(r.Causes, c.Text)
	}
	return r
}

func causesOf(found []finding) (causes []Cause) {
	for _, f := range found {
		causes = append(causes, f.Cause)
	}
	return causes
}

func noData(text string) Report {
	return reportOf([]Cause{{Kind: "no-data", Status: NoData, Text: text, Remedy: "tendril logs"}})
}
