package autoscale

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"
)

func TestGauge(t *testing.T) {
	t.Parallel()
	one := QueueState{Known: true, Backlog: 3, Oldest: 4 * time.Second, HasAge: true, InWork: 2,
		ServiceTime: 2 * time.Second, PerSecond: 3}
	two := QueueState{Known: true, Backlog: 5, Oldest: 9 * time.Second, HasAge: true, InWork: 3,
		ServiceTime: 6 * time.Second, PerSecond: 1}
	but := func(q QueueState, change func(*QueueState)) QueueState {
		change(&q)
		return q
	}
	counts := func(n int) func() int { return func() int { return n } }
	for _, c := range []struct {
		name   string
		queues []QueueState
		ready  func() int
		deploy bool
		want   Inputs
	}{
		{"no queue", nil, nil, false, Inputs{Busy: readingOf(0)}},
		{"two queues", []QueueState{one, two}, nil, false,
			Inputs{Backlog: readingOf(8), OldestAge: readingOf(9), Busy: readingOf(50), ServiceTime: 3}},
		{"one is not known", []QueueState{one, but(two, func(q *QueueState) { q.Known = false })}, nil, false,
			Inputs{Backlog: Reading{Value: 8}, OldestAge: Reading{Value: 9}, Busy: readingOf(50), ServiceTime: 3}},
		{"one age is not known", []QueueState{one, but(two, func(q *QueueState) { q.HasAge = false })}, nil, false,
			Inputs{Backlog: readingOf(8), OldestAge: Reading{Value: 9}, Busy: readingOf(50), ServiceTime: 3}},
		{"nothing ends yet", []QueueState{but(one, func(q *QueueState) { q.PerSecond = 0 })}, nil, false,
			Inputs{Backlog: readingOf(3), OldestAge: readingOf(4), Busy: readingOf(20), ServiceTime: 2}},
		{"no duration is known", []QueueState{but(one, func(q *QueueState) { q.ServiceTime = 0 })}, nil, false,
			Inputs{Backlog: readingOf(3), OldestAge: readingOf(4), Busy: readingOf(20)}},
		{"one duration is not known", []QueueState{one, but(two, func(q *QueueState) { q.ServiceTime = 0 })}, nil, false,
			Inputs{Backlog: readingOf(8), OldestAge: readingOf(9), Busy: readingOf(50), ServiceTime: 2}},
		{"two replicas", []QueueState{one, two}, counts(2), false,
			Inputs{Backlog: readingOf(8), OldestAge: readingOf(9), Busy: readingOf(25), ServiceTime: 3}},
		{"no replica", []QueueState{one, two}, counts(0), false,
			Inputs{Backlog: readingOf(8), OldestAge: readingOf(9), ServiceTime: 3}},
		{"more than its slots", []QueueState{but(one, func(q *QueueState) { q.InWork = 50 })}, nil, false,
			Inputs{Backlog: readingOf(3), OldestAge: readingOf(4), Busy: readingOf(100), ServiceTime: 2}},
		{"one is paused", []QueueState{one, but(two, func(q *QueueState) { q.Paused = true })}, nil, false,
			Inputs{Backlog: readingOf(8), OldestAge: readingOf(9), Busy: readingOf(50), ServiceTime: 3}},
		{"all are paused", []QueueState{but(one, func(q *QueueState) { q.Paused = true })}, nil, false,
			Inputs{Backlog: readingOf(3), OldestAge: readingOf(4), Busy: readingOf(20), ServiceTime: 2, Hold: "receiving is paused"}},
		{"a deployment", []QueueState{one}, nil, true,
			Inputs{Backlog: readingOf(3), OldestAge: readingOf(4), Busy: readingOf(20), ServiceTime: 2, Hold: "a deployment is in progress"}},
	} {
		g := Gauge{Queues: func() []QueueState { return c.queues }, Slots: func() int { return 10 }, Ready: c.ready,
			CPU: func() Reading { return readingOf(7) }, Deploying: func() bool { return c.deploy }}
		c.want.Slots, c.want.CPU = 10, readingOf(7)
		if got := g.Read(); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestReadings(t *testing.T) {
	t.Parallel()
	if r := readingOf(math.MaxFloat64); !r.Known {
		t.Error("the largest number is not known")
	}
	for size, want := range map[int]float64{0: 20, 1: 20, 4: 5} {
		if got := (Inputs{Desired: size, Backlog: readingOf(20)}).read(BacklogPerProcess); got != readingOf(want) {
			t.Errorf("20 messages for %d are %v each, want %v", size, got, want)
		}
	}
}

func recommended(ago time.Duration, size float64) recommendation {
	return recommendation{at: time.Unix(1_800_000_000, 0).Add(-ago), exact: size, size: int(size), whole: true}
}

func TestRecommendationsThatStillCount(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, c := range []struct {
		name string
		ages []time.Duration
		want int
	}{
		{"none before", nil, 1},
		{"the longest gap", []time.Duration{300 * s, 150 * s}, 3},
		{"a longer gap", []time.Duration{300 * s, 150*s + 1}, 1},
		{"one as old as the scale-in delay is kept", []time.Duration{320 * s, 300 * s, 140 * s}, 3},
		{"or the last that is older", []time.Duration{320 * s, 300*s - 1, 140 * s}, 4},
	} {
		var before []recommendation
		for _, age := range c.ages {
			before = append(before, recommended(age, 1))
		}
		if got := appendRecent(before, recommended(0, 1)); len(got) != c.want {
			t.Errorf("%s: %d count, want %d", c.name, len(got), c.want)
		}
	}
}

func TestSmallestRecentAndLargest(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, c := range []struct {
		name        string
		all         []recommendation
		least, most time.Duration
		covered     bool
	}{
		{"the first of two", []recommendation{recommended(10*s, 1), recommended(0, 2)}, 10 * s, 0, false},
		{"the newest of equal ones", []recommendation{recommended(10*s, 2), recommended(0, 2)}, 0, 0, false},
		{"two, whatever their age", []recommendation{recommended(60*s, 1), recommended(0, 2)}, 60 * s, 0, false},
		{"as old as the scale-out delay", []recommendation{recommended(20*s, 1), recommended(10*s, 3), recommended(0, 2)},
			20 * s, 10 * s, false},
		{"older than that", []recommendation{recommended(20*s+1, 1), recommended(10*s, 3), recommended(0, 4)}, 10 * s, 0,
			false},
		{"two of three that are older", []recommendation{recommended(120*s, 1), recommended(60*s, 3), recommended(0, 4)},
			60 * s, 0, false},
		{"long enough for less", []recommendation{recommended(270*s, 5), recommended(120*s, 3), recommended(0, 4)}, 120 * s,
			270 * s, true},
		{"not quite long enough", []recommendation{recommended(270*s-1, 5), recommended(120*s, 3), recommended(0, 4)},
			120 * s, 270*s - 1, false},
		{"the longest gap", []recommendation{recommended(270*s, 5), recommended(150*s, 3), recommended(0, 4)}, 150 * s,
			270 * s, true},
		{"a longer gap", []recommendation{recommended(270*s, 5), recommended(150*s+1, 3), recommended(0, 4)}, 150*s + 1,
			270 * s, false},
	} {
		now := recommended(0, 0).at
		least, ok := smallestRecent(c.all)
		most, covered := largest(c.all), coversScaleIn(c.all, now)
		if !ok || now.Sub(least.at) != c.least || now.Sub(most.at) != c.most || covered != c.covered {
			t.Errorf("%s: the least is %v old, the most %v, covered %v; want %v, %v, %v", c.name, now.Sub(least.at),
				now.Sub(most.at), covered, c.least, c.most, c.covered)
		}
	}
	if _, ok := smallestRecent([]recommendation{recommended(0, 1)}); ok {
		t.Error("one reading is enough to scale out")
	}
}

func TestReasonsOfTracking(t *testing.T) {
	t.Parallel()
	p := Policy{MaxSize: 20}
	for _, c := range []struct {
		name string
		in   Inputs
		size int
		want string
	}{
		{"busy slots", Inputs{Busy: readingOf(75), Backlog: readingOf(1)}, 2, "2 ready, 75 % of their slots busy (target 75 %): 2 needed"},
		{"backlog", Inputs{Busy: readingOf(60), Backlog: readingOf(10)}, 2, "10 messages are waiting, 5 per process are acceptable: 2 needed"},
		{"both alike", Inputs{Busy: readingOf(75), Backlog: readingOf(10)}, 2, "2 ready, 75 % of their slots busy (target 75 %): 2 needed"},
		{"free slots", Inputs{Busy: readingOf(30), Backlog: readingOf(100)}, 2,
			"100 messages are waiting, 5 per process are acceptable, but 70 % of the slots are free: more would not help"},
		{"backlog alone", Inputs{Backlog: readingOf(5)}, 2,
			"5 messages are waiting, 5 per process are acceptable: 1 needed; the number of busy slots is unknown"},
		{"no backlog alone", Inputs{Backlog: readingOf(0)}, 2, "the number of busy slots is unknown: 1 needed"},
	} {
		s := newPolicyScript(t, p, c.size)
		if d := s.step(fiveEach(c.in)); d.Why != c.want {
			t.Errorf("%s: %q, want %q", c.name, d.Why, c.want)
		}
	}
	s := newPolicyScript(t, p, 2)
	if d := s.run(fiveEach(measured(39.4, 0)), time.Minute); !strings.HasSuffix(d.Why, "1 needed, for less than 5m so far") {
		t.Errorf("at a load that one could just take, after a minute: %s to %d (%s)", d.Rule, d.Desired, d.Why)
	}
	if d := s.run(fiveEach(measured(39.4, 0)), time.Hour); d.Rule != ruleSteady || d.Desired != 2 ||
		!strings.HasSuffix(d.Why, ": 1 needed, the most in the last 5m; 2 with a reserve of 15 %") {
		t.Errorf("at a load that one could just take, after an hour: %s to %d (%s)", d.Rule, d.Desired, d.Why)
	}
	for _, in := range []Inputs{{Slots: 0, ServiceTime: 1}, {Slots: 10, ServiceTime: 0}} {
		if each, known := withDefaults(Policy{}).backlogPerProcess(in); known {
			t.Errorf("with %d slots and a duration of %v, %v messages each are acceptable", in.Slots, in.ServiceTime, each)
		}
	}
}

func TestTriggerAtItsBounds(t *testing.T) {
	t.Parallel()
	cpu := Policy{MaxSize: 10, Measure: CPUUtilization, Period: time.Minute, EvaluationPeriods: 3, Cooldown: -1,
		LowerThreshold: 20, UpperThreshold: 80}
	t.Run("what it says on the way", func(t *testing.T) {
		s := newPolicyScript(t, cpu, 3)
		for _, c := range []struct {
			cpu  float64
			long time.Duration
			want string
		}{
			{90, time.Minute, "CPUUtilization is 90 Percent now, but not yet measured for a complete period of 1m"},
			{90, 10 * time.Second, "Average of CPUUtilization was 90 Percent, above 80 for less than 3m so far"},
			{50, time.Minute, "Average of CPUUtilization was 50 Percent in the last complete period of 1m, between 20 and 80"},
			{95, 50 * time.Second, "Average of CPUUtilization was 50 Percent in the last complete period of 1m, between 20 and 80"},
			{95, 10 * time.Second, "Average of CPUUtilization was 95 Percent, above 80 for less than 3m so far"},
			{10, time.Minute, "Average of CPUUtilization was 10 Percent, below 20 for less than 3m so far"},
		} {
			if d := s.run(measured(c.cpu, 0), c.long); d.Why != c.want {
				t.Errorf("at %v: %q, want %q", c.cpu, d.Why, c.want)
			}
		}
	})
	t.Run("what it says after a change of the size", func(t *testing.T) {
		s := newPolicyScript(t, cpu, 3)
		s.run(measured(50, 0), 70*time.Second)
		s.size = 4
		if d := s.step(measured(90, 0)); d.Why != "CPUUtilization is 90 Percent now, but not yet measured for a complete period of 1m" {
			t.Error(d.Why)
		}
	})
	t.Run("down after all periods", func(t *testing.T) {
		s := newPolicyScript(t, cpu, 3)
		began := s.now
		s.want(s.run(measured(5, 0), time.Hour), ruleIn, 2)
		if waited := s.now.Sub(began); waited > 190*time.Second {
			t.Errorf("shrank after %v", waited)
		}
	})
	t.Run("now in the middle", func(t *testing.T) {
		s := newPolicyScript(t, cpu, 3)
		for range 18 {
			s.step(measured(90, 0))
		}
		d := s.step(measured(50, 0))
		s.want(d, ruleSteady, 3)
		if !strings.HasSuffix(d.Why, ", but now it is 50") {
			t.Error(d.Why)
		}
	})
	t.Run("free slots", func(t *testing.T) {
		s := newPolicyScript(t, Policy{MaxSize: 10, Measure: BacklogPerProcess, Period: time.Minute}, 2)
		if d := s.run(measured(30, 1e6), time.Hour); !strings.HasSuffix(d.Why, ", but 70 % of the slots are free: more "+
			"would not help") {
			t.Error(d.Why)
		}
	})
	t.Run("a smaller size just at the threshold", func(t *testing.T) {
		p := cpu
		p.LowerThreshold = 61
		in := measured(60, 0)
		in.Busy = Reading{}
		s := newPolicyScript(t, p, 4)
		s.want(s.run(in, time.Hour), ruleNeeded, 4)
	})
	t.Run("a smaller size just at the target", func(t *testing.T) {
		in := measured(5, 1800)
		in.Busy = readingOf(56.25)
		s := newPolicyScript(t, cpu, 4)
		s.want(s.run(in, time.Hour), ruleIn, 3)
	})
	t.Run("by the age, and the busy slots unknown", func(t *testing.T) {
		s := newPolicyScript(t, Policy{MaxSize: 10, Measure: OldestMessageAge, Period: time.Minute}, 2)
		in := measured(0, 0)
		in.Busy = Reading{}
		s.want(s.run(in, time.Hour), ruleNeeded, 2)
	})
	t.Run("half of the readings lost", func(t *testing.T) {
		rs := readings{}.add(readingOf(5)).add(Reading{})
		if r := rs.combined(Average); !r.Known || r.Value != 5 {
			t.Errorf("the average is %v", r)
		}
	})
}

func TestProtectionBeginsAfterItsTime(t *testing.T) {
	t.Parallel()
	for longest, want := range map[time.Duration]bool{10*time.Second - 1: false, 10 * time.Second: true} {
		if on := (protectionState{}).next(Work{1, longest}, 0, time.Unix(1, 0)).on; on != want {
			t.Errorf("work of %v is protected: %v", longest, on)
		}
	}
}

func TestLoopAtTheBoundsOfItsTarget(t *testing.T) {
	t.Parallel()
	load := func() Inputs { return measured(100, 1e6) }
	g := &bounded{target: target{size: 3}, least: 1, most: 1}
	l := newLoop(load, g, Options{})
	l.decideOnce(t.Context())
	g.fail(errors.New("away"), nil)
	if l.decideOnce(t.Context()); l.Status().Failed == nil {
		t.Error("a failed call is not shown")
	}
	g.fail(nil, nil)
	l.decideOnce(t.Context())
	if s := l.Status(); s.Failed != nil || s.Desired != 1 {
		t.Errorf("after a call that succeeded: failed %v, size %d", s.Failed, s.Desired)
	}
}

func TestLogOfScaling(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	e := LogEvents(slog.New(slog.NewTextHandler(&out, nil)), "replicas")
	e.Failed(Failed{Doing: "reading the size", Err: errors.New("away"), Consecutive: 1})
	e.Failed(Failed{Doing: "reading the size", Err: errors.New("away"), Consecutive: 2})
	e.Terminated(errors.New("late"))
	e.Terminated(nil)
	var got []string
	for line := range strings.Lines(out.String()) {
		_, line, _ = strings.Cut(line, "level=")
		got = append(got, strings.TrimSpace(line))
	}
	want := `WARN msg="scaling call failed" scaled=replicas call="reading the size" failures=1 err=away
WARN msg="instance not drained, or its lifecycle action not completed" scaled=replicas err=late
INFO msg="instance drained, its group may terminate it" scaled=replicas`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}
