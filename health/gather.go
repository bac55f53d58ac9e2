package health

import (
	"cmp"
	"slices"
	"time"
)

// starting are the inputs before the start is over.
func (m *Monitor) starting(now time.Time) inputs {
	return inputs{Now: now, Started: m.opts.Began, StartLimit: m.opts.StartLimit, Draining: isClosed(m.opts.Draining)}
}

// condition are the inputs that decide whether this instance should be used.
func (m *Monitor) condition(now time.Time, queues []QueueState) inputs {
	in := m.starting(now)
	app := &in.App
	app.Ready = true
	m.pollsMu.Lock()
	defer m.pollsMu.Unlock()
	for _, q := range queues {
		in.InWork += q.InWork
		for _, p := range q.NotReady {
			if app.Ready || p.Since.Before(app.Since) {
				app.Since = p.Since
			}
			app.Ready, app.Reason = false, p.Reason
		}
		if p := q.DeletesRefused; p != (Problem{}) {
			in.Queue.DeletesRefused = q.Name + ": " + p.Reason
			in.Poll = pollFailure{Problem{p.Since, in.Queue.DeletesRefused}, true}
		}
		// The store of an embedded queue is this instance's own; any other queue is shared.
		switch f, fails := m.polls[q.Name]; {
		case !fails || !q.Receiving:
		case q.Embedded:
			in.Queue.Failed = f.Reason
		case !in.Poll.Final:
			in.Poll = pollFailure{Problem{f.Since, q.Name + ": " + f.Reason}, f.Final}
		}
	}
	if app.Ready {
		m.wasReady.Store(true)
	}
	app.WasReady = m.wasReady.Load()
	if own, runs := m.opts.App(); runs {
		app.WasReady = app.WasReady || isClosed(m.opts.AppReady)
		if app.Processes = own.Processes; !app.Ready {
			app.Reason = cmp.Or(own.NotReady, app.Reason)
			if !own.LastReady.IsZero() && own.LastReady.Before(app.Since) {
				app.Since = own.LastReady
			}
		}
		in.Operation, in.Deployment = own.Operation, own.Deployment
	}
	return in
}

// gather reads all inputs. The lock is held.
func (m *Monitor) gather(now time.Time) inputs {
	if !isClosed(m.opts.Started) {
		return m.starting(now)
	}
	queues := m.opts.Queues(now)
	in := m.condition(now, queues)
	for i := range in.App.Processes {
		p := &in.App.Processes[i]
		p.Restarts = int(m.increases.within("restarts of "+p.Name, 0, int64(p.Restarts), now))
	}
	recent := m.deliveries.sum(now)
	in.Deliveries, in.P95 = recent.classes, recent.latencies.percentile(0.95)
	in.IgnoreClientErrors = m.opts.IgnoreClientErrors
	in.Paused = len(queues) > 0
	for _, q := range queues {
		in.DeliveryLimit = max(in.DeliveryLimit, q.DeliveryLimit)
		in.Paused = in.Paused && q.Paused
	}
	m.addQueues(&in.Queue, queues, now)
	in.Leader = m.opts.Leader()
	switch {
	case in.Leader.Off:
		m.noLeader = m.opts.Began
	case in.Leader.Known:
		m.noLeader = time.Time{}
	case m.noLeader.IsZero():
		m.noLeader = now
	}
	in.NoLeader, in.Host = m.noLeader, m.host
	return in
}

// addQueues adds up what waits. The oldest message is that of the queue
// in which it comes nearest to its end.
func (m *Monitor) addQueues(sum *queueInputs, queues []QueueState, now time.Time) {
	sum.Known = len(queues) > 0
	var nearest float64
	for _, q := range queues {
		if !q.Known {
			sum.Known = false
			continue
		}
		sum.Backlog += q.Backlog
		sum.DeadLetters += q.DeadLetters
		if q.HasDeadLetters {
			sum.NewDeadLetters += m.increases.within("dead letters of "+q.Name, q.DeadLettered, q.DeadLettered, now)
		}
		if !q.Taken.IsZero() && (sum.Taken.IsZero() || q.Taken.Before(sum.Taken)) {
			sum.Taken = q.Taken
		}
		if share := q.Oldest.Seconds() / q.Retention.Seconds(); share > nearest {
			nearest, sum.Oldest, sum.Retention = share, q.Oldest, q.Retention
		}
	}
	sum.Expired = m.increases.within("expired messages", 0, m.expired.Load(), now)
	sum.NewDeadLetters = min(sum.NewDeadLetters, sum.DeadLetters)
}

// increases are how much counters rose in the last five minutes, by name.
type increases map[string]*increase

type increase struct {
	last, total int64
	marks       []mark
}

// mark is the total at one moment.
type mark struct {
	at    time.Time
	total int64
}

// within takes the value of a counter and returns by how much it rose in the
// last five minutes. before counts as its value before the first call. A
// counter that falls was reset to 0.
func (r increases) within(name string, before, value int64, now time.Time) int64 {
	c := r[name]
	if c == nil {
		c = &increase{last: before, marks: []mark{{now, 0}}}
		r[name] = c
	}
	c.total += max(value-c.last, 0)
	c.last = value
	if last := &c.marks[len(c.marks)-1]; len(c.marks) > 1 && now.Sub(last.at) < time.Second {
		last.total = c.total // asked often: one mark for each second is enough
	} else {
		c.marks = append(c.marks, mark{now, c.total})
	}
	// The last mark that is old enough is what to count from.
	from := 0
	for from+1 < len(c.marks) && now.Sub(c.marks[from+1].at) >= recent {
		from++
	}
	c.marks = slices.Delete(c.marks, 0, from)
	return c.total - c.marks[0].total
}
