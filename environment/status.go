package environment

import (
	"fmt"

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
	if e.work != nil {
		s.Target = e.work.target
		s.Worker = e.workerStatus()
		if s.Backend == console.BackendSQS {
			s.Queues = []console.Queue{{Name: e.work.queue.name, URL: e.work.queue.url, FIFO: e.work.queue.fifo, DeadLetterQueue: e.work.queue.dead}}
		}
	}
	if e.tasks != nil {
		t := e.tasksStatus()
		s.Tasks = &t
	}
	if e.app != nil {
		s.App = e.processStatus()
	}
	return s
}

func (e *Environment) pause(name, reason string) error {
	if err := e.ownQueue(name); err != nil {
		return err
	}
	if reason == "" {
		reason = "paused"
	}
	e.work.worker.Pause(reason)
	return nil
}

func (e *Environment) resume(name string) error {
	if err := e.ownQueue(name); err != nil {
		return err
	}
	e.work.worker.Resume()
	return nil
}

// ownQueue refuses queues that this environment's worker does not work on.
func (e *Environment) ownQueue(name string) error {
	switch {
	case e.work == nil || e.work.worker == nil:
		return fmt.Errorf("no worker runs here: this process only serves queues")
	case name != "" && name != e.work.queue.name:
		return fmt.Errorf("this environment's worker does not receive from %s, only from %s", name, e.work.queue.name)
	}
	return nil
}

// checks are the conditions of being ready.
func (e *Environment) checks() []console.Check {
	checks := []console.Check{{Name: "environment", OK: !e.stopping()}}
	if e.stopping() {
		checks[0].Detail = "draining"
	}
	select {
	case <-e.started:
	default:
		return append(checks, console.Check{Name: "start", Detail: "starting"})
	}
	if e.work == nil {
		return checks
	}
	app, queue := console.Check{Name: "app", OK: true}, console.Check{Name: "queue", OK: true}
	st := e.work.worker.Status()
	for _, r := range st.Reasons {
		switch r.Block {
		case worker.NotReady, worker.AppDown:
			app.OK, app.Detail = false, r.Text
		case worker.DeleteRefused:
			queue.OK, queue.Detail = false, r.Text
		}
	}
	return append(checks, app, queue)
}

func (e *Environment) processStatus() []console.Process {
	var all []console.Process
	for _, p := range e.app.Status() {
		c := console.Process{Name: p.Name, State: string(p.State), PID: p.PID, Ready: p.Ready, Since: p.Since, Restarts: p.Restarts}
		if p.LastExit != nil {
			c.LastExit = p.LastExit.String()
		}
		all = append(all, c)
	}
	return all
}

func (e *Environment) workerStatus() *console.Worker {
	st := e.work.worker.Status()
	w := &console.Worker{
		Queue: st.Name, Concurrency: st.Concurrency, InWork: st.InWork, Prefetched: st.Prefetched + st.Waiting, Receiving: st.Receiving,
		Received: st.Counts.Received, Done: st.Counts.Done, Failed: st.Counts.Failed, Unreached: st.Counts.Unreached,
		GivenBack: st.Counts.GivenBack, Expired: st.Counts.Expired, PerSecond: st.PerSecond,
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
