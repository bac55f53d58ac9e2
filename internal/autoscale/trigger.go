package autoscale

import (
	"fmt"
	"time"
)

type period struct {
	begun, last time.Time
	readings    readings
	work        float64
}

func (q period) add(r Reading, now time.Time) period {
	if q.begun.IsZero() {
		q.begun = now
	}
	q.last = now
	q.readings = q.readings.add(r)
	return q
}

type readings struct {
	known, missing   int
	sum, least, most float64
}

func (rs readings) add(r Reading) readings {
	if !r.Known {
		rs.missing++
		return rs
	}
	if rs.known == 0 {
		rs.least, rs.most = r.Value, r.Value
	}
	rs.known++
	rs.sum += r.Value
	rs.least, rs.most = min(rs.least, r.Value), max(rs.most, r.Value)
	return rs
}

func (rs readings) combined(s Statistic) Reading {
	if rs.known == 0 || rs.missing > rs.known {
		return Reading{}
	}
	switch s {
	case Minimum:
		return Reading{rs.least, true}
	case Maximum:
		return Reading{rs.most, true}
	case Sum:
		return Reading{rs.sum, true}
	}
	return Reading{rs.sum / float64(rs.known), true}
}

func (p Policy) decideByTrigger(s policyState, in Inputs, d Decision) (policyState, Decision) {
	s = p.addReading(s, in, d.At)
	was := fmt.Sprintf("%s of %s was %.4g %s", p.Statistic, p.Measure, s.value.Value, p.Unit)
	switch now := in.read(p.Measure); {
	case s.over >= p.EvaluationPeriods:
		return s, p.resize(s, in, d, p.UpperBreachScaleIncrement, fmt.Sprintf("%s, above %.4g for %s", was, p.UpperThreshold,
			shortDuration(p.BreachDuration)))
	case s.under >= p.EvaluationPeriods:
		return s, p.resize(s, in, d, p.LowerBreachScaleIncrement, fmt.Sprintf("%s, below %.4g for %s", was, p.LowerThreshold,
			shortDuration(p.BreachDuration)))
	case !now.Known:
		d.because(ruleMissing, "%s is unknown", p.Measure)
	case s.over > 0:
		d.because(ruleSteady, "%s, above %.4g for less than %s so far", was, p.UpperThreshold, shortDuration(p.BreachDuration))
	case s.under > 0:
		d.because(ruleSteady, "%s, below %.4g for less than %s so far", was, p.LowerThreshold, shortDuration(p.BreachDuration))
	case !s.value.Known:
		d.because(ruleMissing, "%s is %.4g %s now, but not yet measured for a complete period of %s", p.Measure,
			now.Value, p.Unit, shortDuration(p.Period))
	default:
		d.because(ruleSteady, "%s in the last complete period of %s, between %.4g and %.4g", was, shortDuration(p.Period),
			p.LowerThreshold, p.UpperThreshold)
	}

	return s, d
}

// addReading discards the period and the counts of breaches after a gap of more than Period.
func (p Policy) addReading(s policyState, in Inputs, now time.Time) policyState {
	if p.FromMetric {
		return p.addMetricPeriod(s, in)
	}
	if !s.period.last.IsZero() && now.Sub(s.period.last) > p.Period {
		s = s.discardPeriods()
	}
	s.period.work = max(s.period.work, in.busyProcesses())
	s.period = s.period.add(in.read(p.Measure), now)
	if now.Sub(s.period.begun) < p.Period {
		return s
	}
	return p.closePeriod(s, now)
}

func (p Policy) addMetricPeriod(s policyState, in Inputs) policyState {
	s.period.work = max(s.period.work, in.busyProcesses())
	elapsed := in.MeasuredFrom.Sub(s.period.begun)
	if elapsed <= 0 || in.MeasuredFrom.Before(s.changed) {
		return s
	}
	if elapsed > p.Period {
		s.over, s.under = 0, 0
	}
	s.period = s.period.add(in.read(p.Measure), in.MeasuredFrom)
	return p.closePeriod(s, in.MeasuredFrom)
}

