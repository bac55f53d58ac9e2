package health

import (
	"cmp"
	"slices"
	"time"
)

// QueueState is what is known of one queue and of the worker that receives from it.
type QueueState struct {
	Name string
	// Embedded tells that the store of the queue is this instance's own.
	Embedded bool
	// Receiving tells that messages are received, Paused that a person has paused that.
	Receiving, Paused bool
	// InWork is how many deliveries run; DeliveryLimit the longest that one may take, 0 when
	// not known.
	InWork        int
	DeliveryLimit time.Duration
	// NotReady are the reasons for which the target gets no messages, and DeletesRefused is
	// the reason for which messages cannot be deleted.
	NotReady       []Problem
	DeletesRefused Problem
	// Known tells that the figures below are; Taken is when they were read, zero for now.
	Known bool
	Taken time.Time
	// Backlog is how many messages wait, Oldest how long the oldest waits, Retention how
	// long one may.
	Backlog           int64
	Oldest, Retention time.Duration
	// DeadLetters is how many are in the dead-letter queue, DeadLettered a counter that rises
	// with each; both are known only if HasDeadLetters is true.
	DeadLetters, DeadLettered int64
	HasDeadLetters            bool
}

// Problem is something wrong since a time. The zero value means that nothing is wrong.
type Problem struct {
	Since  time.Time
	Reason string
}

// AppState is the state of the app that tendril runs.
type AppState struct {
	// NotReady is which check the app fails; "" where not known. LastReady is when it was last
	// seen ready.
	NotReady  string
	LastReady time.Time
	Processes []Process
	// Operation is a deployment under way, Deployment the last one that ended.
	Operation  Operation
	Deployment Deployment
}

// LeaderState is what this instance knows about the leader of the periodic tasks.
type LeaderState struct {
	// Tasks is how many tasks there are.
	Tasks int
	// Known tells that some instance is the leader, or that none is needed; Off that none
	// can be, since the start.
	Known, Off bool
	Error      string
}

// starting are the inputs before the start is over.
func (m *Monitor) starting(now time.Time) Inputs {
	return Inputs{Now: now, Started: m.opts.Began, StartLimit: m.opts.StartLimit, Draining: isClosed(m.opts.Draining)}
}

// condition are the inputs that decide whether this instance should be used.
func (m *Monitor) condition(now time.Time, queues []QueueState) Inputs {
	in := m.starting(now)
	app := &in.App
	app.Ready = true
	for _, q := range queues {
		in.InWork += q.InWork
		for _, p := range q.NotReady {
			if app.Ready || p.Since.Before(app.Since) {
				app.Since = p.Since
			}
			app.Ready, app.Reason = false, p.Reason
		}
		if p := q.DeletesRefused; p != (Problem{}) {
			reason := q.Name + ": " + p.Reason
			in.Poll = Poll{FailingSince: p.Since, Error: reason, Refused: true, DeletesRefused: reason}
		}
		if f, fails := m.polls.of(q.Name); fails && q.Receiving {
			f.addTo(&in, &q)
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

// addTo adds the failure of a queue to the inputs. The store of an embedded queue is this
// instance's own; any other queue is shared.
func (f pollFailure) addTo(in *Inputs, q *QueueState) {
	switch {
	case q.Embedded:
		in.Queue.Failed = f.text
	case !in.Poll.Refused:
		in.Poll.FailingSince, in.Poll.Error, in.Poll.Refused = f.since, q.Name+": "+f.text, f.final
	}
}

// gather reads all inputs. The lock is held.
func (m *Monitor) gather(now time.Time) Inputs {
	if !isClosed(m.opts.Started) {
		return m.starting(now)
	}
	queues := m.opts.Queues(now)
	in := m.condition(now, queues)
	for i := range in.App.Processes {
		p := &in.App.Processes[i]
		p.Restarts = int(m.increases.within("restarts of "+p.Name, 0, int64(p.Restarts), now))
	}
	in.Requests = m.deliveries.Requests(now)
	in.IgnoreClientErrors = m.opts.IgnoreClientErrors
	for _, q := range queues {
		in.Requests.Limit = max(in.Requests.Limit, q.DeliveryLimit)
	}
	m.addQueues(&in.Queue, queues, now)
	in.Leader = m.leader(now)
	in.Host = m.host
	in.Paused = len(queues) > 0 && !slices.ContainsFunc(queues, func(q QueueState) bool { return !q.Paused })
	return in
}

// addQueues adds up what waits. The oldest message is that of the queue
// in which it comes nearest to its end.
func (m *Monitor) addQueues(sum *Queue, queues []QueueState, now time.Time) {
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

func (m *Monitor) leader(now time.Time) Leader {
	st := m.opts.Leader()
	switch {
	case st.Off:
		m.noLeader = m.opts.Began
	case st.Known:
		m.noLeader = time.Time{}
	case m.noLeader.IsZero():
		m.noLeader = now
	}
	return Leader{Tasks: st.Tasks, Unknown: m.noLeader, Error: st.Error}
}
