package environment

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"tendril/app"
	"tendril/config"
	"tendril/console"
	"tendril/worker"
)

// Status is what the environment says about itself now.
func (e *Environment) Status() console.Status {
	s := console.Status{StartedAt: e.began, State: console.StateRunning, Backend: console.BackendEmbedded}
	if e.s.Backend == config.BackendSQS {
		s.Backend = console.BackendSQS
	}
	select {
	case <-e.started:
	default:
		s.State = console.StateStarting
		return s
	}
	if e.stopping() {
		s.State = console.StateDraining
	}
	for _, l := range e.lines {
		s.Workers = append(s.Workers, l.status())
		if !l.embedded {
			s.Queues = append(s.Queues,
				console.Queue{Name: l.queue.name, URL: l.queue.url, FIFO: l.queue.fifo, DeadLetterQueue: l.queue.dead})
		}
	}
	if e.tasks != nil && e.tasks.Any() {
		t := e.tasks.Status()
		s.Tasks = &t
	}
	if e.app != nil {
		s.App = e.processStatus()
		s.Deployment = e.app.Deployment()
		if found := e.app.Poison(); found != (app.PoisonStatus{}) {
			s.PoisonMessages = &console.PoisonMessages{
				Quarantined: found.Quarantined, Poison: found.Poison, Broken: found.Broken,
			}
		}
	}
	s.Scaling = e.scalingStatus()
	for target, l := range e.limitsByTarget() {
		st := l.Status()
		s.Limits = append(s.Limits, console.Limit{
			Target: target, Rate: st.Rate, InWork: st.InWork, Concurrency: cmp.Or(st.SlowStart, st.Limit), Breaker: st.Breaker,
			TrialAt: st.TrialAt,
			Failing: st.Failing, Refused: st.Refused.Rate + st.Refused.Concurrency + st.Refused.Breaker,
		})
	}
	return s
}

// pause stops receiving from a queue; "" means from every queue.
func (e *Environment) pause(name, reason string) error {
	if reason == "" {
		reason = "paused"
	}
	return e.each(name, func(l *pipeline) { l.worker.Pause(reason) })
}

// resume undoes pause.
func (e *Environment) resume(name string) error {
	return e.each(name, func(l *pipeline) { l.worker.Resume() })
}

var errStarting = errors.New("the environment is still starting")

// Quiet pauses every queue for a reason, or, where all are paused already, lets
// all go on; it reports whether they are paused now. The error says that there is
// no worker, or none yet.
func (e *Environment) Quiet(reason string) (paused bool, err error) {
	if !e.running() {
		return false, errStarting
	}
	for _, l := range e.lines {
		if !isPaused(l.worker.Status()) {
			return true, e.pause("", reason)
		}
	}
	return false, e.resume("")
}

// isPaused reports whether a person paused a worker.
func isPaused(st worker.Status) bool {
	return slices.ContainsFunc(st.Reasons, func(r worker.Reason) bool { return r.Block == worker.Paused })
}

// each does something with the line of one queue, or with every line for "".
func (e *Environment) each(name string, do func(*pipeline)) error {
	select {
	case <-e.announced:
	default:
		return errStarting
	}
	if len(e.lines) == 0 {
		return errors.New("no worker runs here: this process only serves queues")
	}
	var names []string
	found := false
	for _, l := range e.lines {
		names = append(names, l.queue.name)
		if name == "" || name == l.queue.name {
			do(l)
			found = true
		}
	}
	if !found {
		return &console.Error{Status: http.StatusNotFound, Message: "this environment does not receive from " + name,
			Hint: "it receives from " + strings.Join(names, ", ")}
	}
	return nil
}

func (e *Environment) processStatus() []console.Process {
	var all []console.Process
	for _, p := range e.app.Processes() {
		c := console.Process{Name: p.Name, State: string(p.State), PID: p.PID, Ready: p.Ready, Since: p.Since,
			Restarts: p.Restarts}
		if p.LastExit != nil {
			c.LastExit = p.LastExit.String()
		}
		all = append(all, c)
	}
	return all
}

func (l *pipeline) status() console.Worker {
	st := l.worker.Status()
	w := console.Worker{
		Queue: st.Name, Target: l.goesTo(), Concurrency: st.Concurrency, InWork: st.InWork,
		Prefetched: st.Prefetched + st.Waiting, Receiving: st.Receiving,
		Received: st.Counts.Received, Done: st.Counts.Done, Failed: st.Counts.Failed, Unreached: st.Counts.Unreached,
		Returned: st.Counts.Returned, Expired: st.Counts.Expired, Throttled: st.Counts.Throttled, PerSecond: st.PerSecond,
		OldestSeconds: st.Oldest.Seconds(), LongestWaitSeconds: st.LongestWait.Seconds(), TurnShare: st.TurnShare,
		LimitedBy: st.LimitedBy,
	}
	for _, r := range st.Reasons {
		if r.Block == worker.Paused {
			w.Paused, w.PauseReason = true, r.Text
		}
		w.GateReasons = append(w.GateReasons, r.Text)
	}
	if st.LastError != nil {
		w.LastError = fmt.Sprintf("%s: %v", st.LastError.Action, st.LastError.Err)
	}
	return w
}
