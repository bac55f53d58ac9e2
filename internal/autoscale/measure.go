package autoscale

import (
	"encoding/json"
	"math"
	"slices"
)

// Measure is a trigger's metric, as in the option MeasureName. "" means no trigger.
type Measure string

// Measures of a trigger.
const (
	CPUUtilization    Measure = "CPUUtilization"    // CPU usage in percent
	BacklogPerProcess Measure = "BacklogPerProcess" // waiting messages divided by the size
	OldestMessageAge  Measure = "OldestMessageAge"  // age of the oldest waiting message in seconds
	BusyShare         Measure = "BusyShare"         // busy delivery slots in percent
)

// Statistic combines the readings of a period.
type Statistic string

// Statistics of a trigger. Sum depends on the number of readings.
const (
	Average Statistic = "Average"
	Minimum Statistic = "Minimum"
	Maximum Statistic = "Maximum"
	Sum     Statistic = "Sum"
)

type measureInfo struct {
	measure      Measure
	unit         string
	lower, upper float64
	// shared means that the value is inversely proportional to the size.
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

// Reading is a measured value. The zero value is a missing one.
type Reading struct {
	Value float64
	Known bool
}

// of treats negative, infinite and NaN values as missing.
func of(v float64) Reading {
	if !(v >= 0 && v <= math.MaxFloat64) {
		return Reading{}
	}
	return Reading{v, true}
}

// MarshalJSON writes a missing value as null.
func (r Reading) MarshalJSON() ([]byte, error) {
	if !r.Known {
		return []byte("null"), nil
	}
	return json.Marshal(r.Value)
}

// UnmarshalJSON reads what MarshalJSON writes. Values out of range are missing.
func (r *Reading) UnmarshalJSON(text []byte) error {
	var value *float64
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	*r = Reading{}
	if value != nil {
		*r = of(*value)
	}
	return nil
}

// Inputs are the inputs of a decision.
type Inputs struct {
	// Desired is the size last requested and Ready the number that is ready, both from the target.
	Desired, Ready int
	// In percent of all processors.
	CPU Reading
	// Waiting messages, excluding those in flight.
	Backlog Reading
	// Seconds.
	OldestAge Reading
	// Percentage of busy slots.
	Busy Reading
	// Slots is the number of concurrent deliveries per process or instance. ServiceTime is the duration of one in
	// seconds; 0 if unknown.
	Slots       int
	ServiceTime float64
	// Reporting is the number of measured instances; 0 means that all measures but the backlog are this instance's.
	// Measured is the trigger's measure over all of them; nil means the field of that measure.
	Reporting int
	Measured  *Reading
	// A reason against a smaller size.
	HoldScaleIn string
	// A reason to keep the size, such as a deployment in progress.
	Hold string
}

func (in Inputs) read(m Measure) Reading {
	if in.Measured != nil {
		return *in.Measured
	}
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
