package environment

import (
	"cmp"
	"os"
	"sync"
	"time"

	"tendril/api"
	"tendril/broker"
	"tendril/internal/app"
	"tendril/internal/cron/tasks"
	"tendril/internal/observe/health"
	"tendril/internal/supervisor"
	"tendril/internal/worker"
	"tendril/queue"
)

func (p *pipelines) queueStates(now time.Time) (all []health.QueueState) {
	workers, _ := p.states(nil)
	for i, l := range p.all {
		settings := l.queue.settings()
		status := l.worker.Status()
		shown := &workers[i]
		reading, known := p.depths.read(l.queue.name, now)
		state := health.QueueState{
			Name: l.queue.name, Embedded: l.queue.embedded,
			Receiving: status.Receiving, InWork: status.InWork,
			Paused: shown.Paused, PausedBy: shown.PausedBy, PauseReason: shown.PauseReason, PausedAt: shown.PausedAt,
			Why:           shown.Why,
			DeliveryLimit: deliveryLimit(settings, p.settings.now().FunctionTimeout),
			Retention:     cmp.Or(settings.RetentionPeriod, queueRetention),

			Known: known, Backlog: reading.backlog, Oldest: reading.oldest,
			DeadLetters: reading.deadLetters, DeadLettered: reading.deadLettered, HasDeadLetters: reading.hasDeadLetters,
			DeadLetterQueue: p.deadLetterQueue(l.queue),
		}
		if !l.queue.embedded { // embedded queues are counted exactly
			state.Taken = reading.taken
		}
		addReasons(&state, status.Reasons)
		all = append(all, state)
	}
	return all
}

func addReasons(state *health.QueueState, reasons []worker.Reason) {
	for _, r := range reasons {
		problem := health.Problem{Since: r.Since, Reason: r.Text}
		switch r.Block {
		case worker.NotReady, worker.AppDown:
			state.NotReady = append(state.NotReady, problem)
		case worker.DeleteRefused:
			state.DeletesRefused = problem
		}
	}
}

func appState(a *app.App, deployLimit time.Duration) (st health.AppState, runs bool) {
	if a == nil {
		return st, false
	}
	st.NotReady, st.LastReady = a.NotReady()
	st.Processes = processStates(a.Serving())
	st.Operation, st.Deployment = deploymentStates(a.Deployment(), deployLimit)
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

const leastDeployLimit = 10 * time.Minute // even if deploy-timeout is shorter

func deploymentStates(d *api.Deployment, limit time.Duration) (o health.Operation, last health.Deployment) {
	switch {
	case d == nil:
		return o, last
	case !d.Over():
		return health.Operation{Name: "application deployment", Since: d.Since, Limit: max(limit, leastDeployLimit)}, last
	}
	if d.Aborted { // it neither completed nor failed
		return o, last
	}
	last = health.Deployment{Version: d.To, Ended: d.Ended}
	if d.State == api.DeployRolledBack {
		last.Failed = d.Error
	}
	return o, last
}

func leaderState(m *tasks.Manager) health.LeaderState {
	if off := m.Off(); off != "" {
		return health.LeaderState{Tasks: m.Count(), Off: true, Error: off}
	}
	st := m.Election().Status()
	return health.LeaderState{Tasks: m.Count(), Known: st.Leading || st.Holder != "", Error: st.Error}
}

func taskStates(all []api.Task) (states []health.TaskState) {
	for i := range all {
		if t := &all[i]; t.State() != api.TaskScheduled {
			states = append(states, health.TaskState{Name: t.Name, Paused: t.Paused, PausedBy: t.PausedBy,
				PauseReason: t.PauseReason, PausedAt: t.PausedAt, Problem: t.Problem, FailedRuns: t.FailedRuns,
				LastFailure: t.LastFailure})
		}
	}
	return states
}

func deliveryClass(s *worker.Settled, toFunction bool) (class health.Class, counts bool) {
	switch {
	case s.Outcome == queue.Done:
		return health.Success, true
	case s.Outcome == queue.Unreached:
		return health.Unreached, true
	case s.Outcome != queue.Failed:
		return 0, false
	case s.Unsent:
		return health.Unsent, true
	}

	class = health.ClassOf(s.Status)
	switch {
	case class == health.Success && toFunction:
		class = health.FailedInside
	case class == health.Success: // only this message of the batch failed
		class = health.Other
	}

	return class, !s.Aborted
}

func isFailedAttempt(s *worker.Settled) bool {
	return s.Outcome == queue.Failed || s.Outcome == queue.Unreached && !s.NextRetry.IsZero()
}

func attemptOf(s *worker.Settled, d *api.Delivery) broker.Attempt {
	a := broker.Attempt{At: d.At, Instance: hostName(), Outcome: d.Outcome, Status: d.Status, Reason: d.Reason,
		Duration: s.Duration, ReceiveCount: d.ReceiveCount, RetryAt: d.RetryAt}
	if s.Process != "" {
		a.Instance += "/" + s.Process
	}
	a.Answer = cmp.Or(s.Excerpt, d.Answer)
	return a
}

var hostName = sync.OnceValue(func() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown host"
	}
	return name
})
