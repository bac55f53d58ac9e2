package config

import (
	"slices"
	"strings"
	"testing"
	"time"

	"tendril/internal/bundle"
)

func TestScaling(t *testing.T) {
	t.Parallel()
	inBundle := func(pairs ...string) []bundle.Setting {
		var all []bundle.Setting
		for i := 0; i < len(pairs); i += 2 {
			namespace := bundle.NamespaceTrigger
			if o, _ := Lookup(pairs[i]); o.Namespace == bundle.NamespaceGroup {
				namespace = bundle.NamespaceGroup
			}
			all = append(all, setting(namespace, pairs[i], pairs[i+1], i+1))
		}
		return all
	}
	for name, c := range map[string]struct {
		bundle  []bundle.Setting
		flags   map[string]string
		check   func(*Settings) bool
		warning string
		want    string
	}{
		"nothing": {check: func(s *Settings) bool {
			return s.ScaleTarget == ScaleNone && s.ProcessesMin == 1 && s.ProcessesMax == 1
		}},
		"a fixed number": {flags: map[string]string{"processes-min": "3"}, check: func(s *Settings) bool {
			return s.ScaleTarget == ScaleNone && s.ProcessesMax == 3
		}},
		"a range": {flags: map[string]string{"processes-max": "3"}, check: func(s *Settings) bool {
			return s.ScaleTarget == ScaleProcesses && s.ProcessesMin == 1 && s.ProcessesMax == 3
		}},
		"a range upside down": {flags: map[string]string{"processes-min": "5", "processes-max": "3"},
			want: "--processes-max: processes-max 3 is less than processes-min 5 (--processes-min)"},
		"a range not scaled": {flags: map[string]string{"processes-max": "3", "scale-target": "none"},
			check: func(s *Settings) bool {
				return s.ScaleTarget == ScaleNone
			}, warning: "processes-max 3 has no effect with scale-target none"},
		"processes": {flags: map[string]string{"scale-target": "processes"}, check: func(s *Settings) bool {
			return s.ProcessesMin == 1 && s.ProcessesMax == 4
		}},
		"processes of a group": {bundle: inBundle("MinSize", "2", "MaxSize", "100"),
			flags: map[string]string{"scale-target": "processes"}, check: func(s *Settings) bool {
				return s.ProcessesMin == 2 && s.ProcessesMax == 64
			},
			warning: "scale-max-size 100 is limited to 64: this is the maximum on one machine"},
		"a group in a bundle": {bundle: inBundle("MinSize", "2", "MaxSize", "6", "Cooldown", "60"),
			check: func(s *Settings) bool {
				return s.ProcessesMin == 2 && s.ProcessesMax == 6 && s.ScaleTarget == ScaleAuto && s.ScaleMinSize == 2 &&
					s.ScaleMaxSize == 6 && s.ScaleCooldown == time.Minute
			}},
		"a large group in a bundle": {bundle: inBundle("MinSize", "20", "MaxSize", "100"),
			flags: map[string]string{"scale-min-size": "2"}, check: func(s *Settings) bool {
				return s.ScaleTarget == ScaleAuto && s.ProcessesMin == 2 && s.ProcessesMax == 16 && s.ScaleMaxSize == 100
			}, warning: "scale-max-size 100 is limited to 16: for more processes on one machine, set processes-max"},
		"a group of one in a bundle": {bundle: inBundle("MinSize", "1", "MaxSize", "1", "MeasureName", "CPUUtilization"),
			check: func(s *Settings) bool {
				return s.ScaleTarget == ScaleNone && s.ProcessesMax == 1
			}},
		"a group that is not to be scaled": {bundle: inBundle("MinSize", "2", "MaxSize", "6"),
			flags: map[string]string{"scale-target": "none"}, check: func(s *Settings) bool {
				return s.ScaleTarget == ScaleNone && s.ProcessesMin == 1 && s.ProcessesMax == 1
			}},
		"a group and one process": {bundle: inBundle("MinSize", "2", "MaxSize", "6"),
			flags: map[string]string{"processes-max": "1"}, check: func(s *Settings) bool {
				return s.ScaleTarget == ScaleNone && s.ProcessesMax == 1
			}},
		"a trigger alone": {bundle: inBundle("MeasureName", "CPUUtilization"), check: func(s *Settings) bool {
			return s.ScaleTarget == ScaleAuto && s.ProcessesMin == 1 && s.ProcessesMax == 4
		}},
		"a cooldown alone": {bundle: inBundle("Cooldown", "60"), check: func(s *Settings) bool {
			return s.ScaleTarget == ScaleNone
		}},
		"a group and nothing to scale": {bundle: inBundle("MaxSize", "6"), flags: map[string]string{"target": "http://app"},
			check: func(s *Settings) bool { return s.ScaleTarget == ScaleNone }},
		"a group and an app elsewhere": {bundle: inBundle("MaxSize", "6"),
			flags: map[string]string{"target": "http://app", "queue-url": someURL},
			check: func(s *Settings) bool { return s.ScaleTarget == ScaleAuto }},
		"a service": {flags: map[string]string{"scale-target": "ecs:jobs/worker-1", "queue-url": someURL},
			check: func(s *Settings) bool {
				return s.ScaleTarget == "ecs:jobs/worker-1" && s.ScalesInstances()
			}},
		"a service without a cluster": {flags: map[string]string{"scale-target": "ecs:worker", "queue-url": someURL},
			want: "does not name a cluster and a service"},
		"a large least size": {flags: map[string]string{"scale-min-size": "9"}, check: func(s *Settings) bool {
			return s.ScaleMaxSize == 9
		}},
		"a most size of none": {bundle: inBundle("MinSize", "3", "MaxSize", "2"),
			want: "scale-max-size 2 is less than scale-min-size 3"},
		"processes without a range": {flags: map[string]string{"scale-target": "processes", "processes-max": "2"},
			check: func(s *Settings) bool {
				return s.ProcessesMin == 1 && s.ProcessesMax == 2
			}},
		"processes without a app": {flags: map[string]string{"processes-max": "2", "target": "http://app"},
			check: func(*Settings) bool {
				return true
			}, warning: "processes-max 2 has no effect because no messages go to an app started by tendril"},
		"instances of own queues": {flags: map[string]string{"scale-target": "publish"}, check: func(*Settings) bool {
			return true
		}, warning: "but each has its own"},
		"instances of a group": {flags: map[string]string{"scale-target": "asg:my-group", "queue-url": someURL},
			check: func(s *Settings) bool {
				return s.ScaleTarget == "asg:my-group"
			}},
		"an idle option": {flags: map[string]string{"scale-cooldown": "9"}, check: func(*Settings) bool {
			return true
		}, warning: "scale-cooldown 9s only affects the advised size (/api/v1/scale) with scale-target none"},
		"an option for an external scaler": {flags: map[string]string{"scale-target": "none", "scale-cooldown": "9",
			"scale-max-size": "9", "scale-measure-name": "BusyShare", "scale-period": "60"}, check: func(s *Settings) bool {
			return s.ScaleTarget == ScaleNone
		}},
		"a trigger that an external scaler ignores": {flags: map[string]string{"scale-target": "none", "scale-period": "60"},
			check: func(*Settings) bool {
				return true
			}, warning: "scale-period 60s has no effect without scale-measure-name"},
		"an idle trigger": {flags: map[string]string{"processes-max": "2", "scale-period": "60"},
			check: func(*Settings) bool {
				return true
			}, warning: "scale-period 60s has no effect without scale-measure-name"},
		"a breach of less than a second": {flags: map[string]string{"processes-max": "2", "scale-measure-name": "BusyShare",
			"scale-breach-duration": "10ms"}, check: func(s *Settings) bool { return s.ScalePeriod == time.Second }},
		"an idle target for backlog": {flags: map[string]string{"processes-max": "2", "scale-measure-name": "busyshare",
			"scale-target-busy": "50"}, check: func(s *Settings) bool {
			return s.ScaleMeasureName == "BusyShare"
		}, warning: "scale-target-busy 50 has no effect with scale-measure-name"},
		"a trigger": {flags: map[string]string{"processes-max": "2", "scale-measure-name": "CPUUtilization"},
			check: func(s *Settings) bool {
				return s.ScaleUnit == "Percent" && s.ScaleLowerThreshold == 25 && s.ScaleUpperThreshold == 75
			}},
		"a trigger of a bundle": {bundle: inBundle("MeasureName", "CPUUtilization", "Statistic", "Maximum", "Unit",
			"Percent", "LowerThreshold", "20", "UpperThreshold", "80.5",
			"LowerBreachScaleIncrement", "-2", "UpperBreachScaleIncrement", "3", "Period", "2", "EvaluationPeriods", "3"),
			flags: map[string]string{"scale-target": "processes"},
			check: func(s *Settings) bool {
				return s.ScaleStatistic == "Maximum" && s.ScaleLowerThreshold == 20 && s.ScaleUpperThreshold == 80.5 &&
					s.ScaleLowerBreachScaleIncrement == -2 &&
					s.ScaleUpperBreachScaleIncrement == 3 && s.ScalePeriod == 2*time.Minute && s.ScaleEvaluationPeriods == 3
			}},
		"a low upper threshold": {bundle: inBundle("MeasureName", "BacklogPerProcess", "UpperThreshold", "6"),
			check: func(s *Settings) bool {
				return s.ScaleLowerThreshold == 2 && s.ScaleUpperThreshold == 6
			}},
		"a high lower threshold": {bundle: inBundle("MeasureName", "BacklogPerProcess", "LowerThreshold", "60"),
			check: func(s *Settings) bool {
				return s.ScaleLowerThreshold == 60 && s.ScaleUpperThreshold == 180
			}},
		"a high share": {bundle: inBundle("MeasureName", "BusyShare", "LowerThreshold", "90"), check: func(s *Settings) bool {
			return s.ScaleUpperThreshold == 95
		}},
		"thresholds upside down": {bundle: inBundle("MeasureName", "BusyShare", "LowerThreshold", "80", "UpperThreshold",
			"20"), want: "scale-lower-threshold 80 is not below scale-upper-threshold 20"},
		"an upper threshold of 0": {bundle: inBundle("MeasureName", "BusyShare", "UpperThreshold", "0"),
			want: "scale-lower-threshold 0 is not below scale-upper-threshold 0"},
		"a short breach": {bundle: inBundle("BreachDuration", "1"), check: func(s *Settings) bool {
			return s.ScalePeriod == time.Minute
		}},
		"a long breach": {bundle: inBundle("BreachDuration", "10"), check: func(s *Settings) bool {
			return s.ScalePeriod == 5*time.Minute && s.ScaleBreachDuration == 10*time.Minute
		}},
		"a unit that does not fit": {bundle: inBundle("MeasureName", "CPUUtilization", "Unit", "Bytes"),
			check: func(s *Settings) bool {
				return s.ScaleUnit == "Percent"
			}, warning: "scale-unit Bytes has no effect: CPUUtilization is measured in Percent"},
		"a measure of AWS's": {bundle: inBundle("MeasureName", "NetworkOut", "Unit", "Bytes", "LowerThreshold", "2000000",
			"UpperThreshold", "6000000"), flags: map[string]string{"scale-target": "processes"},
			check: func(s *Settings) bool {
				return s.ScaleMeasureName == "" && s.ScaleUnit == "" && s.ScaleUpperThreshold == 0
			},
			warning: "tendril does not measure NetworkOut, so its thresholds are not used"},
		"a measure of AWS's that scales nothing": {bundle: inBundle("MeasureName", "NetworkOut"),
			flags: map[string]string{"scale-target": "none"},
			check: func(s *Settings) bool {
				return s.ScaleMeasureName == ""
			}},
		"a measure over one of AWS's": {bundle: inBundle("MeasureName", "NetworkOut", "Unit", "Bytes", "LowerThreshold",
			"2000000", "UpperThreshold", "6000000"),
			flags: map[string]string{"scale-target": "processes", "scale-measure-name": "BacklogPerProcess"},
			check: func(s *Settings) bool {
				return s.ScaleUnit == "Count" && s.ScaleLowerThreshold == 10 && s.ScaleUpperThreshold == 100
			},
			warning: "ignored, because they were set for a measure other than BacklogPerProcess: scale-unit Bytes ("},
		"a measure over none": {bundle: inBundle("UpperThreshold", "6000000"),
			flags: map[string]string{"scale-target": "processes", "scale-measure-name": "BusyShare",
				"scale-lower-threshold": "40"},
			check:   func(s *Settings) bool { return s.ScaleLowerThreshold == 40 && s.ScaleUpperThreshold == 80 },
			warning: "ignored, because they were set for a measure other than BusyShare: scale-upper-threshold 6"},
		"the same measure again": {bundle: inBundle("MeasureName", "BusyShare", "UpperThreshold", "60"),
			flags: map[string]string{"scale-target": "processes", "scale-measure-name": "BusyShare"},
			check: func(s *Settings) bool { return s.ScaleUpperThreshold == 60 && s.ScaleLowerThreshold == 20 }},
		"a group's metric": {flags: map[string]string{"scale-cpu-source": "cloudwatch", "scale-target": "asg:workers",
			"queue-url": someURL, "scale-measure-name": "CPUUtilization"}, check: func(s *Settings) bool {
			return s.ScaleCPUSource == CPUFromCloudWatch
		}},
		"a metric without a group": {flags: map[string]string{"scale-cpu-source": "cloudwatch", "scale-target": "ecs:jobs/worker",
			"queue-url": someURL, "scale-measure-name": "CPUUtilization"},
			want: "scale-cpu-source cloudwatch needs an Auto Scaling group, and scale-target is ecs:jobs/worker"},
		"a metric that is not the trigger's": {flags: map[string]string{"scale-cpu-source": "cloudwatch",
			"scale-target": "asg:workers", "queue-url": someURL, "scale-measure-name": "BusyShare"},
			check:   func(*Settings) bool { return true },
			warning: "scale-cpu-source cloudwatch has no effect without scale-measure-name CPUUtilization"},
		"a period that CloudWatch does not have": {flags: map[string]string{"scale-cpu-source": "cloudwatch",
			"scale-target": "asg:workers", "queue-url": someURL, "scale-measure-name": "CPUUtilization", "scale-period": "90s"},
			want: "CloudWatch does not support periods of 1m30s"},
		"no measure at all": {flags: map[string]string{"scale-measure-name": "Mood"},
			want: "--scale-measure-name: Mood is unknown; allowed: CPUUtilization, BacklogPerProcess"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := loadIsolated(t, Sources{Environ: home(), Bundle: withSettings(c.bundle...), Flags: c.flags})
			switch {
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || len(err.(*Error).Problems) != 1):
				t.Errorf("got %v, want %q alone", err, c.want)
			case c.want != "":
			case err != nil:
				t.Error(err)
			case !c.check(&cfg.Settings):
				t.Errorf("got %+v", cfg.Settings)
			case c.warning == "" && len(cfg.Warnings) > 0,
				c.warning != "" && (len(cfg.Warnings) != 1 || !strings.Contains(cfg.Warnings[0].Text, c.warning)):
				t.Errorf("warnings %v, want %q", cfg.Warnings, c.warning)
			}
			if err == nil {
				checkLoaded(t, cfg)
			}
		})
	}
}

