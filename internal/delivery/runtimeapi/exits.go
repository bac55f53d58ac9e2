package runtimeapi

import (
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"tendril/internal/supervisor"
	"tendril/queue"
)

func (p *Pool) cleanUp(inst *instance, exit supervisor.Exit) {
	report := p.remove(inst, exit)

	inst.reporting.Lock()
	defer inst.reporting.Unlock()
	close(inst.gone)
	if report != nil {
		report()
	}
	if exited := p.set.Events.Exited; exited != nil {
		exited(Exited{Instance: inst.number, PID: inst.pid, Exit: exit, Asked: string(inst.asked)})
	}
}

// remove returns a function that reports an event, or nil.
func (p *Pool) remove(inst *instance, exit supervisor.Exit) (report func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	inst.disarm()
	p.removeIdle(inst)
	p.reclaim(inst, inst.offer) // it may have exited before the invocation was sent

	was := inst.phase
	inst.phase = dead
	p.slots[inst.number-1] = nil
	report = p.handleExit(inst, was, exit)
	p.dispatch()
	return report
}

// handleExit returns a function that reports an event, or nil. The caller must hold the mutex.
func (p *Pool) handleExit(inst *instance, was phase, exit supervisor.Exit) (report func()) {
	switch {
	case was == busy:
		return p.endInvocation(inst, exit)
	case was == starting && inst.asked != byStop:
		return p.initFailed(inst, exit)
	case was != responded && (inst.asked == "" || inst.asked == byAbsence):
		p.recordFailure()
	}
	return nil
}

func (p *Pool) endInvocation(inst *instance, exit supervisor.Exit) (report func()) {
	inv := inst.current
	switch inst.asked {
	case "":
		inv.end(outcome{Invocation: failure("Runtime.ExitError", inv.id, exitMessage(exit))})
		return nil
	case byTimeLimit:
		text := fmt.Sprintf("Task timed out after %.2f seconds", seconds(inv.limit))
		inv.end(outcome{Invocation: failure("Sandbox.Timedout", inv.id, text)})
		return func() {
			if timedOut := p.set.Events.TimedOut; timedOut != nil {
				timedOut(TimedOut{Instance: inst.number, RequestID: inv.id, Limit: inv.limit})
			}
		}
	}
	inv.end(outcome{err: fmt.Errorf("invocation %s may have run in part: its process was killed: %s", inv.id, inst.asked)})
	return nil
}

// initFailed ends the oldest waiting invocation with the error, unless a pause or a stop is in progress.
func (p *Pool) initFailed(inst *instance, exit supervisor.Exit) (report func()) {
	id := ""
	if len(p.waiting) > 0 {
		id = p.waiting[0].id
	}
	response, reason := p.initFailure(inst, id, exit)
	if p.recordFailure() && id != "" {
		p.waiting[0].end(outcome{Invocation: response})
		p.waiting = p.waiting[1:]
	}

	event := InitFailed{Instance: inst.number, Type: response.Reason, Reason: reason, Failures: p.failures,
		Pause: time.Until(p.pauseEnd)}
	return func() {
		if failed := p.set.Events.InitFailed; failed != nil {
			failed(event)
		}
	}
}

func (p *Pool) initFailure(inst *instance, id string, exit supervisor.Exit) (response queue.Invocation, reason string) {
	switch {
	case inst.initError != nil:
		return *inst.initError, "its initialization failed: " + inst.initError.Reason
	case inst.asked == byInit:
		text := fmt.Sprintf("Init timed out after %.2f seconds", seconds(initTimeout))
		return failure("Sandbox.Timedout", id, text),
			fmt.Sprintf("it did not request an invocation within %s", initTimeout)
	case exit.Err != nil:
		return failure("Runtime.InvalidEntrypoint", id, exitMessage(exit)), exit.String()
	default:
		return failure("Runtime.ExitError", id, exitMessage(exit)),
			"its process exited before it requested an invocation: " + exit.String()
	}
}

// exitMessage uses Lambda's wording.
func exitMessage(e supervisor.Exit) string {
	switch {
	case e.Err != nil:
		return "Couldn't start the runtime: " + e.Err.Error()
	case e.Signal != "":
		text := e.Signal
		if number := unix.SignalNum(e.Signal); number != 0 { // real-time signals have no name
			text = number.String()
		}
		return "Runtime exited with error: signal: " + text
	case e.Code == 0:
		return "Runtime exited without providing a reason"
	default:
		return "Runtime exited with error: exit status " + strconv.Itoa(e.Code)
	}
}
