package environment

import (
	"io"
	"testing"
	"time"

	"tendril/internal/autoscale"
	"tendril/internal/bundle"
	"tendril/internal/config"
	"tendril/internal/observe/logging"
)

func discard() *logging.Logger { return logging.New(logging.Options{Out: io.Discard}) }

func TestScalePolicy(t *testing.T) {
	t.Parallel()
	load := func(flags map[string]string) *Environment {
		flags["data-dir"] = "/nowhere"
		cfg, err := config.Load(config.Sources{Flags: flags})
		if err != nil {
			t.Fatal(err)
		}
		return New(Options{Config: cfg, Logger: discard()})
	}
	e := load(map[string]string{"processes-max": "8", "http-connections": "5"})
	p := scalePolicy(e.settings.now(), 1, maxReplicas(e.settings.now()))
	if p.MaxSize != 5 || p.Cooldown != 360*time.Second || p.TargetBusy != 75 ||
		p.DrainWithin != time.Minute || p.Measure != "" {
		t.Errorf("the usual policy is %+v", p)
	}
	if got := loadIntervalOf(loadInterval, p); got != loadInterval {
		t.Errorf("it is read each %s", got)
	}
	e = load(map[string]string{
		"scale-target": "asg:g", "scale-cooldown": "0", "scale-measure-name": "BacklogPerProcess",
		"scale-statistic": "Maximum", "scale-lower-threshold": "2",
		"scale-upper-threshold": "9", "scale-lower-breach-scale-increment": "-3", "scale-upper-breach-scale-increment": "4",
		"scale-period":             "4s",
		"scale-evaluation-periods": "2", "scale-breach-duration": "12s", "processes-min": "3", "http-connections": "2",
	})
	p = scalePolicy(e.settings.now(), 2, 7)
	want := autoscale.Policy{
		MinSize: 2, MaxSize: 7, Measure: autoscale.BacklogPerProcess, Statistic: autoscale.Maximum,
		Unit: "Count", LowerThreshold: 2, UpperThreshold: 9,
		LowerBreachScaleIncrement: -3, UpperBreachScaleIncrement: 4, Period: 4 * time.Second, EvaluationPeriods: 2,
		BreachDuration: 12 * time.Second,
		TargetBusy:     75, DrainWithin: time.Minute,
	}
	if p != want {
		t.Errorf("the trigger is\n%+v, want\n%+v", p, want)
	}
	if got := loadIntervalOf(groupInterval, p); got != 2*time.Second {
		t.Errorf("it is read each %s", got)
	}
	if got := maxReplicas(e.settings.now()); got != 3 {
		t.Errorf("the most replicas are %d: never fewer than the least", got)
	}
	for _, tt := range []struct {
		all  int
		each []int
		want int
	}{{50, []int{50}, 50}, {50, []int{10, 20}, 30}, {5, []int{5, 5}, 5}, {5, nil, 1}} {
		concurrency := 0
		for _, n := range tt.each {
			concurrency += n
		}
		if got := slotsOf(tt.all, concurrency); got != tt.want {
			t.Errorf("slots of %+v: %d", tt, got)
		}
	}
}

func TestScalePolicyWithTheDefaultsOfElasticBeanstalk(t *testing.T) {
	t.Parallel()
	for name, src := range map[string]config.Sources{
		"flags": {Flags: map[string]string{"scale-measure-name": "CPUUtilization"}},
		"a bundle": {Flags: map[string]string{}, Bundle: &bundle.Bundle{Dir: "/app", Settings: []bundle.Setting{
			{Namespace: bundle.NamespaceTrigger, Option: "MeasureName", Value: "CPUUtilization"}}}},
	} {
		src.Flags["data-dir"], src.Flags["scale-target"] = "/nowhere", "asg:g"
		cfg, err := config.Load(src)
		if err != nil {
			t.Fatal(err)
		}
		want := autoscale.Policy{
			MinSize: 1, MaxSize: 4, Cooldown: 360 * time.Second, Measure: autoscale.CPUUtilization, Statistic: autoscale.Average,
			Unit: "Percent", LowerThreshold: 25, UpperThreshold: 75, LowerBreachScaleIncrement: -1, UpperBreachScaleIncrement: 1,
			Period: 5 * time.Minute, EvaluationPeriods: 1, TargetBusy: 75, DrainWithin: time.Minute,
		}
		if p := scalePolicy(&cfg.Settings, cfg.ScaleMinSize, cfg.ScaleMaxSize); p != want {
			t.Errorf("from %s: %+v, want\n%+v", name, p, want)
		}
	}
}
