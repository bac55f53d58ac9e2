package config

import (
	"slices"
	"strings"
	"time"
)

func measureDefaults(measure string) (unit string, lower, upper float64) {
	switch measure {
	case "CPUUtilization":
		return "Percent", 25, 75
	case "BacklogPerProcess":
		return "Count", 10, 100
	case "OldestMessageAge":
		return "Seconds", 10, 60
	case "BusyShare":
		return "Percent", 30, 80
	}
	return "", 0, 0
}

func deriveScaling(l *loader) {
	s := l.s
	deriveBounds(l, "scale-max-size", "scale-min-size", &s.ScaleMaxSize, &s.ScaleMinSize)
	deriveScaleTarget(l)
	deriveProcesses(l)
	deriveMeasure(l)
	dropThresholds(l)
	deriveThresholds(l)
	derivePeriod(l)
	checkCPUSource(l)
}

func checkCPUSource(l *loader) {
	s := l.s
	switch {
	case s.ScaleCPUSource != CPUFromCloudWatch:
	case !strings.HasPrefix(s.ScaleTarget, ScaleGroup):
		l.refuseValue("scale-cpu-source", "set scale-target to asg:GROUP", "needs an Auto Scaling group, and scale-target is %s",
			s.ScaleTarget)
	case s.ScalePeriod%time.Minute != 0:
		l.refuseOption("scale-period", "use a multiple of 60s", "CloudWatch does not support periods of %v", s.ScalePeriod)
	}
}

func deriveBounds(l *loader, maxName, minName string, maximum, minimum *int) {
	switch {
	case *maximum >= *minimum:
	case !l.isSet(maxName):
		*maximum = *minimum
		l.recordDerived(maxName, minName+" is larger")
	case !l.isSet(minName):
		*minimum = *maximum
		l.recordDerived(minName, maxName+" is smaller")
	default:
		l.refuseValue(maxName, "set it to the larger value", "is less than %s", l.cite(minName))
	}
}

// maxAutoProcesses keeps a bundle for a hundred instances from overloading a laptop.
const maxAutoProcesses = 16

func deriveScaleTarget(l *loader) {
	s := l.s
	if l.isSet("scale-target") || l.isSet("processes-min") || l.isSet("processes-max") || s.ScaleMaxSize == 1 ||
		!l.cfg.AnyToOwnApp() && !l.cfg.AnyOnSQS() {
		return
	}
	for _, name := range append([]string{"scale-max-size", "scale-min-size", "scale-measure-name"}, triggerNames()...) {
		if l.isSet(name) {
			s.ScaleTarget = ScaleAuto
			l.recordDerived("scale-target", name+" is set")
			return
		}
	}
}

// deriveProcesses uses group sizes only if processes are or may be scaled, because bundles mean them for instances.
func deriveProcesses(l *loader) {
	s := l.s
	if s.ScaleTarget == ScaleProcesses || s.ScaleTarget == ScaleAuto {
		deriveProcessBound(l, "processes-min", &s.ProcessesMin, "scale-min-size", s.ScaleMinSize)
		deriveProcessBound(l, "processes-max", &s.ProcessesMax, "scale-max-size", s.ScaleMaxSize)
	}

	deriveBounds(l, "processes-max", "processes-min", &s.ProcessesMax, &s.ProcessesMin)
	if !l.isSet("scale-target") && s.ScaleTarget == ScaleNone && s.ProcessesMax > s.ProcessesMin {
		s.ScaleTarget = ScaleProcesses
		l.recordDerived("scale-target", "processes-max is more than processes-min")
		for _, from := range []string{"scale-min-size", "scale-max-size"} {
			l.reportIdleBundleOptions(l.cite("processes-max")+" takes precedence", from)
		}
	}
}

func deriveProcessBound(l *loader, name string, bound *int, sizeName string, size int) {
	if l.isSet(name) {
		l.reportIdleBundleOptions(l.cite(name)+" takes precedence", sizeName)
		return
	}

	most, why := maxProcesses, "this is the maximum on one machine"
	if !l.isSet("scale-target") {
		most, why = maxAutoProcesses, "for more processes on one machine, set processes-max"
	}
	*bound = min(size, most)
	l.recordDerived(name, "the same as "+sizeName)
	if size > most {
		l.warnValue(sizeName, "", "is limited to %d: %s", most, why)
	}
}

