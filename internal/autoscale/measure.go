package autoscale

import (
	"encoding/json"
	"math"
	"time"
)

// Measure is a trigger's metric, as in the option MeasureName; "" means no trigger.
type Measure string

// The measures of a trigger.
const (
	CPUUtilization    Measure = "CPUUtilization"    // percent
	BacklogPerProcess Measure = "BacklogPerProcess" // waiting messages divided by the size
	OldestMessageAge  Measure = "OldestMessageAge"  // age of the oldest waiting message in seconds
	BusyShare         Measure = "BusyShare"         // busy delivery slots, in percent
)

// Statistic combines a period's readings.
type Statistic string

// The statistics of a trigger. Sum depends on the number of readings.
const (
	Average Statistic = "Average"
	Minimum Statistic = "Minimum"
	Maximum Statistic = "Maximum"
	Sum     Statistic = "Sum"
)

// Reading is a measured value. The zero value is a missing one.
type Reading struct {
	Value float64
	Known bool
}

// Negative, infinite and NaN values are missing readings.
func readingOf(v float64) Reading {
	if !(v >= 0 && v <= math.MaxFloat64) {
		return Reading{}
	}
	return Reading{Value: v, Known: true}
}

// Datapoint is a metric's value over one period, missing if Samples is 0.
type Datapoint struct {
	Value   float64
	From    time.Time
	Samples int
}

// MarshalJSON encodes a missing reading as null.
func (r Reading) MarshalJSON() ([]byte, error) {
	if !r.Known {
		return []byte("null"), nil
	}
	return json.Marshal(r.Value)
}

// UnmarshalJSON decodes null and out-of-range values as missing.
func (r *Reading) UnmarshalJSON(text []byte) error {
	var value *float64
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	*r = Reading{}
	if value != nil {
		*r = readingOf(*value)
	}
	return nil
}

// Inputs determine a decision.
type Inputs struct {
	// Desired is the last requested size, Ready the number of ready members.
	Desired, Ready int
	// CPU is the usage of all processors in percent.
	CPU Reading
	// Backlog excludes messages in flight.
	Backlog Reading
	// OldestAge is in seconds.
	OldestAge Reading
	Busy      Reading
	// Slots are per process or instance. ServiceTime is a delivery's average duration in seconds; 0 if unknown.
	Slots       int
	ServiceTime float64
	// Reporting is the number of measured instances; 0 means that all measures except the backlog are from this
	// instance. Measured is the trigger's measure over all instances; nil means that its own field applies. With
	// [Policy].FromMetric, MeasuredFrom is the start of its period.
	Reporting    int
	Measured     *Reading
	MeasuredFrom time.Time
	// HoldScaleIn is the reason that the size must not decrease, or "".
	HoldScaleIn string
	// Hold is the reason that the size must not change, such as a deployment, or "".
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
