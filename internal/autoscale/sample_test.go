package autoscale

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func at(cpu float64) Sample { return Sample{CPU: readingOf(cpu), Slots: 10, InWork: 5} }

func TestMeasuresOfInstancesAreCombined(t *testing.T) {
	t.Parallel()
	cpu := func(s Statistic) Policy { return Policy{Measure: CPUUtilization, Statistic: s} }
	age := func(seconds float64) Sample { return Sample{OldestAge: readingOf(seconds)} }
	for name, c := range map[string]struct {
		policy  Policy
		samples []Sample
		measure Measure
		want    Reading
	}{
		"average":                    {cpu(Average), []Sample{at(10), at(100)}, CPUUtilization, readingOf(55)},
		"the default is the average": {cpu(""), []Sample{at(45), at(100)}, CPUUtilization, readingOf(72.5)},
		"maximum":                    {cpu(Maximum), []Sample{at(10), at(100)}, CPUUtilization, readingOf(100)},
		"minimum":                    {cpu(Minimum), []Sample{at(10), at(100)}, CPUUtilization, readingOf(10)},
		"sum":                        {cpu(Sum), []Sample{at(10), at(100)}, CPUUtilization, readingOf(110)},
		"one of three is missing":    {cpu(Average), []Sample{at(10), at(20), {}}, CPUUtilization, readingOf(15)},
		"most are missing":           {cpu(Average), []Sample{at(10), {}, {}}, CPUUtilization, Reading{}},
		"busy slots":                 {Policy{Measure: BusyShare}, []Sample{{Slots: 10, InWork: 10}, {Slots: 10}}, BusyShare, readingOf(50)},
		"the oldest message": {Policy{Measure: OldestMessageAge, Statistic: Maximum}, []Sample{age(3), age(90)},
			OldestMessageAge, readingOf(90)},
		"the backlog is the queue's": {Policy{Measure: BacklogPerProcess}, []Sample{at(1), at(2)}, BacklogPerProcess, readingOf(20)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := Inputs{Desired: 2, Ready: 2, Backlog: readingOf(40), CPU: readingOf(1), Busy: readingOf(1)}
			in := Combine(own, c.samples, c.policy)
			if got := in.read(c.measure); got != c.want || in.Reporting != len(c.samples) {
				t.Errorf("%s of %d instances is %+v, want %+v", c.measure, in.Reporting, got, c.want)
			}
		})
	}
}

func TestDeploymentOrPauseOnAnInstanceHoldsTheSize(t *testing.T) {
	t.Parallel()
	deploying, paused := at(50), at(50)
	deploying.Deploying, paused.Paused = true, true
	for name, c := range map[string]struct {
		samples      []Sample
		hold, holdIn string
	}{
		"neither":          {[]Sample{at(50), at(50)}, "", ""},
		"one deploys":      {[]Sample{at(50), deploying}, "a deployment is in progress on 1 of 2", ""},
		"one is paused":    {[]Sample{at(50), paused}, "", "paused on 1 of 2"},
		"all are paused":   {[]Sample{paused, paused}, "paused on all", ""},
		"one of each kind": {[]Sample{deploying, paused}, "a deployment is in progress", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := Combine(Inputs{Hold: "of this instance alone"}, c.samples, Policy{})
			for got, want := range map[string]string{in.Hold: c.hold, in.HoldScaleIn: c.holdIn} {
				if (want == "") != (got == "") || !strings.Contains(got, want) {
					t.Errorf("held %q, scale-in %q, want %q and %q", in.Hold, in.HoldScaleIn, c.hold, c.holdIn)
				}
			}
		})
	}
}

func TestAverageOverAllInstancesDecides(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size    int
		samples []Sample
		upper   float64
		want    int
		why     string
	}{
		"leader at 10, other at 100: no scale-in":    {2, []Sample{at(10), at(100)}, 75, 2, "CPUUtilization was 55 Percent in the last complete period of 1m, between 25 and 75"},
		"leader at 45, other at 100: scale-out":      {2, []Sample{at(45), at(100)}, 60, 3, "was 72.5 Percent, above 60"},
		"both at 10: scale-in":                       {2, []Sample{{CPU: readingOf(10), Slots: 10}, {CPU: readingOf(10), Slots: 10}}, 75, 1, "below 25"},
		"only the leader at 10 reports: no scale-in": {4, []Sample{{CPU: readingOf(10), Slots: 10}}, 75, 4, "only 1 of 4 instances report"},
		"two of four at 10 report: scale-in":         {4, []Sample{{CPU: readingOf(10), Slots: 10}, {CPU: readingOf(10), Slots: 10}}, 75, 3, "below 25"},
		"no record is read: only this one counts":    {4, nil, 75, 4, "only this one of 4 instances"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Policy{MinSize: 1, MaxSize: 10, Cooldown: -1, Measure: CPUUtilization, UpperThreshold: c.upper,
				LowerThreshold: 25, Period: time.Minute, BreachDuration: time.Minute, Instances: true}
			p = withDefaults(p)
			var s policyState
			var d Decision
			now := time.Unix(0, 0)
			for range 9 {
				in := Combine(Inputs{CPU: readingOf(10), Busy: readingOf(0), Backlog: readingOf(0), Slots: 10}, c.samples, p)
				in.Desired, in.Ready = c.size, c.size
				s, d = p.Decide(s, in, now)
				if d.Changes() {
					break
				}
				now = now.Add(10 * time.Second)
			}
			if d.Desired != c.want || !strings.Contains(d.Why, c.why) {
				t.Errorf("from %d to %d: %s; want %d: %s", d.From, d.Desired, d.Why, c.want, c.why)
			}
		})
	}
}

func TestSampleIsReadAsWritten(t *testing.T) {
	t.Parallel()
	for _, want := range []Sample{{}, at(12.5), {OldestAge: readingOf(3), Deploying: true, Paused: true, ServiceTime: 0.5}} {
		text, err := json.Marshal(want)
		var got Sample
		if err == nil {
			err = json.Unmarshal(text, &got)
		}
		if err != nil || got != want {
			t.Errorf("%+v is read as %+v from %s: %v", want, got, text, err)
		}
	}
	var wild Sample
	if err := json.Unmarshal([]byte(`{"cpu":-5,"later":1}`), &wild); err != nil || wild.CPU.Known {
		t.Errorf("read %+v, %v", wild, err)
	}
}
