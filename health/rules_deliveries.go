package health

import (
	"fmt"
	"strings"
)

// fewRequests is the number in five minutes below which a share says little, and
// fewFailures the number of failures that are worth a Warning all the same, where
// they are most of what there was.
const fewRequests, fewFailures = 10, 3

// share is a finding about the share of failed deliveries.
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
		return certain(status, "%.1f %% of the deliveries (%d of %d) %s. There were too few in the last 5 minutes for more "+
			"than that.", percent, failed, total, words)
	}
	return certain(status, "%.1f %% of the deliveries (%d of %d) %s.", percent, failed, total, words)
}

func serverErrorRule(in *Inputs) []finding {
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
func clientErrorRule(in *Inputs) []finding {
	n, words := in.Requests.Client+in.Requests.Other, "are erroring with HTTP 4xx, or a redirect"
	if in.IgnoreClientErrors {
		n, words = in.Requests.Other, "are answered with a redirect"
	}
	return share(in, n, words,
		level{10, Warning}, level{30, Degraded}, level{60, Severe})
}

func unreachedRule(in *Inputs) []finding {
	return share(in, in.Requests.Unreached, "did not reach the app", level{5, Warning}, level{25, Degraded},
		level{60, Severe})
}

// unsentRule is the mildest: neither the app nor the way to it is at fault, and
// whoever may send could send more of the kind.
func unsentRule(in *Inputs) []finding {
	return share(in, in.Requests.Unsent,
		"failed before they were sent, such as for a task path that is refused; the log says why", level{10, Warning})
}

func latencyRule(in *Inputs) []finding {
	r := in.Requests
	if r.Limit <= 0 || r.Total() < fewRequests || r.Percentiles.P95 < r.Limit*8/10 {
		return nil
	}
	return measured(Warning, "One in twenty deliveries takes %.3g s or longer, and %.3g s is the limit.",
		r.Percentiles.P95.Seconds(), r.Limit.Seconds())
}
