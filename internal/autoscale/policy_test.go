package autoscale

import (
	"cmp"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// withDefaults fills in the defaults of package config. A negative cooldown means none.
func withDefaults(p Policy) Policy {
	p.MinSize = cmp.Or(p.MinSize, 1)
	p.MaxSize = cmp.Or(p.MaxSize, 4)
	p.Cooldown = max(cmp.Or(p.Cooldown, 360*time.Second), 0)
	p.TargetBusy = cmp.Or(p.TargetBusy, 75)
	p.DrainWithin = cmp.Or(p.DrainWithin, time.Minute)
	p.Statistic = cmp.Or(p.Statistic, Average)
	usual := map[Measure]Policy{
		CPUUtilization:    {Unit: "Percent", LowerThreshold: 25, UpperThreshold: 75},
		BacklogPerProcess: {Unit: "Count", LowerThreshold: 10, UpperThreshold: 100},
		OldestMessageAge:  {Unit: "Seconds", LowerThreshold: 10, UpperThreshold: 60},
		BusyShare:         {Unit: "Percent", LowerThreshold: 30, UpperThreshold: 80},
	}[p.Measure]
	p.Unit = cmp.Or(p.Unit, usual.Unit)
	if p.LowerThreshold == 0 && p.UpperThreshold == 0 {
		p.LowerThreshold, p.UpperThreshold = usual.LowerThreshold, usual.UpperThreshold
	}
	p.LowerBreachScaleIncrement = cmp.Or(p.LowerBreachScaleIncrement, -1)
	p.UpperBreachScaleIncrement = cmp.Or(p.UpperBreachScaleIncrement, 1)
	p.Period = cmp.Or(p.Period, 5*time.Minute)
	p.EvaluationPeriods = cmp.Or(p.EvaluationPeriods, 1)
	return p.inWholePeriods()
}

// Elastic Beanstalk adjusts one of the options if they disagree.
func TestBreachDuration(t *testing.T) {
	t.Parallel()
	const min = time.Minute
	for _, c := range []struct {
		period  time.Duration
		periods int
		breach  time.Duration
		wantP   time.Duration
		wantN   int
	}{
		{min, 1, 0, min, 1},
		{min, 3, 0, min, 3},
		{min, 1, 2 * min, min, 2},
		{2 * min, 1, 5 * min, 2 * min, 3},
		{2 * min, 1, 2 * min, 2 * min, 1},
		{5 * min, 1, 12 * min, 5 * min, 3},
		{5 * min, 1, 2 * min, 5 * min, 1},
		{min, 1, 5 * min, min, 5},
	} {
		p := Policy{Measure: BusyShare, Period: c.period, EvaluationPeriods: c.periods, BreachDuration: c.breach}.inWholePeriods()
		if p.Period != c.wantP || p.EvaluationPeriods != c.wantN || p.BreachDuration != c.wantP*time.Duration(c.wantN) {
			t.Errorf("%v x %d = %v became %v x %d = %v", c.period, c.periods, c.breach, p.Period, p.EvaluationPeriods,
				p.BreachDuration)
		}
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1} {
		if readingOf(v).Known {
			t.Errorf("%v is known", v)
		}
	}
	if r := readingOf(0); !r.Known || r.Value != 0 {
		t.Error("0 is not known")
	}
}

type policyScript struct {
	t    *testing.T
	p    Policy
	s    policyState
	now  time.Time
	size int
}

func newPolicyScript(t *testing.T, p Policy, size int) *policyScript {
	t.Helper()
	return &policyScript{t: t, p: withDefaults(p), now: time.Unix(1_800_000_000, 0), size: size}
}

func (s *policyScript) step(in Inputs) Decision {
	s.now = s.now.Add(10 * time.Second)
	in.Desired = s.size
	if in.Ready == 0 {
		in.Ready = s.size
	}
	var d Decision
	s.s, d = s.p.Decide(s.s, in, s.now)
	s.size = d.Desired
	return d
}

func (s *policyScript) run(in Inputs, long time.Duration) Decision {
	var d Decision
	for end := s.now.Add(long); s.now.Before(end); {
		if d = s.step(in); d.Changes() {
			break
		}
	}
	return d
}

func (s *policyScript) want(d Decision, rule Rule, size int) {
	s.t.Helper()
	if d.Rule != rule || d.Desired != size {
		s.t.Errorf("the decision is %s to %d (%s), want %s to %d", d.Rule, d.Desired, d.Why, rule, size)
	}
	if d.Why == "" || strings.Contains(d.Why, "%!") {
		s.t.Errorf("the sentence is %q", d.Why)
	}
}

func measured(busy, backlog float64) Inputs {
	return Inputs{Busy: readingOf(busy), Backlog: readingOf(backlog), Slots: 10, ServiceTime: 1, CPU: readingOf(busy), OldestAge: readingOf(0)}
}

// fiveEach lets five messages wait per process.
func fiveEach(in Inputs) Inputs {
	in.Slots, in.ServiceTime = 5, 60
	return in
}

func TestBoundsHoldAndReadyComeFirst(t *testing.T) {
	t.Parallel()
	for _, p := range []Policy{{MinSize: 2, MaxSize: 5}, {MinSize: 2, MaxSize: 5, Measure: CPUUtilization}} {
		s := newPolicyScript(t, p, 1)
		s.want(s.step(Inputs{}), ruleBounds, 2)
		s.size = 9
		s.want(s.step(measured(100, 1e6)), ruleBounds, 5)
		held := measured(0, 0)
		held.Hold = "a deployment is in progress"
		s.want(s.run(held, time.Hour), ruleHeld, 5)
		none := measured(100, 1e6)
		none.Ready = -1
		s.want(s.run(none, time.Hour), ruleNotReady, 5)
		s.want(s.run(Inputs{}, time.Hour), ruleMissing, 5)
	}
}

func TestTracking(t *testing.T) {
	t.Parallel()
	t.Run("one reading is not enough", func(t *testing.T) {
		s := newPolicyScript(t, Policy{MaxSize: 20}, 2)
		s.want(s.step(measured(100, 1e6)), ruleSteady, 2)
		s.want(s.step(measured(50, 0)), ruleSteady, 2)
		s.want(s.step(measured(100, 1e6)), ruleSteady, 2)
	})
	t.Run("by the backlog", func(t *testing.T) {
		s := newPolicyScript(t, Policy{MaxSize: 20}, 5)
		s.step(measured(70, 4800))
		s.want(s.step(measured(70, 4800)), ruleOut, 8)
	})
	t.Run("by long work", func(t *testing.T) {
		s := newPolicyScript(t, Policy{MaxSize: 20}, 2)
		in := measured(50, 45)
		in.ServiceTime = 600
		s.step(in)
		s.want(s.step(in), ruleOut, 5)
	})
	t.Run("by a backlog given", func(t *testing.T) {
		s := newPolicyScript(t, Policy{MaxSize: 20}, 2)
		s.step(fiveEach(measured(50, 20)))
		s.want(s.step(fiveEach(measured(50, 20))), ruleOut, 4)
	})
	t.Run("by busy slots", func(t *testing.T) {
		s := newPolicyScript(t, Policy{MaxSize: 20}, 4)
		s.step(measured(90, 0))
		s.want(s.step(measured(90, 0)), ruleOut, 5)
	})
	t.Run("but not while slots are free", func(t *testing.T) {
		s := newPolicyScript(t, Policy{MaxSize: 20}, 4)
		s.want(s.run(measured(30, 1e6), time.Hour), ruleIdle, 4)
	})
	t.Run("in steps", func(t *testing.T) {
		s := newPolicyScript(t, Policy{MaxSize: 40}, 1)
		s.step(measured(100, 1e6))
		s.want(s.step(measured(100, 1e6)), ruleOut, 5)
		s.want(s.step(measured(100, 1e6)), ruleOut, 10)
		s.want(s.step(measured(100, 1e6)), ruleOut, 20)
		s.want(s.step(measured(100, 1e6)), ruleOut, 40)
		s.want(s.step(measured(100, 1e6)), ruleLimit, 40)
	})
	t.Run("down after a while, by halves, with a cooldown", func(t *testing.T) {
		s := newPolicyScript(t, Policy{MaxSize: 20}, 16)
		began := s.now
		s.want(s.run(measured(5, 0), time.Hour), ruleIn, 8)
		if waited := s.now.Sub(began); waited < 270*time.Second || waited > 310*time.Second {
			t.Errorf("shrank after %v", waited)
		}
		began = s.now
		s.want(s.step(measured(10, 0)), ruleCooldown, 8)
		s.want(s.run(measured(10, 0), time.Hour), ruleIn, 4)
		if waited := s.now.Sub(began); waited < 360*time.Second {
			t.Errorf("shrank %v after a change", waited)
		}
		s.want(s.run(measured(20, 0), time.Hour), ruleIn, 2)
		s.want(s.run(measured(20, 0), time.Hour), ruleIn, 1)
		s.want(s.run(measured(20, 0), time.Hour), ruleSteady, 1)
	})
	t.Run("to what the busiest moment needed", func(t *testing.T) {
		s := newPolicyScript(t, Policy{MaxSize: 20}, 16)
		s.step(measured(50, 0))
		s.want(s.run(measured(5, 0), 290*time.Second), ruleIn, 13)
	})
	t.Run("nothing is taken away on half the facts", func(t *testing.T) {
		for _, in := range []Inputs{{Busy: readingOf(1)}, {Backlog: readingOf(0)}, {Busy: readingOf(1), Backlog: readingOf(3)}} {
			s := newPolicyScript(t, Policy{MaxSize: 20}, 16)
			s.want(s.run(in, time.Hour), ruleMissing, 16)
		}
	})
	t.Run("but is added", func(t *testing.T) {
		s := newPolicyScript(t, Policy{MaxSize: 20}, 2)
		in := measured(100, 0)
		in.Backlog = Reading{}
		s.want(s.run(in, time.Minute), ruleOut, 3)
		s = newPolicyScript(t, Policy{MaxSize: 20}, 2)
		in = measured(0, 3000)
		in.Busy = Reading{}
		s.want(s.run(in, time.Minute), ruleOut, 5)
	})
	t.Run("a gap drops earlier readings", func(t *testing.T) {
		s := newPolicyScript(t, Policy{MaxSize: 20}, 16)
		s.run(measured(5, 0), 250*time.Second)
		s.now = s.now.Add(10 * time.Minute)
		s.want(s.run(measured(5, 0), 250*time.Second), ruleSteady, 16)
	})
}

func TestSizeOfSeveralInstancesDoesNotShrinkByWhatOneMeasures(t *testing.T) {
	t.Parallel()
	idle := Inputs{CPU: readingOf(10), Busy: readingOf(5), OldestAge: readingOf(0), Backlog: readingOf(0), Slots: 10, ServiceTime: 1}
	loaded := Inputs{CPU: readingOf(95), Busy: readingOf(99), OldestAge: readingOf(600), Backlog: readingOf(9000), Slots: 10, ServiceTime: 1}
	for _, c := range []struct {
		measure Measure
		shrinks bool
	}{{"", false}, {CPUUtilization, false}, {BusyShare, false}, {OldestMessageAge, false}, {BacklogPerProcess, true}} {
		t.Run("by "+string(c.measure), func(t *testing.T) {
			t.Parallel()
			p := Policy{MaxSize: 10, Measure: c.measure, Period: time.Minute, Instances: true}
			s := newPolicyScript(t, p, 6)
			d := s.run(idle, 3*time.Hour)
			if shrank := s.size < 6; shrank != c.shrinks {
				t.Errorf("the size is %d after three hours, by %+v", s.size, d)
			}
			if !c.shrinks && (!d.ScaleInHeld() || !strings.Contains(d.Why, "scale-in is held: ") ||
				!strings.Contains(d.Why, "only this one of 6 instances was measured")) {
				t.Errorf("held by %+v", d)
			}
			before := s.size
			if s.run(loaded, time.Hour); s.size <= before {
				t.Errorf("the size is %d under load, and was %d", s.size, before)
			}
			p.Instances = false
			if s = newPolicyScript(t, p, 6); s.run(idle, 3*time.Hour).ScaleInHeld() || s.size == 6 {
				t.Errorf("one process for all: the size is %d", s.size)
			}
		})
	}
	t.Run("bounds still hold", func(t *testing.T) {
		t.Parallel()
		s := newPolicyScript(t, Policy{MaxSize: 4, Instances: true}, 6)
		s.run(idle, time.Minute)
		if s.size != 4 {
			t.Errorf("the size is %d, and MaxSize 4", s.size)
		}
	})
}

func TestTrigger(t *testing.T) {
	t.Parallel()
	cpu := Policy{MaxSize: 10, Measure: CPUUtilization, Period: time.Minute, EvaluationPeriods: 3,
		Cooldown:       2 * time.Minute,
		LowerThreshold: 20, UpperThreshold: 80, UpperBreachScaleIncrement: 2}
	t.Run("up after all periods", func(t *testing.T) {
		s := newPolicyScript(t, cpu, 3)
		began := s.now
		s.want(s.run(measured(90, 0), time.Hour), ruleOut, 5)
		if waited := s.now.Sub(began); waited < 3*time.Minute || waited > 190*time.Second {
			t.Errorf("grew after %v", waited)
		}
	})
	t.Run("a threshold is to be exceeded", func(t *testing.T) {
		s := newPolicyScript(t, cpu, 3)
		s.want(s.run(measured(80, 0), time.Hour), ruleSteady, 3)
		s.want(s.run(measured(20, 0), time.Hour), ruleSteady, 3)
	})
	t.Run("a good period resets the count", func(t *testing.T) {
		s := newPolicyScript(t, cpu, 3)
		for range 10 {
			s.run(measured(90, 0), 2*time.Minute)
			s.want(s.run(measured(50, 0), time.Minute), ruleSteady, 3)
		}
	})
	t.Run("down, and not below the minimum", func(t *testing.T) {
		s := newPolicyScript(t, cpu, 2)
		s.want(s.run(measured(5, 0), time.Hour), ruleIn, 1)
		s.want(s.run(measured(5, 0), time.Hour), ruleLimit, 1)
	})
	t.Run("the cooldown, by whomever the change was", func(t *testing.T) {
		p := cpu
		p.Cooldown = 10 * time.Minute
		s := newPolicyScript(t, p, 3)
		s.step(measured(50, 0))
		s.size = 4
		s.want(s.run(measured(90, 0), 9*time.Minute), ruleCooldown, 4)
		s.want(s.run(measured(90, 0), 2*time.Minute), ruleOut, 6)
	})
	t.Run("a large increment goes as far as the work lets it", func(t *testing.T) {
		p := cpu
		p.LowerBreachScaleIncrement = -6
		s := newPolicyScript(t, p, 8)
		in := measured(5, 0)
		in.Busy = readingOf(30) // two processes would be overloaded
		s.want(s.run(in, time.Hour), ruleIn, 4)
		s = newPolicyScript(t, p, 8)
		s.want(s.run(measured(5, 0), time.Hour), ruleIn, 2)
		s.want(s.run(measured(5, 0), time.Hour), ruleIn, 1)
	})
	t.Run("lost readings", func(t *testing.T) {
		s := newPolicyScript(t, cpu, 3)
		missing := measured(5, 0)
		missing.CPU = Reading{}
		for range 60 {
			s.step(measured(5, 0))
			s.step(missing)
			s.want(s.step(missing), ruleMissing, 3)
		}
		s.want(s.run(missing, time.Hour), ruleMissing, 3)
	})
	t.Run("a size at which it would grow again", func(t *testing.T) {
		p := cpu
		p.LowerThreshold, p.UpperThreshold = 45, 80
		s := newPolicyScript(t, p, 2)
		in := measured(43, 0)
		in.Busy = Reading{}
		s.want(s.run(in, time.Hour), ruleNeeded, 2)
	})
	t.Run("work in progress", func(t *testing.T) {
		s := newPolicyScript(t, cpu, 4)
		in := measured(5, 0)
		in.Busy = readingOf(60)
		s.want(s.run(in, time.Hour), ruleNeeded, 4)
		in.Busy, in.Backlog = readingOf(0), readingOf(5000)
		s.want(s.run(in, time.Hour), ruleNeeded, 4)
		in.Backlog = readingOf(0)
		s.want(s.run(in, time.Hour), ruleIn, 3)
	})
	t.Run("a spike that is over", func(t *testing.T) {
		p := Policy{MaxSize: 10, Measure: OldestMessageAge, Period: time.Minute}
		s := newPolicyScript(t, p, 2)
		in := measured(50, 100)
		in.OldestAge = readingOf(600)
		s.run(in, 50*time.Second)
		s.want(s.run(measured(50, 0), 20*time.Second), ruleSteady, 2)
	})
	t.Run("free slots", func(t *testing.T) {
		s := newPolicyScript(t, Policy{MaxSize: 10, Measure: BacklogPerProcess, Period: time.Minute}, 2)
		s.want(s.run(measured(30, 1e6), time.Hour), ruleIdle, 2)
		s.want(s.run(measured(60, 1e6), time.Hour), ruleOut, 3)
	})
	t.Run("no backlog, and the busy slots unknown", func(t *testing.T) {
		s := newPolicyScript(t, Policy{MaxSize: 10, Measure: BacklogPerProcess, Period: time.Minute}, 2)
		in := measured(0, 0)
		in.Busy = Reading{}
		s.want(s.run(in, time.Hour), ruleNeeded, 2)
		s.want(s.run(measured(10, 0), time.Hour), ruleIn, 1)
	})
}

func TestPeriodsOfAMetric(t *testing.T) {
	t.Parallel()
	began := time.Unix(1_800_000_000, 0)
	for name, c := range map[string]struct {
		periods int
		changed int
		values  []Reading
		want    int
		rule    Rule
	}{
		"low":                             {1, -1, []Reading{readingOf(5)}, 2, ruleIn},
		"high":                            {1, -1, []Reading{readingOf(95)}, 4, ruleOut},
		"between":                         {1, -1, []Reading{readingOf(50), readingOf(50), readingOf(50)}, 3, ruleSteady},
		"missing":                         {1, -1, []Reading{{}, {}, {}}, 3, ruleMissing},
		"low once, three are needed":      {3, -1, []Reading{readingOf(5), readingOf(50)}, 3, ruleSteady},
		"low three times":                 {3, -1, []Reading{readingOf(5), readingOf(5), readingOf(5)}, 2, ruleIn},
		"low three times, with a gap":     {3, -1, []Reading{readingOf(5), readingOf(5), {}, readingOf(5)}, 3, ruleSteady},
		"low, then missing":               {3, -1, []Reading{readingOf(5), readingOf(5), {}, {}}, 3, ruleMissing},
		"low before the change":           {1, 0, []Reading{readingOf(5)}, 3, ruleMissing},
		"low before and after the change": {1, 0, []Reading{readingOf(5), readingOf(5)}, 2, ruleIn},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Policy{MaxSize: 10, Cooldown: -1, Measure: CPUUtilization, LowerThreshold: 20, UpperThreshold: 80,
				Period: time.Minute, EvaluationPeriods: c.periods, Instances: true, FromMetric: true, Statistic: Sum}
			p = withDefaults(p)
			var s policyState
			if c.changed >= 0 {
				s = policyState{begun: true, desired: 3, changed: began.Add(time.Duration(c.changed)*time.Minute + time.Second)}
			}
			var d Decision
		read:
			for minute, value := range c.values {
				in := Inputs{Desired: 3, Ready: 3, Busy: readingOf(0), Backlog: readingOf(0), Measured: &value}
				if value.Known {
					in.MeasuredFrom = began.Add(time.Duration(minute) * time.Minute)
				}
				for i := range 6 {
					s, d = p.Decide(s, in, began.Add(time.Duration(minute+3)*time.Minute+time.Duration(i)*10*time.Second))
					if d.Changes() {
						break read
					}
				}
			}
			if d.Desired != c.want || d.Rule != c.rule {
				t.Errorf("from %d to %d by %q: %s; want %d by %q", d.From, d.Desired, d.Rule, d.Why, c.want, c.rule)
			}
		})
	}
}

