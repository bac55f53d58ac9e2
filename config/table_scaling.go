package config

import (
	"strings"
	"time"

	"tendril/bundle"
)

const (
	// maxProcesses bounds the app's processes on one machine.
	maxProcesses = 64
	// maxSize is the largest size of a group in Elastic Beanstalk.
	maxSize = 10_000
	// maxThreshold is the largest threshold there.
	maxThreshold = 20_000_000
	// maxPeriod is the longest period there.
	maxPeriod = 600 * time.Minute
)

// The values of scale-in-protection.
const (
	// ProtectionAuto protects this machine, or task of Amazon ECS, while long work runs.
	ProtectionAuto = "auto"
	// ProtectionOff leaves protection to others.
	ProtectionOff = "off"
)

func scalingOptions() []Option {
	options := []Option{{
		Name: "scale-target", Default: ScaleNone,
		DefaultNote: "or processes where processes-max is more than processes-min",
		Help: "What is scaled: the app's processes on this machine, an EC2 Auto Scaling group, or nothing here " +
			"while the backlog per instance is published.",
		value: checked(func(s *Settings) *string {
			return &s.ScaleTarget
		}, "none, processes, publish or asg: with the name of a group", scaleTarget),
	}, {
		Name: "scale-drain-within", Default: "60s",
		Help:  "The time in which the waiting messages are to be done, where no measure is named.",
		value: duration(func(s *Settings) *time.Duration { return &s.ScaleDrainWithin }, time.Second, 24*time.Hour),
	}, {
		Name: "scale-target-busy", Default: "75",
		Help:  "How many per cent of the deliveries that can be in work are to be, where no measure is named.",
		value: integer(func(s *Settings) *int { return &s.ScaleTargetBusy }, 1, 100),
	}, {
		Name: "scale-in-protection", Default: ProtectionAuto,
		Help: "Whether the instance of an Auto Scaling group, or the task of Amazon ECS, that this is, is kept from " +
			"being taken away while long work runs.",
		value: choice(func(s *Settings) *string { return &s.ScaleInProtection }, ProtectionAuto, ProtectionOff),
	}}
	options = append(options, groupOptions()...)
	options = append(options, triggerOptions()...)
	for i := range options {
		options[i].Group = GroupScaling
	}
	return options
}

// groupOptions are those of aws:autoscaling:asg.
func groupOptions() []Option {
	return []Option{{
		Name: "scale-min-size", Namespace: bundle.NamespaceGroup, Beanstalk: "MinSize", Default: "1",
		DefaultNote: "within the bounds of the group, where one is scaled",
		Help:        "The least number of instances in the group.",
		value:       integer(func(s *Settings) *int { return &s.ScaleMinSize }, 1, maxSize),
	}, {
		Name: "scale-max-size", Namespace: bundle.NamespaceGroup, Beanstalk: "MaxSize", Default: "4",
		DefaultNote: "that of the group, where one is scaled",
		Help:        "The most instances in the group.",
		value:       integer(func(s *Settings) *int { return &s.ScaleMaxSize }, 1, maxSize),
	}, {
		Name: "scale-cooldown", Namespace: bundle.NamespaceGroup, Beanstalk: "Cooldown", Default: "360s",
		Help:  "How long after a change of size no other is made; without a measure, no smaller one.",
		value: duration(func(s *Settings) *time.Duration { return &s.ScaleCooldown }, 0, maxSize*time.Second),
	}}
}

