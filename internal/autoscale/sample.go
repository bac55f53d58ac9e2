package autoscale

import (
	"cmp"
	"fmt"
)

// Sample is one instance's load. Its JSON names must not change, because instances of different versions read each
// other's samples.
type Sample struct {
	CPU       Reading `json:"cpu"`
	OldestAge Reading `json:"oldest_age"`
	// Slots is the maximum number of concurrent deliveries, InWork the current number.
	Slots  int `json:"slots"`
	InWork int `json:"in_flight"`
	// ServiceTime is the average duration of a delivery in seconds; 0 if unknown.
	ServiceTime float64 `json:"service_time,omitempty"`
	Deploying   bool    `json:"deploying,omitempty"`
	Paused      bool    `json:"paused,omitempty"`
}

func (s *Sample) busy() Reading {
	if s.Slots <= 0 {
		return Reading{}
	}
	return readingOf(min(100*float64(s.InWork)/float64(s.Slots), 100))
}

func (s *Sample) read(m Measure) Reading {
	switch m {
	case CPUUtilization:
		return s.CPU
	case OldestMessageAge:
		return s.OldestAge
	case BusyShare:
		return s.busy()
	}
	return Reading{}
}

// Combine returns the inputs for a decision about several instances. own contains this instance's measures and the
// queues' backlog; all contains the samples of all reporting instances, including this one.
//
// The trigger's statistic combines its measure. OldestAge is the maximum; other measures are averages.
func Combine(own Inputs, all []Sample, p Policy) Inputs {
	in := own
	in.Reporting = len(all)
	if len(all) == 0 {
		return in
	}

	var total Sample
	for _, s := range all {
		total.Slots += max(s.Slots, 0)
		total.InWork += max(s.InWork, 0)
	}
	in.Busy = total.busy()
	in.Slots = total.Slots / len(all)
	in.ServiceTime = meanServiceTime(all)

	in.CPU = combineMeasure(all, CPUUtilization, Average)
	in.OldestAge = combineMeasure(all, OldestMessageAge, Maximum)
	if p.Measure != "" && p.Measure != BacklogPerProcess {
		measured := combineMeasure(all, p.Measure, p.Statistic)
		in.Measured = &measured
	}

	in.Hold, in.HoldScaleIn = holdReasons(all)
	return in
}

func meanServiceTime(all []Sample) float64 {
	sum, known := 0.0, 0
	for _, s := range all {
		if s.ServiceTime > 0 {
			sum += s.ServiceTime
			known++
		}
	}
	return sum / float64(max(known, 1))
}

func holdReasons(all []Sample) (hold, holdScaleIn string) {
	var paused, deploying int
	for _, s := range all {
		if s.Paused {
			paused++
		}
		if s.Deploying {
			deploying++
		}
	}

	switch {
	case deploying > 0:
		return fmt.Sprintf("a deployment is in progress on %d of %d instances", deploying, len(all)), ""
	case paused == len(all):
		return "receiving is paused on all instances", ""
	case paused > 0:
		return "", fmt.Sprintf("receiving is paused on %d of %d instances", paused, len(all))
	}
	return "", ""
}

func combineMeasure(all []Sample, m Measure, s Statistic) Reading {
	var rs readings
	for i := range all {
		rs = rs.add(all[i].read(m))
	}
	return rs.combined(s)
}

func (p Policy) holdScaleIn(in Inputs) string {
	switch {
	case !p.Instances:
		return ""
	case in.Reporting == 0 && (p.Measure == BacklogPerProcess || p.FromMetric): // measured for all instances
		return in.HoldScaleIn
	case in.Reporting == 0:
		return cmp.Or(in.HoldScaleIn, fmt.Sprintf("only this one of %d instances was measured", in.Desired))
	case 2*in.Reporting < in.Desired:
		return fmt.Sprintf("only %d of %d instances report their load", in.Reporting, in.Desired)
	}
	return in.HoldScaleIn
}
