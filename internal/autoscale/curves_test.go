package autoscale

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// A scale-in is wrong if the backlog or the last minute's minimum load needs the removed processes; a scale-out, if the
// previous size could have handled the backlog and twice the maximum load.
func (w *simulation) judge(p Policy, d Decision) string {
	in := Inputs{Slots: w.c.slots, ServiceTime: w.c.service}
	each, _ := p.backlogPerProcess(in)
	span := scaleOutAfter
	if p.Measure != "" {
		span = p.BreachDuration
	}
	least, _ := w.demand(time.Minute)
	_, most := w.demand(span + time.Minute)
	switch {
	case d.Desired < d.From && (least > float64(d.Desired) || w.known() > each*float64(d.Desired)):
		return fmt.Sprintf("%v: %d to %d at a load of %.1f with %.0f waiting: %s", w.now, d.From, d.Desired, least,
			w.backlog, d.Why)
	case d.Desired > d.From && 2*most < float64(d.From) && w.known() < each*float64(d.From) &&
		w.knownInWork() < 0.5*float64(d.From*w.c.slots):
		return fmt.Sprintf("%v: %d to %d at a load of %.1f with %.0f waiting: %s", w.now, d.From, d.Desired, most,
			w.backlog, d.Why)
	}
	return ""
}

// A scale-in by CPUUtilization or BusyShare is wrong if the average of all instances exceeded the lower threshold by
// more than five points, which allow for lost readings and the cooldown.
func (w *simulation) judgeAverage(p Policy, d Decision) string {
	if !p.Instances || d.Desired > d.From || p.Measure != CPUUtilization && p.Measure != BusyShare {
		return ""
	}
	last := w.averages[len(w.averages)-int(p.BreachDuration/w.c.interval()):]
	sum := 0.0
	for _, average := range last {
		sum += average
	}
	if average := sum / float64(len(last)); average > p.LowerThreshold+5 {
		return fmt.Sprintf("%v: %d to %d at an average of %.4g: %s", w.now, d.From, d.Desired, average, d.Why)
	}
	return ""
}

func services() []float64 {
	return []float64{0.05, 0.2, 0.5, 1, 2, 5, 15, 30, 60, 120}
}

func steady(level float64) func(time.Duration, *rand.Rand) float64 {
	return func(time.Duration, *rand.Rand) float64 { return level }
}

func pulse(low, high float64, from, to time.Duration) func(time.Duration, *rand.Rand) float64 {
	return func(t time.Duration, _ *rand.Rand) float64 {
		if t >= from && t < to {
			return high
		}
		return low
	}
}

func wave(low, high float64, length time.Duration) func(time.Duration, *rand.Rand) float64 {
	return func(t time.Duration, _ *rand.Rand) float64 {
		return low + (high-low)*(1-math.Cos(2*math.Pi*t.Seconds()/length.Seconds()))/2
	}
}

func withNoise(load func(time.Duration, *rand.Rand) float64, spread float64) func(time.Duration, *rand.Rand) float64 {
	return func(t time.Duration, r *rand.Rand) float64 { return load(t, r) * (1 + spread*r.NormFloat64()) }
}

func ramp(high float64, up, stay, down time.Duration) func(time.Duration, *rand.Rand) float64 {
	return func(t time.Duration, _ *rand.Rand) float64 {
		switch {
		case t < up:
			return high * float64(t) / float64(up)
		case t < up+stay:
			return high
		default:
			return high * max(0, 1-float64(t-up-stay)/float64(down))
		}
	}
}

