package autoscale

import (
	"math"
	"slices"
)

// Measure is the metric of a trigger, as in the option MeasureName. The zero value means
// no trigger.
type Measure string

// The measures of a trigger.
const (
	CPUUtilization    Measure = "CPUUtilization"    // the CPU usage, in Percent
	BacklogPerProcess Measure = "BacklogPerProcess" // the waiting messages divided by the size, in Count
	OldestMessageAge  Measure = "OldestMessageAge"  // the age of the oldest waiting message, in Seconds
	BusyShare         Measure = "BusyShare"         // the part of the delivery slots that are busy, in Percent
)

// Statistic combines the readings of one period into one value.
type Statistic string

// The statistics of a trigger. Sum depends on the number of readings.
const (
	Average Statistic = "Average"
	Minimum Statistic = "Minimum"
	Maximum Statistic = "Maximum"
	Sum     Statistic = "Sum"
)

// measureInfo describes a measure.
type measureInfo struct {
	measure      Measure
	unit         string
	lower, upper float64
	// shared is true when the value is inversely proportional to the size.
	shared bool
}

func measureInfos() []measureInfo {
	return []measureInfo{
		{CPUUtilization, "Percent", 25, 75, true},
		{BacklogPerProcess, "Count", 10, 100, true},
		{OldestMessageAge, "Seconds", 10, 60, false},
		{BusyShare, "Percent", 30, 80, true},
	}
}

func (m Measure) measureInfo() (measureInfo, bool) {
	all := measureInfos()
	if i := slices.IndexFunc(all, func(t measureInfo) bool { return t.measure == m }); i >= 0 {
		return all[i], true
	}
	return measureInfo{}, false
}

// Reading is one measured value. The zero value is a missing value.
type Reading struct {
	Value float64
	Known bool
}

// of returns a of. A value that is negative, infinite or NaN is missing.
func of(v float64) Reading {
	if !(v >= 0 && v <= math.MaxFloat64) {
		return Reading{}
	}
	return Reading{v, true}
}

// Inputs are the inputs of a decision.
type Inputs struct {
	// Desired is the size that was last requested, and Ready the number that is ready.
	// The [Loop] gets both from its target.
	Desired, Ready int
	// CPU is the CPU usage in percent of all processors.
	CPU Reading
	// Backlog is the number of waiting messages, without those in work.
	Backlog Reading
	// OldestAge is the age of the oldest waiting message, in seconds.
	OldestAge Reading
	// Busy is the part of the slots of the ready ones that are busy, in percent.
	Busy Reading
	// Slots is the number of concurrent deliveries of one process or instance, and
	// ServiceTime the duration of one in seconds; 0 when unknown.
	Slots       int
	ServiceTime float64
	// Hold, unless empty, is the reason to keep the size, such as a running deployment,
	// or receiving that a user has paused.
	Hold string
}

// read returns the value of a trigger's measure.
func (in Inputs) read(m Measure) Reading {
	switch m {
	case CPUUtilization:
		return in.CPU
	case OldestMessageAge:
		return in.OldestAge
	case BusyShare:
		return in.Busy
	case BacklogPerProcess:
		return Reading{in.Backlog.Value / float64(max(in.Desired, 1)), in.Backlog.Known}
	}
	return Reading{}
}