func (p Policy) closePeriod(s policyState, now time.Time) policyState {
	s.value = s.period.readings.combined(p.Statistic)
	s.work = s.period.work
	s.period = period{begun: now, last: now}
	switch v := s.value; {
	case v.Known && v.Value > p.UpperThreshold:
		s.over, s.under = s.over+1, 0
	case v.Known && v.Value < p.LowerThreshold:
		s.over, s.under = 0, s.under+1
	default:
		s.over, s.under = 0, 0
	}
	return s
}

func (p Policy) resize(s policyState, in Inputs, d Decision, by int, why string) Decision {
	next := min(max(d.From+by, p.MinSize), p.MaxSize)
	switch now := in.read(p.Measure); {
	case next == d.From:
		d.because(ruleLimit, "%s, but the size must be between MinSize %d and MaxSize %d", why, p.MinSize, p.MaxSize)
	case p.cooldownLeft(s, d.At) > 0:
		d.because(ruleCooldown, "%s, but the size changed less than %s ago", why, shortDuration(p.Cooldown))
	case !now.Known:
		d.because(ruleMissing, "%s, but is unknown now", why)
	case p.nearUpper(in) != (by > 0) && p.Statistic != Sum:
		d.because(ruleSteady, "%s, but now it is %.4g", why, now.Value)
	case next > d.From && p.Measure != CPUUtilization && in.idle():
		d.because(ruleIdle, "%s, but %.0f %% of the slots are free: more would not help", why, 100-in.Busy.Value)
	case next > d.From:
		d.because(ruleOut, "%s", why)
		d.Desired = next
	default:
		return p.decrease(s, in, d, next, why)
	}
	return d
}

// decrease scales in to the smallest size that whyNotSmaller accepts. least is the size after the whole decrement.
func (p Policy) decrease(s policyState, in Inputs, d Decision, least int, why string) Decision {
	for size := least; size < d.From; size++ {
		reason := p.whyNotSmaller(s, in, size)
		if reason == "" {
			d.because(ruleIn, "%s", why)
			d.Desired = size
			return d
		}
		d.because(ruleNeeded, "%s, but %s", why, reason)
	}
	return d
}

// nearUpper compares the current value, which a past spike does not affect.
func (p Policy) nearUpper(in Inputs) bool {
	return in.read(p.Measure).Value > (p.LowerThreshold+p.UpperThreshold)/2
}

// If most slots are free, the message group, a limit or the queue itself holds back messages.
func (in Inputs) idle() bool { return in.Busy.Known && in.Busy.Value < 50 }

func (in Inputs) busyProcesses() float64 { return float64(in.Ready) * min(in.Busy.Value, 100) / 100 }

func (p Policy) whyNotSmaller(s policyState, in Inputs, next int) string {
	fallsWithSize := p.Measure != OldestMessageAge
	if then := s.value.Value * float64(in.Desired) / float64(next); fallsWithSize && then >= p.UpperThreshold {
		return fmt.Sprintf("with %d it would be %.4g, which triggers scale-out again", next, then)
	}
	// An empty backlog says nothing about the work in flight that keeps it empty.
	if !in.Busy.Known && (p.Measure == BacklogPerProcess || p.Measure == OldestMessageAge) {
		return "the number of busy slots is unknown"
	}
	if then := max(s.work, in.busyProcesses()) * 100 / float64(next); then > p.TargetBusy {
		return fmt.Sprintf("with %d, %.0f %% of the slots would be busy", next, then)
	}
	if each, ok := p.backlogPerProcess(in); ok && in.Backlog.Known && in.Backlog.Value > each*float64(next) {
		return fmt.Sprintf("%.0f messages are waiting", in.Backlog.Value)
	}
	return ""
}
