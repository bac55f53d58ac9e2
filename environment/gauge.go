package environment

import (
	"context"
	"slices"
	"time"

	"tendril/autoscale"
	"tendril/health"
	"tendril/worker"
)

// gauge measures the load for package autoscale.
//
// A slot is a place for one delivery. What may be in work at once,
// http-connections, belongs to the whole instance, however many copies of the
// app share it: that is what the option means to Elastic Beanstalk, and what
// protects whatever stands behind the app. So the slots of an instance are that
// number, and those of one copy an equal share of it at the largest size. A
// copy counts as full with its share in work. It may get more while it is the
// only one, and then the size grows.
type gauge struct {
	e *Environment
	// host tells of the processors; its shares are since the last reading.
	host *health.Host
	// lines are those whose messages what is scaled works on.
	lines []*line
	// slots are those of one copy, or of this instance.
	slots int
	// ready is how many copies can work now; 1 for an instance.
	ready func() int
}

// instanceGauge measures for what has instances like this one.
func (e *Environment) instanceGauge() *gauge {
	return &gauge{e: e, host: health.NewHost(""), lines: e.lines, slots: slotsOf(e.s.HTTPConnections, e.lines),
		ready: func() int {
			return 1
		}}
}

// copiesGauge measures for the copies of the app on this machine, of which there
// are at most so many.
func (e *Environment) copiesGauge(most int) *gauge {
	var own []*line
	for _, l := range e.lines {
		if l.settings().ToOwnApp() {
			own = append(own, l)
		}
	}
	return &gauge{e: e, host: health.NewHost(""), lines: own, slots: max(slotsOf(e.s.HTTPConnections, own)/most, 1),
		ready: e.app.ReadyReplicas}
}

// slotsOf is how many deliveries of some lines can be in work at once.
func slotsOf(all int, lines []*line) int {
	sum := 0
	for _, l := range lines {
		sum += l.settings().Concurrency
	}
	return max(min(all, sum), 1)
}

// Read returns what is known now. The error is always nil.
func (g *gauge) Read(context.Context) (autoscale.Inputs, error) {
	in := autoscale.Inputs{Slots: g.slots, Hold: g.hold()}
	if cpu := g.host.Read().CPU; cpu.Known {
		in.CPU = autoscale.Of(cpu.Value)
	}
	g.readQueues(&in, time.Now())
	g.readWork(&in)
	return in, nil
}

// readQueues fills in what waits. One queue that does not tell leaves the sum
// unknown.
func (g *gauge) readQueues(in *autoscale.Inputs, now time.Time) {
	var backlog int64
	var oldest time.Duration
	known, aged := len(g.lines) > 0, len(g.lines) > 0
	for _, l := range g.lines {
		r, ok := g.e.depths.Read(l.queue.name, now)
		backlog += r.Backlog
		oldest = max(oldest, r.Oldest)
		known, aged = known && ok, aged && ok && r.HasAge
	}
	if known {
		in.Backlog = autoscale.Of(float64(backlog))
	}
	if aged {
		in.OldestAge = autoscale.Of(oldest.Seconds())
	}
}

// readWork fills in how much is in work, and how long one delivery takes: the
// average of the queues by how much each settles.
func (g *gauge) readWork(in *autoscale.Inputs) {
	inWork := 0
	var sum, weights float64
	for _, l := range g.lines {
		st := l.worker.Status()
		inWork += st.InWork
		if st.ServiceTime > 0 {
			weight := max(st.PerSecond, 1e-9)
			sum, weights = sum+weight*st.ServiceTime.Seconds(), weights+weight
		}
	}
	if weights > 0 {
		in.ServiceTime = sum / weights
	}
	if slots := g.slots * g.ready(); slots > 0 {
		in.Busy = autoscale.Of(min(100*float64(inWork)/float64(slots), 100))
	}
}

// hold says why the size is to stay as it is; "" for no reason.
func (g *gauge) hold() string {
	if g.e.app != nil {
		if d := g.e.app.Deployment(); d != nil && !d.Over() {
			return "a deployment is under way"
		}
	}
	if len(g.lines) > 0 && !slices.ContainsFunc(g.lines, func(l *line) bool { return !isPaused(l.worker.Status()) }) {
		return "receiving is paused"
	}
	return ""
}

// isPaused reports whether a person paused a worker.
func isPaused(st worker.Status) bool {
	return slices.ContainsFunc(st.Reasons, func(r worker.Reason) bool { return r.Block == worker.Paused })
}