func curves() []curve {
	const day = 24 * time.Hour
	var all []curve
	for i, service := range services() {
		high := 2 + 1.2*float64(i)
		start := time.Duration(5+5*i) * time.Second
		add := func(c curve) {
			c.seed = uint64(100*len(all) + i)
			c.service, c.slots = service, 10
			if c.start == 0 {
				c.start = start
			}
			all = append(all, c)
		}
		add(curve{family: "a step up", length: 3 * time.Hour, load: pulse(0.3, high, 30*time.Minute, day)})
		add(curve{family: "a step up and down", length: 4 * time.Hour,
			load: pulse(0.3, high, 30*time.Minute, 90*time.Minute), turns: 1})
		add(curve{family: "a spike at once", length: 3 * time.Hour, load: steady(0.2), turns: 1,
			burst: func(t time.Duration) float64 {
				if t == 30*time.Minute {
					return 200 * high
				}
				return 0
			}})
		add(curve{family: "a spike each half hour", length: 4 * time.Hour, load: steady(0.2), turns: 15,
			burst: func(t time.Duration) float64 {
				if t%(30*time.Minute) == 10*time.Minute {
					return 150 * high
				}
				return 0
			}})
		add(curve{family: "a day's wave", length: day, load: wave(0.2, high, day), turns: 1})
		add(curve{family: "a ramp", length: 5 * time.Hour, load: ramp(high, 90*time.Minute, 60*time.Minute, 90*time.Minute),
			turns: 1})
		add(curve{family: "a noisy load", length: 6 * time.Hour, load: withNoise(steady(high/2), 0.3), turns: 0})
		add(curve{family: "readings get lost", length: 12 * time.Hour, load: wave(0.2, high, 6*time.Hour), turns: 3,
			missing: func(t time.Duration, r *rand.Rand) (cpu, backlog, busy, all bool) {
				dark := t%(3*time.Hour) < 12*time.Minute
				return r.Float64() < 0.2, r.Float64() < 0.1, r.Float64() < 0.1, dark || r.Float64() < 0.05
			}})
		add(curve{family: "a slow start", length: 5 * time.Hour, load: pulse(0.3, high, 30*time.Minute, 150*time.Minute),
			turns: 1,
			start: time.Duration(2+i/2) * time.Minute})
		add(curve{family: "wrong and noisy readings", length: 6 * time.Hour, load: pulse(0.5, high, time.Hour, 3*time.Hour),
			turns: 1,
			noise: 15, glitches: 0.02})
	}
	return all
}

func swing(low, high float64, half time.Duration) func(time.Duration, *rand.Rand) float64 {
	return func(t time.Duration, _ *rand.Rand) float64 {
		if (t/half)%2 == 1 {
			return high
		}
		return low
	}
}

// The loads peak at 70 percent of these sizes, apart from bursts.
func fleetSizes() []int { return []int{1, 10, 100, 1000} }

// Each backlog count is a minute late. Every second fleet loses a tenth of its readings of backlog and busy slots, and
// all readings for 12 minutes every three hours.
func fleetCurves() []curve {
	const day = 24 * time.Hour
	var all []curve
	for i, service := range []float64{0.1, 1, 5, 20, 60} {
		for j, size := range fleetSizes() {
			high := 0.7 * float64(size)
			low := high / 10
			add := func(c curve) {
				c.seed = uint64(len(all))
				c.service, c.slots, c.start = service, 50, time.Duration(2+i)*time.Minute
				c.fleet = &fleet{most: size, counted: time.Minute, lag: time.Minute}
				if (i+j)%2 == 1 {
					c.missing = func(t time.Duration, r *rand.Rand) (cpu, backlog, busy, all bool) {
						return false, r.Float64() < 0.1, r.Float64() < 0.1, t%(3*time.Hour) < 12*time.Minute
					}
				}
				all = append(all, c)
			}
			add(curve{family: "steady", length: 12 * time.Hour, load: withNoise(steady(high/2), 0.1)})
			add(curve{family: "diurnal", length: 2 * day, load: wave(low, high, day), turns: 3})
			add(curve{family: "spikes", length: 12 * time.Hour, load: steady(low), turns: 7,
				burst: func(t time.Duration) float64 {
					if t%(3*time.Hour) == 30*time.Minute {
						return 900 * high
					}
					return 0
				}})
			add(curve{family: "ramps", length: 12 * time.Hour, load: ramp(high, 3*time.Hour, 3*time.Hour, 3*time.Hour),
				turns: 1})
			add(curve{family: "oscillating", length: 12 * time.Hour, load: swing(low, high, 20*time.Minute), turns: 35})
		}
	}
	return all
}
