package autoscale

import (
	"fmt"
	"math"
	"strings"
)

// Measure is what a trigger watches, by the name that the option MeasureName
// has for it. The zero value is no trigger.
type Measure string

// The measures of a trigger.
const (
	// CPUUtilization is how much of the processors is in use, in Percent.
	CPUUtilization Measure = "CPUUtilization"
	// BacklogPerProcess is the messages that wait, divided by the size, in Count.
	BacklogPerProcess Measure = "BacklogPerProcess"
	// OldestMessageAge is how long the oldest waiting message waits, in Seconds.
	OldestMessageAge Measure = "OldestMessageAge"
	// BusyShare is how many of the slots for deliveries are in use, in Percent.
	BusyShare Measure = "BusyShare"
)

// Statistic is how the readings of one period become one value.
type Statistic string

// The statistics of a trigger. Sum depends on how often is measured.
const (
	Average Statistic = "Average"
	Minimum Statistic = "Minimum"
	Maximum Statistic = "Maximum"
	Sum     Statistic = "Sum"
)

// trait is what is particular to a measure.
type measureInfo struct {
	measure      Measure
	unit         string
	lower, upper float64
	// shared tells that the value falls as the size grows, in proportion.
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
	for _, t := range measureInfos() {
		if t.measure == m {
			return t, true
		}
	}
	return measureInfo{}, false
}

// ParseMeasure reads the value of MeasureName, in any case of letters. The
// error of a measure that Elastic Beanstalk knows and a worker has no use for,
// NetworkOut for one, says which to take instead.
func ParseMeasure(name string) (Measure, error) {
	for _, t := range measureInfos() {
		if strings.EqualFold(name, string(t.measure)) {
			return t.measure, nil
		}
	}
	return "", fmt.Errorf("MeasureName %q is not measured here: write CPUUtilization, BacklogPerProcess, OldestMessageAge or BusyShare, "+
		"or leave the option out to follow the backlog and the busy slots", name)
}

// Reading is one measured value. The zero value is a missing one.
type Reading struct {
	Value float64
	Known bool
}

// Of returns a known reading; a value that is negative or no number is missing.
func Of(v float64) Reading {
	if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return Reading{}
	}
	return Reading{v, true}
}

// Inputs are what a decision rests on.
type Inputs struct {
	// Desired is the size that the target was told last, Ready how many of it
	// can work now. The [Loop] fills both from its target.
	Desired, Ready int
	// CPU is the use of the processors in percent of all of them.
	CPU Reading
	// Backlog is how many messages wait, those in work not among them.
	Backlog Reading
	// OldestAge is how long the oldest waiting message waits, in seconds.
	OldestAge Reading
	// Busy is how many of the slots of the ready ones are in use, in percent.
	Busy Reading
	// Slots is how many deliveries one process or instance makes at once, and
	// ServiceTime how long one takes in seconds; 0 where not known.
	Slots       int
	ServiceTime float64
	// Hold, unless empty, keeps the size as it is, and says why: a deployment
	// under way, receiving paused by a person.
	Hold string
}

// read returns the value that a trigger watches.
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