func TestStatistics(t *testing.T) {
	t.Parallel()
	var rs readings
	for _, v := range []float64{10, 40, 70} {
		rs = rs.add(readingOf(v))
	}
	for stat, want := range map[Statistic]float64{Average: 40, Minimum: 10, Maximum: 70, Sum: 120} {
		if got := rs.combined(stat); !got.Known || got.Value != want {
			t.Errorf("%s is %v", stat, got)
		}
	}
	for range 4 {
		rs = rs.add(Reading{})
	}
	if rs.combined(Average).Known {
		t.Error("more was lost than known, and there is a value")
	}
}

func TestPolicyPropertiesUnderRandomInputs(t *testing.T) {
	t.Parallel()
	reading := rapid.Custom(func(t *rapid.T) Reading {
		return rapid.SampledFrom([]Reading{{}, readingOf(0), readingOf(5), readingOf(50), readingOf(95), readingOf(100), readingOf(1e3), readingOf(1e12)}).Draw(t, "reading")
	})
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{
			MinSize: rapid.IntRange(1, 3).Draw(t, "min"), MaxSize: rapid.IntRange(3, 12).Draw(t, "max"),
			Measure: rapid.SampledFrom([]Measure{"", CPUUtilization, BacklogPerProcess, OldestMessageAge, BusyShare}).Draw(t,
				"measure"),
			Period: time.Minute, Cooldown: time.Minute,
		}
		p = withDefaults(p)
		var s policyState
		size, now := rapid.IntRange(0, 15).Draw(t, "size"), time.Unix(1_800_000_000, 0)
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{10, 10, 10, 60, 1000}).Draw(t, "gap")) * time.Second)
			in := Inputs{Desired: size, Ready: rapid.IntRange(0, size).Draw(t, "ready"), CPU: reading.Draw(t, "cpu"),
				Backlog: reading.Draw(t, "backlog"), OldestAge: reading.Draw(t, "age"), Busy: reading.Draw(t, "busy"),
				Slots: rapid.IntRange(0, 10).Draw(t, "slots"), ServiceTime: rapid.SampledFrom([]float64{0, 1, 600}).Draw(t,
					"service")}
			before := s
			next, d := p.Decide(s, in, now)
			again, d2 := p.Decide(before, in, now)
			if d != d2 || again.value != next.value || len(again.recommendations) != len(next.recommendations) {
				t.Fatalf("asked twice, it said %+v and %+v", d, d2)
			}
			switch {
			case d.Desired < p.MinSize || d.Desired > p.MaxSize:
				t.Fatalf("%+v is out of bounds", d)
			case d.Changes() && d.Rule != ruleBounds && in.Ready == 0:
				t.Fatalf("%+v with none ready", d)
			case d.Desired < d.From && d.Rule == ruleIn && p.Measure != "" && !in.read(p.Measure).Known:
				t.Fatalf("%+v without a measure", d)
			case d.Desired < d.From && d.Rule == ruleIn && p.Measure == "" && !(in.Busy.Known && in.Backlog.Known):
				t.Fatalf("%+v without a measure", d)
			case d.Changes() != (d.Rule == ruleOut || d.Rule == ruleIn || d.Rule == ruleBounds):
				t.Fatalf("%+v changes and says otherwise", d)
			case d.Why == "":
				t.Fatalf("%+v says nothing", d)
			}
			s, size = next, d.Desired
		}
	})
}
