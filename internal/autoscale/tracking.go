package autoscale

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

const (
	// tolerance is the largest fraction of a process to round down.
	tolerance = 0.1
	// headroom is the reserve after a scale-in, which avoids oscillation.
	headroom = 1.15
)

type recommendation struct {
	at    time.Time
	exact float64
	size  int
	// idle means that size is not larger only because most slots are free.
	idle bool
	// whole is false if a measure was missing; size is then a lower bound.
	whole bool
	why   string
}

// track scales out once all recent recommendations exceed the size. It scales in to the largest recommendation of a
// longer period, but at most by half.
func (p Policy) track(s policyState, in Inputs, d Decision) (policyState, Decision) {
	v, ok := p.recommend(in, d.At)
	if !ok {
		d.Rule, d.Why = ruleMissing, "the number of busy slots and the backlog are unknown"
		return s, d
	}

	s.recommendations = p.appendRecent(s.recommendations, v)
	if out, ok := p.leastRecent(s.recommendations); ok && out.size > in.Desired {
		return s, p.scaleOut(out, d)
	}

	top, covered := p.mostRecent(s.recommendations, v.at)
	floor := max(roundUp(top.exact*headroom), (in.Desired+1)/2, p.MinSize)

	switch {
	case v.idle:
		d.Rule, d.Why = ruleIdle, v.why
	case !v.whole:
		d.Rule, d.Why = ruleMissing, v.why
	case v.size > in.Desired:
		d.Rule, d.Why = ruleSteady, v.why+", for less than "+span(p.ScaleOutAfter)+" so far"
	case v.size == in.Desired:
		d.Rule, d.Why = ruleSteady, v.why
	case in.Desired == p.MinSize:
		d.Rule, d.Why = ruleLimit, v.why+", and MinSize is "+fmt.Sprint(p.MinSize)
	case covered && top.size < in.Desired && floor >= in.Desired:
		d.Rule, d.Why = ruleSteady, fmt.Sprintf("%s, the most in the last %s; with 15 %% in reserve, %d", top.why, span(p.ScaleInAfter),
			floor)
	case !covered || floor >= in.Desired:
		d.Rule, d.Why = ruleSteady, v.why+", for less than "+span(p.ScaleInAfter)+" so far"
	case p.cooldownLeft(s, d.At) > 0:
		d.Rule, d.Why = ruleCooldown, fmt.Sprintf("%s, but the size changed less than %s ago", v.why, span(p.Cooldown))
	default:
		d.Desired = floor // at most halved, because the load may return
		d.Rule, d.Why = ruleIn, fmt.Sprintf("%s, the most in the last %s", top.why, span(p.ScaleInAfter))
	}
	return s, d
}

func (p Policy) recommend(in Inputs, now time.Time) (recommendation, bool) {
	busy, busyWhy := p.byBusy(in)
	backlog, drained, backlogWhy := p.byBacklog(in)
	v := recommendation{at: now, exact: max(busy, backlog), whole: in.Busy.Known && drained}

	v.size = max(roundUp(v.exact), 1)
	v.idle = in.idle() && v.size > in.Desired
	if v.idle {
		v.exact, v.size = float64(in.Desired), in.Desired
	}

	v.why = busyWhy
	if backlog > busy {
		v.why = backlogWhy
	}
	v.why = fmt.Sprintf("%s: %d needed", v.why, v.size)

	switch {
	case v.idle:
		v.why = fmt.Sprintf("%s, but %.0f %% of the slots are free: more would not help", backlogWhy, 100-in.Busy.Value)
	case !in.Busy.Known && backlog > 0:
		v.why += "; " + busyWhy
	case !drained:
		v.why += "; " + backlogWhy
	}
	return v, in.Busy.Known || in.Backlog.Known
}

// MaxSize is the largest size, as for Elastic Beanstalk's Auto Scaling groups.
const MaxSize = 10000

func roundUp(x float64) int { return int(math.Ceil(min(x, MaxSize) - tolerance)) }

