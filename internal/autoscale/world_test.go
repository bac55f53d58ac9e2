package autoscale

import (
	"math"
	"math/rand/v2"
	"time"
)

// step is the resolution of the simulated time.
const step = 5 * time.Second

// interval is the time between two decisions about processes in the simulation.
const interval = 10 * time.Second

// curve is a load and the app that meets it.
type curve struct {
	family string
	seed   uint64
	length time.Duration
	// load returns the arrivals in processes' worth: 3 keeps three busy.
	load func(t time.Duration, r *rand.Rand) float64
	// burst returns messages, in seconds of work of one process, that come at
	// once.
	burst func(t time.Duration) float64
	// service is the time of one message in seconds, slots how many a process
	// does at once, start how long a process takes to be ready.
	service float64
	slots   int
	start   time.Duration
	// lost tells what cannot be measured at t.
	missing func(t time.Duration, r *rand.Rand) (cpu, backlog, busy, all bool)
	// noise is the spread of the CPU readings in percent; glitches are backlogs
	// misread a thousand times too large, or as zero.
	noise    float64
	glitches float64
	// turns is how often the load itself changes direction.
	turns int
	// fleet is how instances on several machines are measured; nil for processes on one.
	fleet *fleet
}

// fleet is what the leader of a group of instances knows of them.
type fleet struct {
	most    int           // the largest size
	counted time.Duration // between two counts of the backlog
	lag     time.Duration // until a count tells what is so
}

// interval is the time between two decisions.
func (c curve) interval() time.Duration {
	if c.fleet != nil {
		return 30 * time.Second
	}
	return interval
}

// world is an app under a load.
type simulation struct {
	c       curve
	r       *rand.Rand
	now     time.Duration
	backlog float64
	inWork  float64
	// ready are the times from when each process works.
	ready []time.Duration
	// arrived and done are totals, of messages; came is arrived over time, for
	// the age of the oldest.
	arrived, done float64
	came          []float64
	oldest        int
	recent        []float64
	backlogs      []float64 // after each step
}

// rate is how many messages one process does in a second.
func (w *simulation) rate() float64 { return float64(w.c.slots) / w.c.service }

func (w *simulation) busyProcesses() int {
	n := 0
	for _, at := range w.ready {
		if at <= w.now {
			n++
		}
	}
	return n
}

// resize starts processes, or stops those that started last; what they have in
// work is done nevertheless.
func (w *simulation) resize(n int) {
	for len(w.ready) < n {
		w.ready = append(w.ready, w.now+w.c.start)
	}
	w.ready = w.ready[:n]
}

// advance lets one step pass.
func (w *simulation) advance() {
	dt := step.Seconds()
	load := max(w.c.load(w.now, w.r), 0)
	arrivals := load * w.rate() * dt
	if w.c.burst != nil {
		arrivals += w.c.burst(w.now) * w.rate()
	}
	w.recent = append(w.recent, load)
	w.arrived += arrivals
	w.backlog += arrivals
	w.came = append(w.came, w.arrived)
	slots := float64(w.busyProcesses() * w.c.slots)
	if w.c.service <= dt {
		most := slots * dt / w.c.service
		did := min(w.backlog, most)
		w.backlog -= did
		w.done += did
		w.inWork = 0
		if most > 0 {
			w.inWork = slots * did / most
		}
	} else {
		w.inWork -= w.inWork * (1 - math.Exp(-dt/w.c.service))
		begun := min(w.backlog, max(slots-w.inWork, 0))
		w.backlog -= begun
		w.inWork += begun
		w.done += begun
	}
	for w.oldest < len(w.came) && w.came[w.oldest] <= w.done+1e-6 {
		w.oldest++
	}
	w.now += step
	w.backlogs = append(w.backlogs, w.backlog)
}

// known is the backlog as the policy knows it.
func (w *simulation) known() float64 {
	if w.c.fleet == nil {
		return w.backlog
	}
	at := (w.now - w.c.fleet.lag).Truncate(w.c.fleet.counted)
	if at < step {
		return 0
	}
	return w.backlogs[at/step-1]
}

