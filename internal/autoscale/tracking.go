package autoscale

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

const (
	roundingTolerance = 0.1
	// headroom after a scale-in avoids oscillation.
	headroom = 1.15
	// Tracking scales out when all readings within scaleOutAfter, at least two, request a larger size, and in when all
	// within scaleInAfter request a smaller one.
	scaleOutAfter = 20 * time.Second
	scaleInAfter  = 5 * time.Minute
)

type recommendation struct {
	at    time.Time
	exact float64
	size  int
	// idle means that size would be larger if most slots were not free.
	idle bool
	// whole is false if a measure was missing; size is then a lower bound.
	whole bool
	why   string
}

func (p Policy) decideByTracking(s policyState, in Inputs, d Decision) (policyState, Decision) {
	if !in.Busy.Known && !in.Backlog.Known {
		d.because(ruleMissing, "the number of busy slots and the backlog are unknown")
		return s, d
	}

	v := p.recommend(in, d.At)
	s.recommendations = appendRecent(s.recommendations, v)
	if least, ok := smallestRecent(s.recommendations); ok && least.size > in.Desired {
		return s, p.scaleOut(least, d)
	}

	switch {
	case v.idle:
		d.because(ruleIdle, "%s", v.why)
	case !v.whole:
		d.because(ruleMissing, "%s", v.why)
	case v.size > in.Desired:
		d.because(ruleSteady, "%s, for less than %s so far", v.why, shortDuration(scaleOutAfter))
	case v.size == in.Desired:
		d.because(ruleSteady, "%s", v.why)
	default:
		d = p.scaleIn(s, v, d)
	}
	return s, d
}

func (p Policy) scaleIn(s policyState, v recommendation, d Decision) Decision {
	top, covered := largest(s.recommendations), coversScaleIn(s.recommendations, v.at)
	next := max(roundUp(top.exact*headroom), (d.From+1)/2, p.MinSize) // at most halved, because the load may return

	switch {
	case d.From == p.MinSize:
		d.because(ruleLimit, "%s, and MinSize is %d", v.why, p.MinSize)
	case covered && top.size < d.From && next >= d.From:
		d.because(ruleSteady, "%s, the most in the last %s; %d with a reserve of 15 %%", top.why,
			shortDuration(scaleInAfter), next)
	case !covered || next >= d.From:
		d.because(ruleSteady, "%s, for less than %s so far", v.why, shortDuration(scaleInAfter))
	case p.cooldownLeft(s, d.At) > 0:
		d.because(ruleCooldown, "%s, but the size changed less than %s ago", v.why, shortDuration(p.Cooldown))
	default:
		d.Desired = next
		d.because(ruleIn, "%s, the most in the last %s", top.why, shortDuration(scaleInAfter))
	}
	return d
}

type need struct {
	size  float64
	known bool
	why   string
}

func (p Policy) recommend(in Inputs, now time.Time) recommendation {
	busy, backlog := p.neededByBusy(in), p.neededByBacklog(in)
	v := recommendation{at: now, exact: max(busy.size, backlog.size), whole: busy.known && backlog.known}

	v.size = max(roundUp(v.exact), 1)
	v.idle = in.idle() && v.size > in.Desired
	if v.idle {
		v.exact, v.size = float64(in.Desired), in.Desired
		v.why = fmt.Sprintf("%s, but %.0f %% of the slots are free: more would not help", backlog.why, 100-in.Busy.Value)
		return v
	}

	v.why = busy.why
	if backlog.size > busy.size {
		v.why = backlog.why
	}
	v.why = fmt.Sprintf("%s: %d needed", v.why, v.size)

	switch {
	case !busy.known && backlog.size > 0:
		v.why += "; " + busy.why
	case !backlog.known:
		v.why += "; " + backlog.why
	}
	return v
}

// MaxSize is the largest size, as for Elastic Beanstalk's Auto Scaling groups.
const MaxSize = 10000