func (p Policy) byBusy(in Inputs) (size float64, why string) {
	if !in.Busy.Known {
		return 0, "the number of busy slots is unknown"
	}
	share := min(in.Busy.Value, 100)
	return float64(in.Ready) * share / p.TargetBusy,
		fmt.Sprintf("%.0f %% of the slots of %d are busy, the target is %g %%", share, in.Ready, p.TargetBusy)
}

func (p Policy) byBacklog(in Inputs) (size float64, known bool, why string) {
	each, eachKnown := p.backlogPerProcess(in)
	switch {
	case !in.Backlog.Known:
		return 0, false, "the backlog is unknown"
	case in.Backlog.Value == 0:
		return 0, true, "no messages are waiting"
	case !eachKnown:
		return 0, false, waiting(in.Backlog.Value) + ", but the time per message is unknown"
	}
	return in.Backlog.Value / each, true, fmt.Sprintf("%s, %.0f per process are acceptable", waiting(in.Backlog.Value), each)
}

func waiting(n float64) string {
	if n == 1 {
		return "1 message is waiting"
	}
	return fmt.Sprintf("%.0f messages are waiting", n)
}

func span(d time.Duration) string {
	text := d.String()
	if d >= time.Minute && d%time.Minute == 0 {
		text = strings.TrimSuffix(text, "0s")
	}
	if d >= time.Hour && d%time.Hour == 0 {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// known is false if the slots or the service time are unknown.
func (p Policy) backlogPerProcess(in Inputs) (n float64, known bool) {
	if p.TargetBacklog > 0 {
		return p.TargetBacklog, true
	}
	if in.Slots <= 0 || in.ServiceTime <= 0 {
		return 0, false
	}
	// If messages take longer than DrainWithin, they need only start within it.
	return float64(in.Slots) * max(1, p.DrainWithin.Seconds()/in.ServiceTime), true
}

// appendRecent drops recommendations before a gap. Among those older than ScaleInAfter, it keeps only the newest.
func (p Policy) appendRecent(recommendations []recommendation, v recommendation) []recommendation {
	if n := len(recommendations); n > 0 && v.at.Sub(recommendations[n-1].at) > p.ScaleInAfter/2 {
		recommendations = nil
	}
	first := 0
	for first+1 < len(recommendations) && v.at.Sub(recommendations[first+1].at) >= p.ScaleInAfter {
		first++
	}
	return append(slices.Clone(recommendations[first:]), v)
}

// leastRecent returns the smallest recommendation within ScaleOutAfter, or of the last two. ok is false if there is
// only one.
func (p Policy) leastRecent(recommendations []recommendation) (least recommendation, ok bool) {
	last := len(recommendations) - 1
	least = recommendations[last]
	for i := last - 1; i >= 0; i-- {
		if last-i >= 2 && recommendations[last].at.Sub(recommendations[i].at) > p.ScaleOutAfter {
			break
		}
		if recommendations[i].size < least.size {
			least = recommendations[i]
		}
	}
	return least, last >= 1
}

// scaleOut at most doubles the size, or adds four if that is more.
func (p Policy) scaleOut(v recommendation, d Decision) Decision {
	if d.From == p.MaxSize {
		d.Rule, d.Why = ruleLimit, fmt.Sprintf("%s, but MaxSize is %d", v.why, p.MaxSize)
		return d
	}
	d.Rule = ruleOut
	d.Why = v.why
	d.Desired = min(v.size, max(2*d.From, d.From+4), p.MaxSize)
	return d
}

// mostRecent returns the largest recommendation. covered reports whether whole recommendations cover all of
// ScaleInAfter without a large gap.
func (p Policy) mostRecent(recommendations []recommendation, now time.Time) (most recommendation, covered bool) {
	var seen time.Time
	for _, v := range recommendations {
		if v.exact >= most.exact {
			most = v
		}
		if !v.whole {
			continue
		}
		if seen.IsZero() {
			covered = now.Sub(v.at) >= p.ScaleInAfter*9/10
		} else if v.at.Sub(seen) > p.ScaleInAfter/2 {
			return most, false
		}
		seen = v.at
	}
	return most, covered
}