// ownShare is the busy share of the slots of the one instance that decides, of which all are like it on average.
func (w *simulation) ownShare(share float64) float64 {
	busy := 0
	for range w.c.slots {
		if w.r.Float64() < share {
			busy++
		}
	}
	return float64(busy) / float64(w.c.slots)
}

// age is that of the oldest waiting message.
func (w *simulation) age() time.Duration {
	return time.Duration(len(w.came)-w.oldest) * step
}

// inputs is what can be measured.
func (w *simulation) inputs() Inputs {
	in := Inputs{Desired: len(w.ready), Ready: w.busyProcesses(), Slots: w.c.slots, ServiceTime: w.c.service}
	share := 0.0
	if in.Ready > 0 {
		share = min(w.inWork/float64(in.Ready*w.c.slots), 1)
	}
	if w.c.fleet != nil {
		share = w.ownShare(share)
	}
	in.Busy = of(100 * share)
	in.CPU = of(min(max(90*share+w.c.noise*w.r.NormFloat64(), 0), 100))
	in.Backlog = of(math.Floor(w.known()))
	in.OldestAge = of(w.age().Seconds())
	if w.r.Float64() < w.c.glitches {
		in.Backlog = of(float64(w.r.IntN(2)) * (w.backlog + 10) * 1000)
	}
	if w.c.missing != nil {
		cpu, backlog, busy, all := w.c.missing(w.now, w.r)
		if cpu || all {
			in.CPU = Reading{}
		}
		if backlog || all {
			in.Backlog, in.OldestAge = Reading{}, Reading{}
		}
		if busy || all {
			in.Busy = Reading{}
		}
	}
	return in
}

// demand returns the least and the most load of the last while.
func (w *simulation) demand(last time.Duration) (least, most float64) {
	from := max(len(w.recent)-int(last/step), 0)
	least = math.Inf(1)
	for _, l := range w.recent[from:] {
		least, most = min(least, l), max(most, l)
	}
	return least, most
}

// outcome is what became of a curve.
type outcome struct {
	c curve
	// peak is the most processes that there were, needed the most that the load
	// kept busy.
	peak   int
	needed float64
	// changes counts changes of size, turns changes of their direction.
	changes, turns int
	// wrong counts changes away from what the load needed.
	wrong []string
	// waited is the longest that a message waited; left is what waits at the
	// end.
	waited time.Duration
	left   float64
	// used is the time of all processes over that which the work needed.
	used float64
	// held counts decisions without all readings, and blind changes to a smaller size among them.
	held, blind int
	// hours is the time of all instances, ideal the least that the load could be done with.
	hours, ideal float64
}

// simulate runs a policy against a curve.
func simulate(p Policy, c curve) outcome {
	w := &simulation{c: c, r: rand.New(rand.NewPCG(c.seed, 7))}
	w.resize(1)
	w.ready[0] = 0
	o := outcome{c: c, peak: 1}
	var s policyState
	var last int
	var spent, work float64
	began := time.Unix(1_800_000_000, 0)
	for w.now < c.length {
		w.advance()
		o.waited = max(o.waited, w.age())
		spent += float64(len(w.ready)) * step.Seconds()
		o.ideal += max(w.recent[len(w.recent)-1], 1) * step.Hours()
		if w.now%c.interval() != 0 {
			continue
		}
		_, most := w.demand(c.interval())
		o.needed = max(o.needed, most)
		var d Decision
		in := w.inputs()
		s, d = p.Decide(s, in, began.Add(w.now))
		missing := !in.Backlog.Known || !in.Busy.Known
		if missing {
			o.held++
		}
		if !d.Changes() {
			continue
		}
		if missing && d.Desired < d.From {
			o.blind++
		}
		direction := 1
		if d.Desired < d.From {
			direction = -1
		}
		o.changes++
		if last != 0 && direction != last {
			o.turns++
		}
		last = direction
		if why := w.judge(p, d); why != "" {
			o.wrong = append(o.wrong, why)
		}
		w.resize(d.Desired)
		o.peak = max(o.peak, d.Desired)
	}
	work = w.done / w.rate()
	o.left = w.backlog
	o.used = spent / max(work, 1)
	o.hours, o.ideal = spent/3600, max(o.ideal, work/3600)
	return o
}
