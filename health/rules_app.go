package health

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// NotReadyGrace is how long an app that was ready may be away before that is
// Severe. Until then it is a Warning, because it may only be starting again.
const NotReadyGrace = 20 * time.Second

func appRule(in *Inputs) []finding {
	a := in.App
	if a.Ready || in.Operation.Name != "" || in.Draining {
		return nil
	}
	if !a.WasReady {
		return certain(Severe, "The app has not become ready in %s.%s", ago(in.Now.Sub(in.Started)), because(a.Reason))
	}
	status := Warning
	if in.Now.Sub(a.Since) >= NotReadyGrace {
		status = Severe
	}
	reason := because(a.Reason)
	if slices.ContainsFunc(a.Processes, func(p Process) bool {
		return p.GivenUp && strings.HasPrefix(a.Reason, p.Name+" ")
	}) {
		reason = "" // processRule reports it
	}
	return certain(status, "The app has not been ready for %s, and gets no messages.%s", ago(in.Now.Sub(a.Since)), reason)
}

func processRule(in *Inputs) []finding {
	var found []finding
	for _, p := range in.App.Processes {
		last := ""
		if p.LastExit != "" {
			last = " Its last run ended with " + p.LastExit + "."
		}
		if p.GivenUp {
			next := "is not started again"
			if p.RetryAfter > 0 {
				next = "is tried again every " + ago(p.RetryAfter)
			}
			found = append(found, certain(Severe, "Process %s failed too often and %s.%s", p.Name, next, last)...)
			continue
		}
		found = append(found, certain(reach(float64(p.Restarts), level{1, Warning}, level{3, Degraded}, level{10, Severe}),
			"Process %s was started again %s in the last 5 minutes.%s", p.Name, count(int64(p.Restarts), "time"), last)...)
	}
	return found
}

func operationRule(in *Inputs) []finding {
	o := in.Operation
	if o.Name == "" {
		return nil
	}
	took := in.Now.Sub(o.Since)
	if took >= cmp.Or(o.Limit, startLimit) {
		return certain(Warning, "Performing %s takes very long (running for %s).", o.Name, ago(took))
	}
	return certain(Info, "Performing %s (running for %s).", o.Name, ago(took))
}

func deploymentRule(in *Inputs) []finding {
	d := in.Deployment
	since := in.Now.Sub(d.Ended)
	switch {
	case d.Version == "":
		return nil
	case d.Failed != "":
		// It stays until another deployment has gone well.
		return certain(Warning, "The deployment of %s failed %s ago, and the version before it runs.%s", d.Version,
			ago(since), because(d.Failed))
	case since < recent:
		return certain(Ok, "The deployment of %s was completed %s ago and took %s.", d.Version, ago(since), ago(d.Took))
	}
	return nil
}

func stopRule(in *Inputs) []finding {
	switch {
	case in.Draining && in.InWork == 1:
		return certain(Info, "Draining: no messages are received, and 1 delivery is under way.")
	case in.Draining:
		return certain(Info, "Draining: no messages are received, and %d deliveries are under way.", in.InWork)
	case in.Paused:
		return certain(Info, "Receiving is paused.")
	}
	return nil
}