// triggerOptions are those of aws:autoscaling:trigger.
func triggerOptions() []Option {
	return []Option{{
		Name: "scale-measure-name", Namespace: bundle.NamespaceTrigger, Beanstalk: "MeasureName",
		Example:     "BacklogPerProcess",
		DefaultNote: "none: the size follows the backlog and the deliveries in work",
		Help:        "What triggers a change of size.",
		value: words(func(s *Settings) *string {
			return &s.ScaleMeasureName
		}, "CPUUtilization, BacklogPerProcess, OldestMessageAge, BusyShare, or a measure of AWS's, which none is here",
			ownMeasures(), foreignMeasures()...),
	}, {
		Name: "scale-statistic", Namespace: bundle.NamespaceTrigger, Beanstalk: "Statistic", Default: "Average",
		Help:  "How the readings of a period become one value.",
		value: choice(func(s *Settings) *string { return &s.ScaleStatistic }, "Average", "Minimum", "Maximum", "Sum"),
	}, {
		Name: "scale-unit", Namespace: bundle.NamespaceTrigger, Beanstalk: "Unit", Example: "Percent",
		DefaultNote: "that of the measure",
		Help:        "The unit of the thresholds.",
		value:       words(func(s *Settings) *string { return &s.ScaleUnit }, strings.Join(units(), ", "), units()),
	}, {
		Name: "scale-lower-threshold", Namespace: bundle.NamespaceTrigger, Beanstalk: "LowerThreshold", Example: "25",
		DefaultNote: "by the measure: 25, 10, 10, 30",
		Help:        "The value below which the size shrinks.",
		value:       number(func(s *Settings) *float64 { return &s.ScaleLowerThreshold }, 0, maxThreshold),
	}, {
		Name: "scale-upper-threshold", Namespace: bundle.NamespaceTrigger, Beanstalk: "UpperThreshold", Example: "75",
		DefaultNote: "by the measure: 75, 100, 60, 80",
		Help:        "The value above which the size grows.",
		value:       number(func(s *Settings) *float64 { return &s.ScaleUpperThreshold }, 0, maxThreshold),
	}, {
		Name: "scale-lower-breach-scale-increment", Namespace: bundle.NamespaceTrigger,
		Beanstalk: "LowerBreachScaleIncrement", Default: "-1",
		Help:  "How many to add when the size shrinks: a negative number.",
		value: integer(func(s *Settings) *int { return &s.ScaleLowerBreachScaleIncrement }, -maxSize, -1),
	}, {
		Name: "scale-upper-breach-scale-increment", Namespace: bundle.NamespaceTrigger,
		Beanstalk: "UpperBreachScaleIncrement", Default: "1",
		Help:  "How many to add when the size grows.",
		value: integer(func(s *Settings) *int { return &s.ScaleUpperBreachScaleIncrement }, 1, maxSize),
	}, {
		Name: "scale-period", Namespace: bundle.NamespaceTrigger, Beanstalk: "Period", Default: "300s",
		beanstalkMinutes: true,
		Help:             "The time over which one value is made.",
		value:            duration(func(s *Settings) *time.Duration { return &s.ScalePeriod }, time.Second, maxPeriod),
	}, {
		Name: "scale-evaluation-periods", Namespace: bundle.NamespaceTrigger, Beanstalk: "EvaluationPeriods", Default: "1",
		Help:  "How many periods in a row must be beyond a threshold.",
		value: integer(func(s *Settings) *int { return &s.ScaleEvaluationPeriods }, 1, 600),
	}, {
		Name: "scale-breach-duration", Namespace: bundle.NamespaceTrigger, Beanstalk: "BreachDuration", Default: "0s",
		DefaultNote: "as long as the periods", beanstalkMinutes: true,
		Help:  "How long a threshold must be passed; of this and the periods the longer time counts.",
		value: duration(func(s *Settings) *time.Duration { return &s.ScaleBreachDuration }, 0, maxPeriod),
	}}
}

// ownMeasures are the measures that there are here.
func ownMeasures() []string {
	return []string{"CPUUtilization", "BacklogPerProcess", "OldestMessageAge", "BusyShare"}
}

// foreignMeasures are those of Elastic Beanstalk that nobody measures here.
func foreignMeasures() []string {
	return []string{"NetworkIn", "NetworkOut", "DiskWriteOps", "DiskReadBytes", "DiskReadOps", "DiskWriteBytes",
		"Latency", "RequestCount",
		"HealthyHostCount", "UnhealthyHostCount", "TargetResponseTime"}
}

// units are those that Elastic Beanstalk knows.
func units() []string {
	return []string{"Percent", "Count", "Seconds", "Bytes", "Bits", "Bytes/Second", "Bits/Second", "Count/Second", "None"}
}
