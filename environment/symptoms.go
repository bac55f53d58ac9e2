package environment

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tendril/app"
	"tendril/console"
	"tendril/health"
	"tendril/queue"
	"tendril/supervisor"
	"tendril/worker"
)

// starting is what is known of the health before the start is over.
func (e *Environment) starting(now time.Time) health.Inputs {
	return health.Inputs{Taken: now, Started: e.began, StartLimit: e.s.AppReadyTimeout, App: health.App{Checked: true},
		Draining: e.stopping()}
}

// condition is what decides whether this instance is to be counted on. Anybody
// may ask at any time after the start.
func (e *Environment) condition(now time.Time) health.Inputs {
	in := e.starting(now)
	in.App = health.App{Checked: len(e.lines) > 0, Ready: true}
	in.Poll.Reached = true // the start finds every queue
	for _, l := range e.lines {
		st := l.worker.Status()
		in.InWork += st.InWork
		for _, r := range st.Reasons {
			switch r.Block {
			case worker.NotReady, worker.AppDown:
				if in.App.Ready || r.Since.Before(in.App.Since) {
					in.App.Since = r.Since
				}
				in.App.Ready, in.App.Reason = false, r.Text
			case worker.DeleteRefused:
				in.Poll.FailingSince, in.Poll.Error, in.Poll.Refused = r.Since, l.queue.name+": "+r.Text, true
			}
		}
		if trouble, failing := e.well.polls.of(l.queue.name); failing && st.Receiving {
			trouble.tell(&in, l.queue.name, l.embedded)
		}
	}
	switch {
	case in.App.Ready:
		e.well.everReady.Store(true)
	case e.app != nil:
		e.ownAppNotReady(&in.App)
	}
	in.App.WasReady = e.well.everReady.Load() || e.app != nil && e.wasReady()
	return in
}

// ownAppNotReady adds what the processes tell of an app that runs here and is not
// ready: which check it fails, and when it was last seen ready.
func (e *Environment) ownAppNotReady(app *health.App) {
	reason, lastReady := e.notReady()
	if reason != "" {
		app.Reason = reason
	}
	if !lastReady.IsZero() && lastReady.Before(app.Since) {
		app.Since = lastReady
	}
}

// notReady tells why the first copy of the app that is not ready is not, and when a
// copy was last seen ready; "" and zero where that is not known.
func (e *Environment) notReady() (reason string, lastReady time.Time) {
	for _, r := range e.app.Replicas() {
		c, ok := r.(*appCopy)
		if !ok {
			continue
		}
		for _, p := range c.app.Status() {
			if !p.Ready {
				reason = cmp.Or(reason, p.Reason)
			}
			if p.LastReady.After(lastReady) {
				lastReady = p.LastReady
			}
		}
	}
	return reason, lastReady
}

// gatherHealth reads everything that health is judged by. It needs the lock of
// judging.
func (e *Environment) gatherHealth(now time.Time) health.Inputs {
	if !e.running() {
		return e.starting(now)
	}
	w := &e.well
	in := e.condition(now)
	if e.app != nil {
		in.App.Processes = w.processes(e.app.Replicas(), now)
		in.Operation, in.Deployment = deploymentHealth(e.lastDeployment(), e.s.DeployTimeout)
	}
	in.Requests = w.window.Requests(now)
	in.Requests.Limit = e.longestDelivery()
	in.IgnoreClientErrors = e.s.HealthIgnoreClientErrors
	e.readQueueHealth(&in.Queue, now)
	in.Leader = e.leaderHealth(now)
	in.Host = w.reading
	in.Paused = len(e.lines) > 0 && !slices.ContainsFunc(e.lines, func(l *line) bool {
		return !isPaused(l.worker.Status())
	})
	return in
}

// sinceWhen keeps when something became wrong, and returns it.
func sinceWhen(began *time.Time, wrong bool, now time.Time) time.Time {
	switch {
	case !wrong:
		*began = time.Time{}
	case began.IsZero():
		*began = now
	}
	return *began
}