// deriveMeasure drops a measure that only Elastic Beanstalk has, so that a bundle written for it runs unchanged.
func deriveMeasure(l *loader) {
	s := l.s
	if !slices.Contains(foreignMeasures(), s.ScaleMeasureName) {
		return
	}

	from := l.origin("scale-measure-name")
	if s.ScaleTarget != ScaleNone {
		l.warnAbout("scale-measure-name", "use "+orList(ownMeasures())+" for a trigger",
			"tendril does not measure %s, so its thresholds are not used: the size follows the backlog and the "+
				"deliveries in flight", s.ScaleMeasureName)
	}

	for _, name := range append([]string{"scale-measure-name"}, measureOptions()...) {
		l.option(name).value.unset()
		if l.isSet(name) {
			l.record(name, from)
			l.cfg.idle[name] = s.ScaleTarget != ScaleNone
		}
	}
}

func measureOptions() []string {
	return []string{"scale-unit", "scale-lower-threshold", "scale-upper-threshold"}
}

const beanstalkMeasure = "NetworkOut" // the default

func dropThresholds(l *loader) {
	s := l.s
	if s.ScaleMeasureName == "" {
		return
	}

	var dropped []string
	for _, name := range measureOptions() {
		if isForOtherMeasure(l, name) {
			dropped = append(dropped, l.cite(name))
			l.option(name).value.unset()
			l.record(name, Origin{})
		}
	}

	if len(dropped) > 0 && s.ScaleTarget != ScaleNone {
		l.warnAbout("scale-measure-name", "set the thresholds where the measure is set, or keep its defaults",
			"ignored, because they were set for a measure other than %s: %s", s.ScaleMeasureName, strings.Join(dropped, ", "))
	}
}

func isForOtherMeasure(l *loader, name string) bool {
	from := l.origin(name)
	if from.Layer == Default {
		return false
	}
	other := valueUpTo(l, "scale-measure-name", from.Layer)
	if other == "" && from.Layer == FromBundle {
		other = beanstalkMeasure
	}
	return other != "" && other != l.cfg.ScaleMeasureName
}

func valueUpTo(l *loader, name string, layer Layer) string {
	for _, at := range slices.Backward(l.cfg.chains[name]) {
		if at.Origin.Layer <= layer && at.Origin.Layer != Default {
			return at.Value
		}
	}
	return ""
}

func deriveThresholds(l *loader) {
	s := l.s
	unit, lower, upper := measureDefaults(s.ScaleMeasureName)
	if unit == "" {
		return
	}

	deriveUnit(l, unit)
	if !l.isSet("scale-upper-threshold") {
		deriveUpperThreshold(l, upper)
	}
	if !l.isSet("scale-lower-threshold") {
		deriveLowerThreshold(l, lower)
	}

	if s.ScaleLowerThreshold >= s.ScaleUpperThreshold {
		l.refuseValue("scale-lower-threshold", "leave room between them, or the size keeps changing", "is not below %s",
			l.cite("scale-upper-threshold"))
	}
}

func deriveUnit(l *loader, unit string) {
	s := l.s
	switch s.ScaleUnit {
	case unit:
	case "":
		s.ScaleUnit = unit
		l.recordDerived("scale-unit", theMeasureIs(l))
	default:
		l.warnValue("scale-unit", "", "has no effect: %s is measured in %s", s.ScaleMeasureName, unit)
		s.ScaleUnit = unit
		l.record("scale-unit", l.origin("scale-unit"))
	}
}

func deriveUpperThreshold(l *loader, usual float64) {
	s := l.s
	distant := 3 * s.ScaleLowerThreshold
	if s.ScaleUnit == "Percent" {
		distant = min(distant, (s.ScaleLowerThreshold+100)/2)
	}

	s.ScaleUpperThreshold = max(usual, distant)
	reason := theMeasureIs(l)
	if distant > usual {
		reason = "scale-lower-threshold is high for " + s.ScaleMeasureName
	}
	l.recordDerived("scale-upper-threshold", reason)
}

