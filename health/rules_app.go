package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// NotReadyGrace is how long an app that was ready may be away before that is
// Severe: as between two restarts it is a Warning.
const NotReadyGrace = 20 * time.Second

func appRule(in *Inputs, now time.Time) []finding {
	a := in.App
	if !a.Checked || a.Ready || in.Operation.Name != "" || in.Draining {
		return nil
	}
	if !a.WasReady {
		return fact(Severe, "The app has not become ready in %s.%s", ago(now.Sub(in.Started)), because(a.Reason))
	}
	status := Warning
	if now.Sub(a.Since) >= NotReadyGrace {
		status = Severe
	}
	reason := because(a.Reason)
	if slices.ContainsFunc(a.Processes, func(p Process) bool {
		return p.GivenUp && strings.HasPrefix(a.Reason, p.Name+" ")
	}) {
		reason = "" // processRule tells it
	}
	return fact(status, "The app has not been ready for %s, and gets no messages.%s", ago(now.Sub(a.Since)), reason)
}

func processRule(in *Inputs, _ time.Time) []finding {
	var found []finding
	for _, p := range in.App.Processes {
		last := ""
		if p.LastExit != "" {
			last = " Its last run ended with " + p.LastExit + "."
		}
		if p.GivenUp {
			prospect := "is not started again"
			if p.RetryAfter > 0 {
				prospect = "is tried again every " + ago(p.RetryAfter)
			}
			found = append(found, fact(Severe, "Process %s failed too often and %s.%s", p.Name, prospect, last)...)
			continue
		}
		found = append(found, fact(reach(float64(p.Restarts), level{1, Warning}, level{3, Degraded}, level{10, Severe}),
			"Process %s was started again %s in the last 5 minutes.%s", p.Name, count(int64(p.Restarts), "time"), last)...)
	}
	return found
}

func operationRule(in *Inputs, now time.Time) []finding {
	o := in.Operation
	if o.Name == "" {
		return nil
	}
	took := now.Sub(o.Since)
	if took >= cmp.Or(o.Limit, startLimit) {
		return fact(Warning, "Performing %s takes very long (running for %s).", o.Name, ago(took))
	}
	return fact(Info, "Performing %s (running for %s).", o.Name, ago(took))
}

func deploymentRule(in *Inputs, now time.Time) []finding {
	d := in.Deployment
	since := now.Sub(d.Ended)
	switch {
	case d.Version == "":
		return nil
	case d.Failed != "":
		// It stays until another deployment has gone well.
		return fact(Warning, "The deployment of %s failed %s ago, and the version before it runs.%s", d.Version, ago(since),
			because(d.Failed))
	case since < recent:
		return fact(Ok, "The deployment of %s was completed %s ago and took %s.", d.Version, ago(since), ago(d.Took))
	}
	return nil
}

// fewRequests is the number in five minutes below which a share says little, and
// fewFailures the number of failures that are worth a Warning all the same, where
// they are most of what there was.
const fewRequests, fewFailures = 10, 3

// share makes a finding of a share of failed deliveries.
func share(in *Inputs, failed int64, words string, levels ...level) []finding {
	total := in.Requests.Total()
	if failed == 0 || total == 0 {
		return nil
	}
	percent := 100 * float64(failed) / float64(total)
	status := reach(percent, levels...)
	if status == "" {
		return nil
	}
	if total < fewRequests {
		if status != Severe || failed < fewFailures {
			status = Info
		} else {
			status = Warning
		}
		return fact(status, "%.1f %% of the deliveries (%d of %d) %s. There were too few in the last 5 minutes for more "+
			"than that.", percent, failed, total, words)
	}
	return fact(status, "%.1f %% of the deliveries (%d of %d) %s.", percent, failed, total, words)
}

func serverErrorRule(in *Inputs, _ time.Time) []finding {
	r := in.Requests
	failed := r.Server + r.FailedInside + r.NoAnswer
	var ways []string // only those that there were: a function knows no 5xx
	for _, way := range []struct {
		n     int64
		words string
	}{{r.Server, "failing with HTTP 5xx"}, {r.FailedInside, "failed by the function"}, {r.NoAnswer, "without an answer"}} {
		switch way.n {
		case 0:
		case failed:
			ways = append(ways, way.words)
		default:
			ways = append(ways, fmt.Sprintf("%s (%d)", way.words, way.n))
		}
	}
	return share(in, failed, "are "+strings.Join(ways, " or "), level{3, Warning}, level{15, Degraded}, level{30, Severe})
}

// clientErrorRule is milder: an app may refuse what was sent to it.
func clientErrorRule(in *Inputs, _ time.Time) []finding {
	n, words := in.Requests.Client+in.Requests.Other, "are erroring with HTTP 4xx, or a redirect"
	if in.IgnoreClientErrors {
		n, words = in.Requests.Other, "are answered with a redirect"
	}
	return share(in, n, words,
		level{10, Warning}, level{30, Degraded}, level{60, Severe})
}

func unreachedRule(in *Inputs, _ time.Time) []finding {
	return share(in, in.Requests.Unreached, "did not reach the app", level{5, Warning}, level{25, Degraded},
		level{60, Severe})
}

// unsentRule is the mildest: neither the app nor the way to it is at fault, and
// whoever may send could send more of the kind.
func unsentRule(in *Inputs, _ time.Time) []finding {
	return share(in, in.Requests.Unsent,
		"failed before they were sent, such as for a task path that is refused; the log says why", level{10, Warning})
}

func latencyRule(in *Inputs, _ time.Time) []finding {
	r := in.Requests
	if r.Limit <= 0 || r.Total() < fewRequests || r.Percentiles.P95 < r.Limit*8/10 {
		return nil
	}
	return at(Warning, "One in twenty deliveries takes %s or longer, and %s is the limit.", brief(r.Percentiles.P95),
		brief(r.Limit))
}

// brief writes a duration with three digits.
func brief(d time.Duration) string { return fmt.Sprintf("%.3g s", d.Seconds()) }

func stopRule(in *Inputs, _ time.Time) []finding {
	switch {
	case in.Draining:
		return fact(Info, "Draining: no messages are received, and %s under way.", are(in.InWork))
	case in.Paused:
		return fact(Info, "Receiving is paused.")
	}
	return nil
}

func are(n int) string {
	if n == 1 {
		return "1 delivery is"
	}
	return fmt.Sprintf("%d deliveries are", n)
}