// processes tells of the copies that serve and their helpers. The copy on which
// suspects are tried is meant to die.
func (w *wellbeing) processes(replicas []app.Replica, now time.Time) (list []health.Process) {
	for _, r := range replicas {
		var all []supervisor.Status
		switch r := r.(type) {
		case *appCopy:
			all = r.app.Status()
		case *supervisor.Supervisor:
			all = r.Status()
		}
		for _, p := range all {
			h := health.Process{Name: p.Name, GivenUp: p.State == supervisor.Failed,
				Restarts: int(w.restarts.within(p.Name, 0, int64(p.Restarts), now))}
			if h.GivenUp {
				h.RetryAfter = retryGivenUp
			}
			if p.LastExit != nil {
				h.LastExit = p.LastExit.String()
			}
			list = append(list, h)
		}
	}
	return list
}

// deploymentHealth is what health makes of the last deployment; limit is how
// long a version may take to be ready.
func deploymentHealth(d *console.Deployment, limit time.Duration) (o health.Operation, last health.Deployment) {
	switch {
	case d == nil:
		return o, last
	case !d.Over():
		return health.Operation{Name: "application deployment", Since: d.Since, Limit: max(limit, 10*time.Minute)}, last
	}
	last = health.Deployment{Version: d.To, Ended: d.Ended, Took: d.Ended.Sub(d.Since)}
	if d.State == console.DeployRolledBack {
		last.Failed = d.Error
	}
	return o, last
}

// longestDelivery is the most that a delivery may take; without a deadline, the
// longest that it may be silent.
func (e *Environment) longestDelivery() (longest time.Duration) {
	for _, l := range e.lines {
		limit := e.s.FunctionTimeout
		if !l.settings().ToFunction() {
			limit = l.settings().InactivityTimeout
			if l.settings().Deadline > 0 {
				limit = l.settings().Deadline
			}
		}
		longest = max(longest, limit)
	}
	return longest
}

// readQueueHealth adds up what waits. The oldest message is that of the queue
// in which it comes nearest to its end.
func (e *Environment) readQueueHealth(q *health.Queue, now time.Time) {
	q.Known = len(e.lines) > 0
	var share float64
	for _, l := range e.lines {
		d, ok := e.depths.Read(l.queue.name, now)
		if !ok {
			q.Known = false
			continue
		}
		q.Backlog += d.Backlog
		q.DeadLetters += d.DeadLetters
		if d.HasDeadLetters {
			q.NewDeadLetters += e.well.deaths.within(l.queue.name, d.DeadLettered, d.DeadLettered, now)
		}
		if !l.embedded && (q.Taken.IsZero() || d.Taken.Before(q.Taken)) {
			q.Taken = d.Taken
		}
		retention := cmp.Or(l.settings().RetentionPeriod, queueRetention)
		if s := d.Oldest.Seconds() / retention.Seconds(); s > share {
			share, q.Oldest, q.Retention = s, d.Oldest, retention
		}
	}
	q.Expired = e.well.expiries.within("", 0, e.well.expired.Load(), now)
	q.NewDeadLetters = min(q.NewDeadLetters, q.DeadLetters)
}

// leaderHealth tells whether anybody enqueues the periodic tasks.
func (e *Environment) leaderHealth(now time.Time) health.Leader {
	t := e.cron.Load()
	switch {
	case t == nil:
		return health.Leader{}
	case t.scheduler == nil:
		return health.Leader{Tasks: len(t.listed()), Unknown: e.began, Error: t.off}
	}
	all, _ := t.scheduler.Status()
	st := t.leaderStatus()
	return health.Leader{Tasks: len(all), Unknown: sinceWhen(&e.well.noLeader, !st.Leading && st.Holder == "", now),
		Error: st.Error}
}