func deriveLowerThreshold(l *loader, usual float64) {
	s := l.s
	distant := s.ScaleUpperThreshold / 3
	s.ScaleLowerThreshold = min(usual, distant)
	reason := theMeasureIs(l)
	if distant < usual {
		reason = "scale-upper-threshold is low for " + s.ScaleMeasureName
	}
	l.recordDerived("scale-lower-threshold", reason)
}

func theMeasureIs(l *loader) string { return "the measure is " + l.s.ScaleMeasureName }

func derivePeriod(l *loader) {
	s := l.s
	if !l.isSet("scale-period") && s.ScaleBreachDuration > 0 && s.ScaleBreachDuration < s.ScalePeriod {
		s.ScalePeriod = max(s.ScaleBreachDuration, time.Second)
		l.recordDerived("scale-period", "scale-breach-duration is shorter than the default")
	}
}

func triggerNames() []string {
	return []string{"scale-statistic", "scale-unit", "scale-lower-threshold", "scale-upper-threshold",
		"scale-lower-breach-scale-increment", "scale-upper-breach-scale-increment",
		"scale-period", "scale-evaluation-periods", "scale-breach-duration"}
}

// warnUnusedUnlessBundled allows bundles for a fleet to set the options.
func warnUnusedUnlessBundled(l *loader, names []string, why, hint string) {
	for _, name := range names {
		if l.origin(name).Layer > FromBundle {
			l.warnUnused(name, why, hint)
		}
	}
}

const measureHint = "set scale-measure-name, for example to BacklogPerProcess"

var trackingOptions = []string{"scale-drain-within", "scale-target-busy"}

func warnUnusedWithMeasure(l *loader) {
	for _, name := range trackingOptions {
		l.warnUnused(name, " with scale-measure-name", "remove the measure to use it")
	}
}

// warnNothingScaled notes only the bundle's settings if the target none is explicit: other options are then meant for an
// external scaler.
func warnNothingScaled(l *loader) {
	const (
		advised = "only affects the advised size (/api/v1/scale)"
		none    = " with scale-target none"
		remedy  = "nothing is scaled; --scale-target=processes scales the processes of the app on this machine"
		hint    = "set scale-target, for example to processes"
	)
	s := l.s
	used := append([]string{"scale-cooldown"}, trackingOptions...)
	trigger := append([]string{"scale-measure-name"}, triggerNames()...)
	if s.ScaleMeasureName != "" {
		used = append([]string{"scale-cooldown"}, trigger...)
		warnUnusedWithMeasure(l)
	} else {
		l.reportIdleBundleOptions(remedy, trigger...)
		warnUnusedUnlessBundled(l, triggerNames(), " without scale-measure-name", measureHint)
	}

	l.noteBundled(append([]string{"scale-min-size", "scale-max-size"}, used...), advised+": "+remedy)
	for _, name := range used {
		if !l.isSet("scale-target") && l.origin(name).Layer > FromBundle {
			l.warnValue(name, hint, advised+none)
		}
	}
	if s.ProcessesMax > s.ProcessesMin {
		l.warnUnused("processes-max", none, "set scale-target to processes")
	}
}

func warnScaling(l *loader) {
	s, trigger := l.s, triggerNames()
	switch {
	case s.ScaleTarget == ScaleNone && !l.isSet("scale-target") && s.ScaleMaxSize == 1: // the sizes mean no scaling
	case s.ScaleTarget == ScaleNone:
		warnNothingScaled(l)
	case s.ScaleMeasureName == "":
		l.reportIdleBundleOptions(
			"no supported measure is set, so the size follows the backlog and the deliveries in flight", trigger...)
		warnUnusedUnlessBundled(l, trigger, " without scale-measure-name", measureHint)
	default:
		warnUnusedWithMeasure(l)
	}

	if s.ScaleMeasureName != "CPUUtilization" {
		l.warnUnused("scale-cpu-source", " without scale-measure-name CPUUtilization", "set the measure, or remove the source")
	}

	if s.ScalesInstances() && !l.cfg.AnyOnSQS() {
		l.warnValue("scale-target", "scale processes, or use a queue on Amazon SQS that the instances share",
			"scales instances, but each has its own embedded queue")
	}

	if s.ProcessesMax > 1 && !l.cfg.AnyToOwnApp() && s.ScaleTarget != ScaleAuto {
		l.warnUnused("processes-max", " because no messages go to an app started by tendril", "")
	}
}