func TestDerivedScalingHasItsReason(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags map[string]string
		want  map[string]string
	}{
		"a measure": {map[string]string{"scale-measure-name": "CPUUtilization"}, map[string]string{
			"scale-unit":            "default: the measure is CPUUtilization",
			"scale-lower-threshold": "default: the measure is CPUUtilization",
			"scale-upper-threshold": "default: the measure is CPUUtilization"}},
		"a high lower threshold": {map[string]string{"scale-measure-name": "OldestMessageAge", "scale-lower-threshold": "30"},
			map[string]string{"scale-upper-threshold": "default: scale-lower-threshold is high for OldestMessageAge"}},
		"a low upper threshold": {map[string]string{"scale-measure-name": "OldestMessageAge", "scale-upper-threshold": "15"},
			map[string]string{"scale-lower-threshold": "default: scale-upper-threshold is low for OldestMessageAge"}},
		"a size": {map[string]string{"scale-min-size": "2", "scale-target": "processes"}, map[string]string{
			"processes-min": "default: the same as scale-min-size", "processes-max": "default: the same as scale-max-size"}},
		"a large minimum": {map[string]string{"processes-min": "3"}, map[string]string{"processes-max": "default: processes-min is larger"}},
		"a small maximum": {map[string]string{"processes-max": "1", "scale-min-size": "2", "scale-target": "processes"},
			map[string]string{"processes-min": "default: processes-max is smaller"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := mustLoad(t, Sources{Environ: home(), Flags: c.flags})
			for option, want := range c.want {
				if got := cfg.Origin(option).String(); got != want {
					t.Errorf("%s is from %q, want %q", option, got, want)
				}
			}
		})
	}
}

func TestDefaultsOfEachMeasureAreDocumented(t *testing.T) {
	t.Parallel()
	var lowers, uppers []string
	for _, measure := range ownMeasures() {
		unit, lower, upper := measureDefaults(measure)
		if !slices.Contains(units(), unit) {
			t.Errorf("%s has the unit %q", measure, unit)
		}
		lowers = append(lowers, formatNumber(lower))
		uppers = append(uppers, formatNumber(upper))
	}
	for name, want := range map[string][]string{"scale-lower-threshold": lowers, "scale-upper-threshold": uppers} {
		if o, _ := Lookup(name); o.DefaultNote != "by the measure: "+strings.Join(want, ", ") {
			t.Errorf("%s: %q, want %v", name, o.DefaultNote, want)
		}
	}
}
