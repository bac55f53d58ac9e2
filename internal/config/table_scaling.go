package config

import (
	"slices"
	"strings"
	"time"

	"tendril/internal/bundle"
)

const (
	maxProcesses = 64                // on one machine
	maxSize      = 10_000            // of an Elastic Beanstalk Auto Scaling group
	maxThreshold = 20_000_000        // Elastic Beanstalk's
	maxPeriod    = 600 * time.Minute // Elastic Beanstalk's
)

// Values of scale-in-protection.
const (
	protectionAuto = "auto" // protects this instance or ECS task from scale-in during long deliveries
	ProtectionOff  = "off"  // leaves it to other tools
)

// Values of scale-cpu-source.
const (
	cpuFromInstances  = "instances"  // reports of the instances
	CPUFromCloudWatch = "cloudwatch" // the group's metric in AWS/EC2
)

func scalingOptions(s *Settings) []Option {
	options := []Option{{
		Name: "scale-target", Default: ScaleNone,
		DefaultNote: "auto if scale-min-size, scale-max-size or a trigger is set; processes if processes-max " +
			"exceeds processes-min",
		Help: "Scaling target: processes on this machine, a group of instances, or nothing.",
		Detail: "auto selects this instance's Auto Scaling group or ECS service unless something else scales it, or " +
			"else the processes. publish only publishes the backlog.",
		value: checked(&s.ScaleTarget, "none, auto, processes, publish, asg:GROUP or ecs:CLUSTER/SERVICE", scaleTarget),
	}, {
		Name: "scale-drain-within", Default: "60s",
		Help:  "Target time for processing the backlog, without scale-measure-name.",
		value: duration(&s.ScaleDrainWithin, time.Second, 24*time.Hour),
	}, {
		Name: "scale-target-busy", Default: "75",
		Help:  "Target percentage of busy delivery slots, without scale-measure-name.",
		value: integer(&s.ScaleTargetBusy, 1, 100),
	}, {
		Name: "scale-in-protection", Default: protectionAuto,
		Help:  "Protect this instance from scale-in during long deliveries.",
		value: choice(&s.ScaleInProtection, protectionAuto, ProtectionOff),
	}}
	return slices.Concat(options, inNamespace(bundle.NamespaceGroup, groupOptions(s)),
		inNamespace(bundle.NamespaceTrigger, triggerOptions(s)))
}

func groupOptions(s *Settings) []Option {
	return []Option{{
		Name: "scale-min-size", Beanstalk: "MinSize", Default: "1",
		DefaultNote: "or the minimum of the scaled group",
		Help:        "Minimum number of instances in the group, or of app processes if those are scaled.",
		value:       integer(&s.ScaleMinSize, 1, maxSize),
	}, {
		Name: "scale-max-size", Beanstalk: "MaxSize", Default: "4",
		DefaultNote: "or the maximum of the scaled group",
		Help:        "Maximum number of instances in the group, or of app processes if those are scaled.",
		value:       integer(&s.ScaleMaxSize, 1, maxSize),
	}, {
		Name: "scale-cooldown", Beanstalk: "Cooldown", Default: "360s",
		Help:   "Minimum time between two changes of size.",
		Detail: "Without scale-measure-name it applies only to scale-in.",
		value:  duration(&s.ScaleCooldown, 0, maxSize*time.Second),
	}}
}

func triggerOptions(s *Settings) []Option {
	return []Option{{
		Name: "scale-measure-name", Beanstalk: "MeasureName",
		Example:     "BacklogPerProcess",
		DefaultNote: "none: the size follows backlog and deliveries in flight",
		Help:        "Measure that triggers a change of size.",
		value: anyCase(&s.ScaleMeasureName, orList(ownMeasures())+"; other Elastic Beanstalk measures are accepted but not used",
			ownMeasures(), foreignMeasures()...),
	}, {
		Name: "scale-cpu-source", Default: cpuFromInstances,
		Help:   "Source of CPUUtilization for a group: reports of the instances, or its CloudWatch metric.",
		Detail: "cloudwatch needs scale-target asg:GROUP.",
		value:  choice(&s.ScaleCPUSource, cpuFromInstances, CPUFromCloudWatch),
	}, {
		Name: "scale-statistic", Beanstalk: "Statistic", Default: "Average",
		Help:  "Statistic that combines the readings of a period.",
		value: choice(&s.ScaleStatistic, "Average", "Minimum", "Maximum", "Sum"),
	}, {
		Name: "scale-unit", Beanstalk: "Unit", Example: "Percent",
		DefaultNote: "the measure's unit",
		Help:        "Unit of the thresholds.",
		value:       anyCase(&s.ScaleUnit, strings.Join(units(), ", "), units()),
	}, {
		Name: "scale-lower-threshold", Beanstalk: "LowerThreshold", Example: "25",
		DefaultNote: "by the measure: 25, 10, 10, 30",
		Help:        "Value below which the size decreases.",
		value:       number(&s.ScaleLowerThreshold, 0, maxThreshold),
	}, {
		Name: "scale-upper-threshold", Beanstalk: "UpperThreshold", Example: "75",
		DefaultNote: "by the measure: 75, 100, 60, 80",
		Help:        "Value above which the size increases.",
		value:       number(&s.ScaleUpperThreshold, 0, maxThreshold),
	}, {
		Name: "scale-lower-breach-scale-increment", Beanstalk: "LowerBreachScaleIncrement", Default: "-1",
		Help:  "Change of size for scale-in, a negative number.",
		value: integer(&s.ScaleLowerBreachScaleIncrement, -maxSize, -1),
	}, {
		Name: "scale-upper-breach-scale-increment", Beanstalk: "UpperBreachScaleIncrement", Default: "1",
		Help:  "Change of size for scale-out.",
		value: integer(&s.ScaleUpperBreachScaleIncrement, 1, maxSize),
	}, {
		Name: "scale-period", Beanstalk: "Period", Default: "300s",
		beanstalkMinutes: true,
		Help:             "Period over which one value is measured.",
		value:            duration(&s.ScalePeriod, time.Second, maxPeriod),
	}, {
		Name: "scale-evaluation-periods", Beanstalk: "EvaluationPeriods", Default: "1",
		Help:  "Consecutive periods beyond a threshold before the size changes.",
		value: integer(&s.ScaleEvaluationPeriods, 1, 600),
	}, {
		Name: "scale-breach-duration", Beanstalk: "BreachDuration", Default: "0s",
		DefaultNote: "the length of the periods", beanstalkMinutes: true,
		Help:   "Minimum time beyond a threshold before the size changes.",
		Detail: "The longer of this and the periods applies.",
		value:  duration(&s.ScaleBreachDuration, 0, maxPeriod),
	}}
}

func ownMeasures() []string {
	return []string{"CPUUtilization", "BacklogPerProcess", "OldestMessageAge", "BusyShare"}
}

func foreignMeasures() []string {
	return []string{"NetworkIn", "NetworkOut", "DiskWriteOps", "DiskReadBytes", "DiskReadOps", "DiskWriteBytes",
		"Latency", "RequestCount", "HealthyHostCount", "UnhealthyHostCount", "TargetResponseTime"}
}

func units() []string {
	return []string{"Percent", "Count", "Seconds", "Bytes", "Bits", "Bytes/Second", "Bits/Second", "Count/Second", "None"}
}
