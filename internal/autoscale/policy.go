package autoscale

import (
	"cmp"
	"fmt"
	"time"
)

// Policy determines the size. The zero value tracks the backlog and the busy slots, with sizes from 1 to 4.
//
// The fields from Measure to BreachDuration configure a trigger. With the sizes and Cooldown, they correspond to
// aws:autoscaling:trigger and aws:autoscaling:asg.
type Policy struct {
	// MinSize 0 means 1; MaxSize 0 means 4, or MinSize if larger. The maximum is 10000.
	MinSize, MaxSize int
	// Cooldown is the minimum time between two changes of size; 0 means 360 s, negative means none. With tracking, it
	// delays only scale-in.
	Cooldown time.Duration

	// Instances means that the size is a number of instances, whose measures are combined. It does not decrease while
	// most of them fail to report.
	Instances bool
	// FromMetric means that the measure is a metric of the group, and each value its statistic over one period.
	FromMetric bool

	Measure Measure
	// Statistic defaults to Average.
	Statistic Statistic
	// Unit is Percent, Count or Seconds and must match the measure; "" means the measure's unit.
	Unit string
	// If both thresholds are 0, they are 25 and 75 for CPUUtilization, 10 and 100 for BacklogPerProcess, 10 and 60 for
	// OldestMessageAge, and 30 and 80 for BusyShare.
	LowerThreshold, UpperThreshold float64
	// LowerBreachScaleIncrement is negative and UpperBreachScaleIncrement positive; 0 means -1 and 1.
	LowerBreachScaleIncrement, UpperBreachScaleIncrement int
	// Readings are combined over Period; 0 means 5 min, or BreachDuration if shorter.
	Period time.Duration
	// EvaluationPeriods is the number of consecutive periods that must breach a threshold; 0 means BreachDuration /
	// Period.
	EvaluationPeriods int
	// BreachDuration is Period times EvaluationPeriods; 0 means that product. If the three disagree, the longer time
	// applies.
	BreachDuration time.Duration

	// TargetBusy is the percentage of busy slots that tracking aims for and that a trigger's scale-in must not exceed,
	// 1 to 100; 0 means 75.
	TargetBusy float64
	// DrainWithin is how soon tracking tries to finish the waiting messages; 0 means 60 s.
	DrainWithin time.Duration
	// TargetBacklog is how many messages may wait per process or instance; 0 means as many as it finishes within
	// DrainWithin.
	TargetBacklog float64
	// Tracking scales out when all readings within ScaleOutAfter, at least two, request a larger size; 0 means 20 s.
	ScaleOutAfter time.Duration
	// Tracking scales in when all readings within ScaleInAfter request a smaller size; 0 means 5 min.
	ScaleInAfter time.Duration
}

// Complete fills in defaults. It does not check values, because package config has.
func (p Policy) Complete() Policy {
	p.MinSize = cmp.Or(p.MinSize, 1)
	p.MaxSize = cmp.Or(p.MaxSize, max(4, p.MinSize))
	p.Cooldown = cmp.Or(p.Cooldown, 360*time.Second) // negative stays, because Complete may be called again
	p.TargetBusy = cmp.Or(p.TargetBusy, 75)
	p.DrainWithin = cmp.Or(p.DrainWithin, time.Minute)
	p.ScaleOutAfter = cmp.Or(p.ScaleOutAfter, 20*time.Second)
	p.ScaleInAfter = cmp.Or(p.ScaleInAfter, 5*time.Minute)

	t, ok := p.Measure.measureInfo()
	if !ok {
		return p
	}

	p.Statistic = cmp.Or(p.Statistic, Average)
	p.Unit = cmp.Or(p.Unit, t.unit)
	if p.LowerThreshold == 0 && p.UpperThreshold == 0 {
		p.LowerThreshold, p.UpperThreshold = t.lower, t.upper
	}
	p.LowerBreachScaleIncrement = cmp.Or(p.LowerBreachScaleIncrement, -1)
	p.UpperBreachScaleIncrement = cmp.Or(p.UpperBreachScaleIncrement, 1)

	if p.Period == 0 {
		p.Period = 5 * time.Minute
		if p.BreachDuration > 0 {
			p.Period = min(p.Period, p.BreachDuration)
		}
	}

	p.EvaluationPeriods = max(p.EvaluationPeriods, int((p.BreachDuration+p.Period-1)/max(p.Period, 1)), 1)
	p.BreachDuration = p.Period * time.Duration(p.EvaluationPeriods)
	return p
}

