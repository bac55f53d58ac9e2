package autoscale

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Policy is the rule by which a size is chosen. The zero value follows the
// backlog and the busy slots between 1 and 4. The fields from Measure to
// BreachDuration are a trigger; they and the sizes and the Cooldown have the
// names, the defaults and the meaning of aws:autoscaling:trigger and
// aws:autoscaling:asg, where a default makes sense for a worker.
type Policy struct {
	// MinSize and MaxSize bound the size, 1-10000. 0 means 1 and 4.
	MinSize, MaxSize int
	// Cooldown is how long after a change of size no other is made; with
	// tracking it bars a scale-in only. 0 means 360 s; negative means none.
	Cooldown time.Duration

	// Measure, unless empty, makes this a trigger.
	Measure Measure
	// Statistic is how the readings of a period become one value; "" means
	// Average.
	Statistic Statistic
	// Unit is that of the thresholds: Percent, Count or Seconds, whichever the
	// measure has; "" means that one.
	Unit string
	// LowerThreshold and UpperThreshold are what the value must fall below or
	// exceed. Both 0 means 25 and 75 for CPUUtilization, 10 and 100 for
	// BacklogPerProcess, 10 and 60 for OldestMessageAge, 30 and 80 for BusyShare.
	LowerThreshold, UpperThreshold float64
	// LowerBreachScaleIncrement is negative and UpperBreachScaleIncrement
	// positive: how many to add. 0 means -1 and 1.
	LowerBreachScaleIncrement, UpperBreachScaleIncrement int
	// Period is the time over which one value is made; 0 means 5 min, or
	// BreachDuration where that is shorter.
	Period time.Duration
	// EvaluationPeriods is how many periods in a row must breach; 0 means as
	// many as BreachDuration has.
	EvaluationPeriods int
	// BreachDuration is Period times EvaluationPeriods; 0 means that product.
	// Where the three do not agree, the longer time counts.
	BreachDuration time.Duration

	// TargetBusy is the share of slots in use that tracking aims at, and above
	// which no scale-in of a trigger may lead, 1-100 percent; 0 means 75.
	TargetBusy float64
	// DrainWithin is the time in which tracking wants the waiting messages
	// done; 0 means 60 s.
	DrainWithin time.Duration
	// TargetBacklog is how many waiting messages per process or instance are
	// fine; 0 means what one gets done within DrainWithin.
	TargetBacklog float64
	// ScaleOutAfter is how long all readings must ask for more before tracking
	// grows; 0 means 20 s. There are always at least two.
	ScaleOutAfter time.Duration
	// ScaleInAfter is how long all readings must be satisfied with less before
	// tracking shrinks; 0 means 5 min.
	ScaleInAfter time.Duration
}

// MaxSize is the largest size of an Auto Scaling group in the settings of
// Elastic Beanstalk.
const MaxSize = 10000

// Complete returns the policy with its defaults filled in, or an error that
// names each value out of its range.
func (p Policy) Complete() (Policy, error) {
	c := p.complete()
	t, known := c.Measure.measureInfo()
	var errs []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	refuse(c.MinSize < 1 || c.MinSize > MaxSize, "MinSize is %d: give 1 to %d", c.MinSize, MaxSize)
	refuse(c.MaxSize < c.MinSize || c.MaxSize > MaxSize, "MaxSize is %d: give MinSize (%d) to %d", c.MaxSize, c.MinSize, MaxSize)
	refuse(c.TargetBusy < 1 || c.TargetBusy > 100, "the target for busy slots is %g: give 1 to 100 percent", c.TargetBusy)
	refuse(c.TargetBacklog < 0, "the target backlog is %g: give 0 or more messages per process", c.TargetBacklog)
	refuse(c.DrainWithin < time.Second, "the time to drain the backlog in is %v: give 1s or more", c.DrainWithin)
	refuse(c.ScaleOutAfter < 0 || c.ScaleInAfter < c.ScaleOutAfter, "scale-in after %v and out after %v: in must not be quicker than out", c.ScaleInAfter, c.ScaleOutAfter)
	if c.Measure == "" {
		return c, errors.Join(errs...)
	}
	if !known {
		_, err := ParseMeasure(string(c.Measure))
		return c, errors.Join(append(errs, err)...)
	}
	switch c.Statistic {
	case Average, Minimum, Maximum, Sum:
	default:
		refuse(true, "Statistic is %q: write Average, Minimum, Maximum or Sum", c.Statistic)
	}
	refuse(c.Unit != t.unit, "Unit is %q, but %s is measured in %s: write that, or leave Unit out", c.Unit, c.Measure, t.unit)
	refuse(c.LowerThreshold < 0 || c.UpperThreshold <= c.LowerThreshold, "LowerThreshold is %g and UpperThreshold %g: the upper must be larger, and none negative", c.LowerThreshold, c.UpperThreshold)
	refuse(c.LowerBreachScaleIncrement >= 0, "LowerBreachScaleIncrement is %d: give a negative number", c.LowerBreachScaleIncrement)
	refuse(c.UpperBreachScaleIncrement <= 0, "UpperBreachScaleIncrement is %d: give a positive number", c.UpperBreachScaleIncrement)
	refuse(c.Period < time.Second || c.Period > 600*time.Minute, "Period is %v: give 1 second to 600 minutes", c.Period)
	return c, errors.Join(errs...)
}

