package environment

import (
	"cmp"
	"context"
	"time"

	"tendril/app"
	"tendril/config"
	"tendril/console"
	"tendril/health"
	"tendril/queue"
	"tendril/supervisor"
	"tendril/worker"
)

// newMonitor makes what judges the health of this environment.
func (e *Environment) newMonitor(host *health.Host) *health.Monitor {
	return health.NewMonitor(health.Options{
		Began: e.began, StartLimit: e.s.AppReadyTimeout, Started: e.started, AppReady: e.ready, Draining: e.draining,
		Host: host, IgnoreClientErrors: e.s.HealthIgnoreClientErrors,
		Queues: e.queueStates, App: e.appState, Leader: e.leaderState,
		Log: e.Logger.With("component", "health"),
	})
}

// startHealth judges until the stop is nearly over: the console shows the drain.
func (e *Environment) startHealth(context.Context) error {
	e.steps.background("the health", e.monitor.Run)
	return nil
}

// queueStates are what health is told of each queue and its worker.
func (e *Environment) queueStates(now time.Time) (all []health.QueueState) {
	for _, l := range e.lines {
		set, st := l.settings(), l.worker.Status()
		q := health.QueueState{
			Name: l.queue.name, Embedded: l.embedded, Receiving: st.Receiving, InWork: st.InWork,
			DeliveryLimit: deliveryLimit(set, e.s.FunctionTimeout), Retention: cmp.Or(set.RetentionPeriod, queueRetention),
		}
		for _, r := range st.Reasons {
			problem := health.Problem{Since: r.Since, Reason: r.Text}
			switch r.Block {
			case worker.NotReady, worker.AppDown:
				q.NotReady = append(q.NotReady, problem)
			case worker.DeleteRefused:
				q.DeletesRefused = problem
			case worker.Paused:
				q.Paused = true
			}
		}
		r, known := e.depths.Read(q.Name, now)
		q.Known, q.Backlog, q.Oldest = known, r.Backlog, r.Oldest
		q.DeadLetters, q.DeadLettered, q.HasDeadLetters = r.DeadLetters, r.DeadLettered, r.HasDeadLetters
		if !l.embedded {
			q.Taken = r.Taken
		}
		all = append(all, q)
	}
	return all
}

// deliveryLimit is the longest that a delivery may take; without a deadline, the longest
// that it may be silent.
func deliveryLimit(set *config.QueueSettings, ofFunctions time.Duration) time.Duration {
	if set.ToFunction() {
		return ofFunctions
	}
	return cmp.Or(set.Deadline, set.InactivityTimeout)
}

// appState is what health is told of the app; false where none runs here.
func (e *Environment) appState() (st health.AppState, runs bool) {
	if e.app == nil {
		return st, false
	}
	st.NotReady, st.LastReady = e.app.NotReady()
	st.Processes = processStates(e.app.Serving())
	st.Operation, st.Deployment = deploymentStates(e.app.Deployment(), e.s.DeployTimeout)
	return st, true
}

func processStates(all []supervisor.Status) (list []health.Process) {
	for _, p := range all {
		h := health.Process{Name: p.Name, GivenUp: p.State == supervisor.Failed, Restarts: p.Restarts}
		if h.GivenUp {
			h.RetryAfter = app.RetryGivenUp
		}
		if p.LastExit != nil {
			h.LastExit = p.LastExit.String()
		}
		list = append(list, h)
	}
	return list
}

// deploymentStates are what health is told of the last deployment; limit is how
// long a version may take to be ready.
func deploymentStates(d *console.Deployment, limit time.Duration) (o health.Operation, last health.Deployment) {
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

// leaderState is what health is told of the leader of the periodic tasks.
func (e *Environment) leaderState() health.LeaderState {
	switch {
	case !e.running() || !e.tasks.Any():
		return health.LeaderState{Known: true} // none is needed
	case e.tasks.Off() != "":
		return health.LeaderState{Tasks: e.tasks.Count(), Off: true, Error: e.tasks.Off()}
	}
	st := e.tasks.Election().Status()
	return health.LeaderState{Tasks: e.tasks.Count(), Known: st.Leading || st.Holder != "", Error: st.Error}
}

// deliveryClass is how health counts a delivery; false when it does not.
func deliveryClass(s *worker.Settled, toFunction bool) (class health.Class, counts bool) {
	switch {
	case s.Outcome == queue.Done:
		return health.Success, true
	case s.Outcome == queue.Unreached:
		return health.Unreached, true
	case s.Outcome != queue.Failed: // nothing was tried
		return 0, false
	case s.Unsent:
		return health.Unsent, true
	}
	class = health.ClassOf(s.Status)
	switch {
	case class == health.Success && toFunction:
		class = health.FailedInside
	case class == health.Success: // but no success for this message
		class = health.Other
	}
	return class, !s.Aborted
}