func (p Policy) within(least, most int) Policy {
	p = p.Complete()
	p.MinSize, p.MaxSize = min(max(p.MinSize, least), most), max(min(p.MaxSize, most), least)
	return p
}

type policyState struct {
	begun           bool
	desired         int
	changed         time.Time
	recommendations []recommendation
	period          period
	// over and under count consecutive periods beyond the thresholds. value and work belong to the last complete
	// period.
	over, under int
	value       Reading
	work        float64
}

// Rule names the rule that made a decision.
type Rule string

// The rules, in the order in which they are checked.
const (
	ruleBounds      Rule = "bounds"
	ruleHeld        Rule = "held"
	ruleNotReady    Rule = "not ready"
	ruleMissing     Rule = "missing" // a measure is missing or covers no whole period yet
	ruleOut         Rule = "out"
	ruleIn          Rule = "in"
	ruleLimit       Rule = "limit"
	ruleCooldown    Rule = "cooldown"
	ruleScaleInHeld Rule = "scale-in held"
	ruleNeeded      Rule = "needed"
	ruleIdle        Rule = "idle"   // messages wait, but most slots are free
	ruleSteady      Rule = "steady" // no other size was needed for long enough
)

// Decision is the result of applying a policy.
type Decision struct {
	At            time.Time
	From, Desired int
	Rule          Rule
	Why           string
}

// Changes reports whether the size changes.
func (d Decision) Changes() bool { return d.Desired != d.From }

// Decide returns the next state and a decision. It has no side effects, and keeps the size if uncertain. now must not
// go backwards.
func (p Policy) Decide(s policyState, in Inputs, now time.Time) (policyState, Decision) {
	p = p.Complete()
	s = s.withSize(in.Desired, now)
	d := Decision{At: now, From: in.Desired, Desired: in.Desired}

	switch {
	case in.Desired < p.MinSize || in.Desired > p.MaxSize:
		d.Desired = min(max(in.Desired, p.MinSize), p.MaxSize)
		d.Rule, d.Why = ruleBounds, fmt.Sprintf("the size %d is not between MinSize %d and MaxSize %d", in.Desired, p.MinSize,
			p.MaxSize)
		return s, d
	case in.Hold != "":
		d.Rule, d.Why = ruleHeld, in.Hold
		return s.forget(), d
	case in.Ready <= 0:
		d.Rule, d.Why = ruleNotReady, fmt.Sprintf("none of %d is ready: a change of size would not help",
			in.Desired)
		return s.forget(), d
	}

	in.Ready = min(in.Ready, in.Desired)
	decide := p.decideByTrigger
	if p.Measure == "" {
		decide = p.decideByTracking
	}

	s, d = decide(s, in, d)
	if reason := p.holdScaleIn(in); d.Rule == ruleIn && reason != "" {
		d.Desired, d.Rule = d.From, ruleScaleInHeld
		d.Why = fmt.Sprintf("scale-in is held: %s, but %s", d.Why, reason)
	}
	return s, d
}

// ScaleInHeld reports whether the instances' measures prevented a decrease.
func (d Decision) ScaleInHeld() bool { return d.Rule == ruleScaleInHeld }

func (s policyState) withSize(desired int, now time.Time) policyState {
	if s.begun && s.desired != desired {
		s.changed = now
		s = s.discardPeriods()
	}
	s.begun, s.desired = true, desired
	return s
}

func (s policyState) forget() policyState {
	s.recommendations = nil
	return s.discardPeriods()
}

func (s policyState) discardPeriods() policyState {
	s.period, s.value = period{}, Reading{}
	s.over, s.under = 0, 0
	return s
}

func (p Policy) cooldownLeft(s policyState, now time.Time) time.Duration {
	if s.changed.IsZero() {
		return 0
	}
	return max(p.Cooldown-now.Sub(s.changed), 0)
}