func roundUp(x float64) int { return int(math.Ceil(min(x, MaxSize) - roundingTolerance)) }

func (p Policy) neededByBusy(in Inputs) need {
	if !in.Busy.Known {
		return need{why: "the number of busy slots is unknown"}
	}
	share := min(in.Busy.Value, 100)
	return need{
		size:  float64(in.Ready) * share / p.TargetBusy,
		known: true,
		why:   fmt.Sprintf("%d ready, %.0f %% of their slots busy (target %g %%)", in.Ready, share, p.TargetBusy),
	}
}

func (p Policy) neededByBacklog(in Inputs) need {
	each, eachKnown := p.backlogPerProcess(in)
	switch {
	case !in.Backlog.Known:
		return need{why: "the backlog is unknown"}
	case in.Backlog.Value == 0:
		return need{known: true, why: "no messages are waiting"}
	case !eachKnown:
		return need{why: waiting(in.Backlog.Value) + ", but the time per message is unknown"}
	}
	return need{
		size:  in.Backlog.Value / each,
		known: true,
		why:   fmt.Sprintf("%s, %.0f per process are acceptable", waiting(in.Backlog.Value), each),
	}
}

func waiting(n float64) string {
	if n == 1 {
		return "1 message is waiting"
	}
	return fmt.Sprintf("%.0f messages are waiting", n)
}

func shortDuration(d time.Duration) string {
	text := d.String()
	if d >= time.Minute && d%time.Minute == 0 {
		text = strings.TrimSuffix(text, "0s")
	}
	if d >= time.Hour && d%time.Hour == 0 {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func (p Policy) backlogPerProcess(in Inputs) (n float64, known bool) {
	if in.Slots <= 0 || in.ServiceTime <= 0 {
		return 0, false
	}
	// Messages that take longer than DrainWithin need only start within it.
	return float64(in.Slots) * max(1, p.DrainWithin.Seconds()/in.ServiceTime), true
}

// appendRecent drops recommendations before a long gap, and all but one of those older than scaleInAfter.
func appendRecent(recommendations []recommendation, v recommendation) []recommendation {
	if n := len(recommendations); n > 0 && v.at.Sub(recommendations[n-1].at) > scaleInAfter/2 {
		recommendations = nil
	}
	first := 0
	for first+1 < len(recommendations) && v.at.Sub(recommendations[first+1].at) >= scaleInAfter {
		first++
	}
	return append(slices.Clone(recommendations[first:]), v)
}

func smallestRecent(recommendations []recommendation) (least recommendation, ok bool) {
	last := len(recommendations) - 1
	least = recommendations[last]
	for i := last - 1; i >= 0; i-- {
		if last-i >= 2 && recommendations[last].at.Sub(recommendations[i].at) > scaleOutAfter {
			break
		}
		if recommendations[i].size < least.size {
			least = recommendations[i]
		}
	}
	return least, last >= 1
}

func (p Policy) scaleOut(v recommendation, d Decision) Decision {
	if d.From == p.MaxSize {
		d.because(ruleLimit, "%s, but MaxSize is %d", v.why, p.MaxSize)
		return d
	}
	d.because(ruleOut, "%s", v.why)
	d.Desired = min(v.size, max(2*d.From, d.From+4), p.MaxSize)
	return d
}

func largest(recommendations []recommendation) (top recommendation) {
	for _, v := range recommendations {
		if v.exact >= top.exact {
			top = v
		}
	}
	return top
}

// coversScaleIn reports whether whole recommendations cover nearly all of scaleInAfter, without a long gap.
func coversScaleIn(recommendations []recommendation, now time.Time) (covered bool) {
	var seen time.Time
	for _, v := range recommendations {
		if !v.whole {
			continue
		}
		if seen.IsZero() {
			covered = now.Sub(v.at) >= scaleInAfter*9/10
		} else if v.at.Sub(seen) > scaleInAfter/2 {
			return false
		}
		seen = v.at
	}
	return covered
}
