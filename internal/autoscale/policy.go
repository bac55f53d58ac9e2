package autoscale

import (
	"fmt"
	"time"
)

// Policy determines the size. Package config has the defaults of its options and checks them. Without a Measure, it
// tracks the backlog and the busy slots.
//
// The fields from Measure to BreachDuration configure a trigger. With the sizes and Cooldown, they correspond to
// aws:autoscaling:trigger and aws:autoscaling:asg.
type Policy struct {
	MinSize, MaxSize int
	// Cooldown is the minimum time between two changes of size. With tracking, it delays only scale-in.
	Cooldown time.Duration

	// Instances means that the size is a number of instances, whose measures are combined. There is no scale-in while
	// most of them fail to report.
	Instances bool
	// FromMetric means that the measure is a metric of the group, and each value its statistic over one period.
	FromMetric bool

	Measure                        Measure
	Statistic                      Statistic
	Unit                           string
	LowerThreshold, UpperThreshold float64
	// LowerBreachScaleIncrement is negative and UpperBreachScaleIncrement positive.
	LowerBreachScaleIncrement, UpperBreachScaleIncrement int
	// Readings are combined over Period. EvaluationPeriods consecutive periods must breach a threshold, and together
	// last at least BreachDuration.
	Period            time.Duration
	EvaluationPeriods int
	BreachDuration    time.Duration

	// TargetBusy is the percentage of busy slots that tracking aims for and that a trigger's scale-in must not exceed,
	// 1 to 100.
	TargetBusy float64
	// DrainWithin is how soon tracking tries to finish the waiting messages.
	DrainWithin time.Duration
}

// inWholePeriods makes the breach duration a multiple of the period, like Elastic Beanstalk.
func (p Policy) inWholePeriods() Policy {
	if p.Measure != "" {
		p.EvaluationPeriods = max(p.EvaluationPeriods, int((p.BreachDuration+p.Period-1)/p.Period))
		p.BreachDuration = p.Period * time.Duration(p.EvaluationPeriods)
	}
	return p
}

func (p Policy) within(least, most int) Policy {
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

func (d *Decision) because(rule Rule, format string, args ...any) {
	d.Rule = rule
	d.Why = fmt.Sprintf(format, args...)
}

// Changes reports whether the size changes.
func (d Decision) Changes() bool { return d.Desired != d.From }

// Decide returns the next state and a decision. It has no side effects, and keeps the size if uncertain. now must not
// go backwards.
func (p Policy) Decide(s policyState, in Inputs, now time.Time) (policyState, Decision) {
	s = s.withSize(in.Desired, now)
	d := Decision{At: now, From: in.Desired, Desired: in.Desired}

	switch {
	case in.Desired < p.MinSize || in.Desired > p.MaxSize:
		d.Desired = min(max(in.Desired, p.MinSize), p.MaxSize)
		d.because(ruleBounds, "the size %d is not between MinSize %d and MaxSize %d", in.Desired, p.MinSize,
			p.MaxSize)
		return s, d
	case in.Hold != "":
		d.because(ruleHeld, "%s", in.Hold)
		return s.forget(), d
	case in.Ready <= 0:
		d.because(ruleNotReady, "none of %d is ready: a change of size would not help",
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
		d.Desired = d.From
		d.because(ruleScaleInHeld, "scale-in is held: %s, but %s", d.Why, reason)
	}
	return s, d
}

// ScaleInHeld reports whether missing reports or a paused instance prevented a scale-in.
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
