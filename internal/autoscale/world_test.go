package autoscale

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"
)

const step = 5 * time.Second

const interval = 10 * time.Second

type curve struct {
	family string
	seed   uint64
	length time.Duration
	// load is in processes: 3 keeps three processes busy.
	load  func(t time.Duration, r *rand.Rand) float64
	burst func(t time.Duration) float64
	// service is seconds per message, slots the concurrent messages per process, start the time until a process is
	// ready.
	service float64
	slots   int
	start   time.Duration
	missing func(t time.Duration, r *rand.Rand) (cpu, backlog, busy, all bool)
	// noise is the spread of CPU readings in percent, glitches the probability that the backlog is misread as zero or a
	// thousandfold.
	noise    float64
	glitches float64
	turns    int
	fleet    *fleet
}

type fleet struct {
	most    int
	counted time.Duration // interval between two counts of the backlog
	lag     time.Duration // age of a count when the leader sees it
}

func (c curve) interval() time.Duration {
	if c.fleet != nil {
		return 30 * time.Second
	}
	return interval
}

type simulation struct {
	c             curve
	r             *rand.Rand
	now           time.Duration
	backlog       float64
	inWork        float64
	ready         []time.Duration
	arrived, done float64
	came          []float64
	oldest        int
	recent        []float64
	backlogs      []float64
	reports       []Sample
	averages      []float64
}

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

func (w *simulation) resize(n int) {
	for len(w.ready) < n {
		w.ready = append(w.ready, w.now+w.c.start)
	}
	w.ready = w.ready[:n]
}

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

func (w *simulation) knownInWork() float64 {
	reported := 0.0
	for _, s := range w.reports {
		reported += float64(s.InWork)
	}
	return max(w.inWork, reported)
}

func (w *simulation) ownShare(share float64) float64 {
	busy := 0
	for range w.c.slots {
		if w.r.Float64() < share {
			busy++
		}
	}
	return float64(busy) / float64(w.c.slots)
}

func (w *simulation) age() time.Duration {
	return time.Duration(len(w.came)-w.oldest) * step
}

func (w *simulation) inputsOfInstances(p Policy) Inputs {
	own := w.inputs()
	left := w.inWork
	sample := func() Sample {
		work := min(left, float64(w.c.slots))
		left -= work
		share := work / float64(w.c.slots)
		return Sample{CPU: readingOf(min(max(90*share+w.c.noise*w.r.NormFloat64(), 0), 100)), OldestAge: own.OldestAge,
			Slots: w.c.slots, InWork: int(math.Round(work)), ServiceTime: w.c.service}
	}
	now := make([]Sample, len(w.ready))
	leaderIsIdle := w.c.seed%2 == 0
	if !leaderIsIdle {
		now[0] = sample()
	}
	for i := 1; i < len(w.ready); i++ {
		if w.ready[i] <= w.now {
			now[i] = sample()
		}
	}
	if leaderIsIdle {
		now[0] = sample()
	}

	reports := make([]Sample, len(w.ready))
	var all []Sample
	for i := range w.ready {
		before := i < len(w.reports) && w.reports[i].Slots > 0
		switch due := (w.now/w.c.interval()+time.Duration(i))%(time.Minute/w.c.interval()) == 0; {
		case w.ready[i] > w.now:
			continue
		case i == 0 || due || !before:
			reports[i] = now[i]
		default:
			reports[i] = w.reports[i]
		}
		all = append(all, reports[i])
	}
	w.reports = reports

	in := Combine(own, all, p)
	sum := 0.0
	for i := range all {
		sum += all[i].read(p.Measure).Value
	}
	if !own.CPU.Known {
		in.CPU, in.Measured = Reading{}, nil
	} else {
		w.averages = append(w.averages, sum/float64(len(all)))
	}
	return in
}

func (w *simulation) inputs() Inputs {
	in := Inputs{Desired: len(w.ready), Ready: w.busyProcesses(), Slots: w.c.slots, ServiceTime: w.c.service}
	share := 0.0
	if in.Ready > 0 {
		share = min(w.inWork/float64(in.Ready*w.c.slots), 1)
	}
	if w.c.fleet != nil {
		share = w.ownShare(share)
	}
	in.Busy = readingOf(100 * share)
	in.CPU = readingOf(min(max(90*share+w.c.noise*w.r.NormFloat64(), 0), 100))
	in.Backlog = readingOf(math.Floor(w.known()))
	in.OldestAge = readingOf(w.age().Seconds())
	if w.r.Float64() < w.c.glitches {
		in.Backlog = readingOf(float64(w.r.IntN(2)) * (w.backlog + 10) * 1000)
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

func (w *simulation) demand(last time.Duration) (least, most float64) {
	from := max(len(w.recent)-int(last/step), 0)
	least = math.Inf(1)
	for _, l := range w.recent[from:] {
		least, most = min(least, l), max(most, l)
	}
	return least, most
}

type outcome struct {
	c              curve
	peak           int
	needed         float64
	changes, turns int
	wrong          []string
	waited         time.Duration
	left           float64
	used           float64
	// held counts decisions without all readings, blind the scale-ins among them.
	held, blind  int
	hours, ideal float64
}

func simulate(p Policy, c curve) outcome {
	p = withDefaults(p)
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
		if p.Instances {
			in = w.inputsOfInstances(p)
		}
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
		if why := cmp.Or(w.judge(p, d), w.judgeAverage(p, d)); why != "" {
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
