package environment

import (
	"cmp"
	"slices"
	"time"

	"tendril/api"
	"tendril/internal/observe/series"
)

// curves records the console's charts. Only read is safe for concurrent use.
type curves struct {
	*observer
	recorder *series.Recorder

	counted map[string]time.Time // last count on Amazon SQS, by queue
	marked  time.Time            // end of the last marked deployment
	leader  string
}

func newCurves(o *observer) *curves {
	c := &curves{observer: o, counted: map[string]time.Time{}}
	c.recorder = series.New(func(now time.Time) series.Reading {
		c.mark(now)
		return c.count(now)
	})
	return c
}

func (c *curves) read(name string) (series.Curves, bool) { return c.recorder.Curves(name, time.Now()) }

func (c *curves) count(now time.Time) series.Reading {
	r := series.Reading{Queues: map[string]series.Counts{}, Latencies: c.monitor.Latencies()}
	limits := map[string]int{}
	for _, l := range c.work.all {
		st := l.worker.Status()
		r.InFlight += st.InWork
		target := l.queue.targetKey()
		limits[target] = l.capByLimiter(limits[target] + st.Limit)
		c.countOldest(&r, l, now)
		if !l.queue.embedded {
			one := series.Counts{In: st.Counts.Received - st.Counts.Duplicates, Out: st.Counts.Done}
			r.Queues[l.queue.name] = one
			r.Total.In, r.Total.Out = r.Total.In+one.In, r.Total.Out+one.Out
		}
	}

	for _, n := range limits {
		r.Limit += n
	}
	if c.work.pool != nil {
		r.Limit = min(r.Limit, c.settings.now().HTTPConnections)
	}

	if c.queues.broker != nil {
		total := c.queues.broker.TotalLedger()
		r.Total.In, r.Total.Out = r.Total.In+total.Sent, r.Total.Out+total.Done
		c.countEmbedded(&r)
	}
	return r
}

func (c *curves) countEmbedded(r *series.Reading) {
	var names []string
	for _, l := range c.work.all {
		if l.queue.embedded {
			names = append(names, l.queue.name, l.queue.dead)
		}
	}
	for _, name := range append(names, c.queues.broker.ListQueues("")...) {
		if len(r.Queues) == series.MaxQueues {
			return
		}
		if ledger, err := c.queues.broker.Ledger(name); err == nil {
			r.Queues[name] = series.Counts{In: ledger.Sent + ledger.MovedIn, Out: ledger.Done + ledger.MovedOut}
		}
	}
}

func (c *curves) countOldest(r *series.Reading, l *pipeline, now time.Time) {
	found, known := c.work.depths.read(l.queue.name, now)
	if !known || !found.hasAge || found.taken.Equal(c.counted[l.queue.name]) {
		return
	}
	if !l.queue.embedded {
		c.counted[l.queue.name] = found.taken
	}
	r.Oldest, r.HasOldest = max(r.Oldest, found.oldest), true
}

func (p *pipeline) capByLimiter(n int) int {
	if p.limiter == nil {
		return n
	}
	st := p.limiter.Status()
	return min(n, cmp.Or(st.SlowStart, st.Limit, n))
}

func (c *curves) mark(now time.Time) {
	c.markDeployments()
	c.markLeadership(now)
}

func (c *curves) markDeployments() {
	if c.programs.app == nil {
		return
	}
	for _, d := range slices.Backward(c.programs.app.Deployments()) {
		if d.Over() && d.Ended.After(c.marked) {
			c.marked = d.Ended
			c.recorder.Mark(d.Ended, "deploy", deploymentMark(&d))
		}
	}
}

func (c *curves) markLeadership(now time.Time) {
	if c.cron.tasks == nil {
		return
	}
	st := c.cron.tasks.Election().Status()
	leader := cmp.Or(st.Holder, c.leader) // keep the last one until a new one is elected
	if st.Leading {
		leader = "this instance"
	}
	if leader != c.leader && !st.Local {
		c.recorder.Mark(now, "leadership", leader+" leads")
	}
	c.leader = leader
}

// deploymentMark omits the error, which may contain a secret.
func deploymentMark(d *api.Deployment) string {
	if d.State == api.DeployDone {
		return d.To
	}
	return d.To + ": " + d.State
}