// observe counts a delivery for the health.
func (w *wellbeing) observe(s worker.Settled, toFunction bool, now time.Time) {
	class := health.Success
	switch s.Outcome {
	case queue.Done:
	case queue.Unreached:
		class = health.Unreached
	case queue.Failed:
		if s.Unsent {
			class = health.Unsent
			break
		}
		if class = health.ClassOf(s.Status); class == health.Success {
			class = health.Other // no success here
			if toFunction {
				class = health.FailedInside
			}
		}
		if s.Aborted {
			return
		}
	default:
		return // nothing was tried
	}
	w.window.Count(class, s.Duration, now)
}

// polls knows the queues that do not answer. The zero value knows none.
type polls struct {
	// failing counts them, so that those who tell of answers need no lock as
	// long as all is well.
	failing atomic.Int32
	mu      sync.Mutex
	byQueue map[string]pollTrouble
}

// pollTrouble is why one queue does not answer.
type pollTrouble struct {
	since   time.Time
	text    string
	forGood bool
}

// tell adds the trouble to what is known. The store of an embedded queue is
// this instance's own; any other queue is shared.
func (t pollTrouble) tell(in *health.Inputs, name string, embedded bool) {
	switch {
	case embedded:
		in.Queue.Failed = t.text
	case !in.Poll.Refused:
		in.Poll.FailingSince, in.Poll.Error, in.Poll.Refused = t.since, name+": "+t.text, t.forGood
	}
}

func (p *polls) failed(name string, f worker.PollFailed, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byQueue == nil {
		p.byQueue = map[string]pollTrouble{}
	}
	t, again := p.byQueue[name]
	if !again {
		t.since = now
		p.failing.Add(1)
	}
	t.text, t.forGood = f.Err.Error(), f.Permanent
	p.byQueue[name] = t
}

func (p *polls) answered(name string) {
	if p.failing.Load() == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, was := p.byQueue[name]; was {
		delete(p.byQueue, name)
		p.failing.Add(-1)
	}
}

func (p *polls) of(name string) (pollTrouble, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, failing := p.byQueue[name]
	return t, failing
}

// riseSpan is the time over which something is recent.
const riseSpan = 5 * time.Minute

// rises knows by how much counters rose lately. The zero value knows none.
type rises struct{ byName map[string]*rise }

type rise struct {
	last, total int64
	past        []riseMark
}

type riseMark struct {
	at    time.Time
	total int64
}

// within takes the value of a counter and returns by how much it rose in the
// last five minutes. before counts as its value before the first call. A
// counter that falls begins anew.
func (r *rises) within(name string, before, value int64, now time.Time) int64 {
	c := r.byName[name]
	if c == nil {
		if r.byName == nil {
			r.byName = map[string]*rise{}
		}
		c = &rise{last: before, past: []riseMark{{now, 0}}}
		r.byName[name] = c
	}
	c.total += max(value-c.last, 0)
	c.last = value
	if last := &c.past[len(c.past)-1]; len(c.past) > 1 && now.Sub(last.at) < time.Second {
		last.total = c.total // somebody asks often
	} else {
		c.past = append(c.past, riseMark{now, c.total})
	}
	// The last mark that is old enough is what to count from.
	from := 0
	for from+1 < len(c.past) && now.Sub(c.past[from+1].at) >= riseSpan {
		from++
	}
	c.past = slices.Delete(c.past, 0, from)
	return c.total - c.past[0].total
}

// drainLimit is how long a copy of the app that is taken out of service may
// finish its work: as long as a delivery to it may take, but never so long that a
// deployment, which waits for it, outlasts its own limit. A delivery without a
// deadline may take any time, since each byte from the app begins its silence anew.
func (e *Environment) drainLimit() time.Duration {
	const most = console.MaxDeploy - time.Minute
	longest := time.Duration(0)
	for _, l := range e.lines {
		if set := l.settings(); set.ToOwnApp() {
			longest = max(longest, cmp.Or(set.Deadline, most))
		}
	}
	return max(min(longest, most), e.s.ShutdownTimeout, time.Second)
}