// complete fills the defaults in.
func (p Policy) complete() Policy {
	p.MinSize = cmp.Or(p.MinSize, 1)
	p.MaxSize = cmp.Or(p.MaxSize, max(4, p.MinSize))
	p.Cooldown = cmp.Or(p.Cooldown, 360*time.Second) // what is negative stays so: this is done to a complete policy too
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

// within returns the policy for a target that takes no size below least or above most.
func (p Policy) within(least, most int) Policy {
	p = p.complete()
	p.MinSize, p.MaxSize = min(max(p.MinSize, least), most), max(min(p.MaxSize, most), least)
	return p
}

// State is what a policy remembers between decisions. The zero value is a
// start; it is not changed by Decide, which returns the next.
type State struct {
	begun   bool
	desired int
	// changed is when the size was last seen to have changed.
	changed         time.Time
	recommendations []recommendation
	period          period
	// over and under are how many periods in a row have breached a threshold,
	// value that of the last, work the most that was in work in it.
	over, under int
	value, work float64
}

// Rule names the part of a policy that made a decision. It is stable, while
// the sentence of a decision has figures in it.
type Rule string

// The rules, in the order in which they are asked.
const (
	// RuleBounds: the size was outside of MinSize and MaxSize.
	RuleBounds Rule = "bounds"
	// RuleHeld: [Inputs].Hold says so.
	RuleHeld Rule = "held"
	// RuleNotReady: none can work, so that more would not help.
	RuleNotReady Rule = "not ready"
	// RuleMissing: what is measured is not known well enough.
	RuleMissing Rule = "missing"
	// RuleOut and RuleIn: the size changes.
	RuleOut Rule = "out"
	RuleIn  Rule = "in"
	// RuleLimit: it would change, were it not at MinSize or MaxSize already.
	RuleLimit Rule = "limit"
	// RuleCooldown: it would change, but did not long ago.
	RuleCooldown Rule = "cooldown"
	// RuleNeeded: it would shrink, but the work in hand forbids.
	RuleNeeded Rule = "needed"
	// RuleIdle: it would grow for what waits, but most slots are free.
	RuleIdle Rule = "idle"
	// RuleSteady: nothing asks for another size for long enough.
	RuleSteady Rule = "steady"
)

// Decision is what a policy says.
type Decision struct {
	At time.Time
	// From is the size found, Desired the size to set; they are equal where
	// nothing is to be done.
	From, Desired int
	Rule          Rule
	// Why is a sentence for people.
	Why string
}

// Changes tells whether there is anything to do.
func (d Decision) Changes() bool { return d.Desired != d.From }

// Decide returns the size to set, and what to remember. It does nothing, and
// holds whenever it is not sure. now must not go backwards.
func (p Policy) Decide(s State, in Inputs, now time.Time) (State, Decision) {
	p = p.complete()
	s = s.observe(in.Desired, now)
	d := Decision{At: now, From: in.Desired, Desired: in.Desired}
	switch {
	case in.Desired < p.MinSize || in.Desired > p.MaxSize:
		d.Desired = min(max(in.Desired, p.MinSize), p.MaxSize)
		d.Rule, d.Why = RuleBounds, fmt.Sprintf("%d is outside of MinSize %d and MaxSize %d", in.Desired, p.MinSize, p.MaxSize)
		return s, d
	case in.Hold != "":
		d.Rule, d.Why = RuleHeld, in.Hold
		return s.forget(), d
	case in.Ready <= 0:
		d.Rule, d.Why = RuleNotReady, fmt.Sprintf("none of %d is ready to work: more would not help, and fewer neither", in.Desired)
		return s.forget(), d
	}
	in.Ready = min(in.Ready, in.Desired)
	if p.Measure == "" {
		return p.track(s, in, d)
	}
	return p.trigger(s, in, d)
}

// observe notes the size, and that it changed.
func (s State) observe(desired int, now time.Time) State {
	if s.begun && s.desired != desired {
		s.changed = now
		s.period, s.over, s.under = period{}, 0, 0
	}
	s.begun, s.desired = true, desired
	return s
}

// forget drops what was measured.
func (s State) forget() State {
	s.recommendations, s.period, s.over, s.under = nil, period{}, 0, 0
	return s
}

// cooling returns how long a change is still barred; 0 when it is not.
func (p Policy) cooldownLeft(s State, now time.Time) time.Duration {
	if s.changed.IsZero() {
		return 0
	}
	return max(p.Cooldown-now.Sub(s.changed), 0)
}
