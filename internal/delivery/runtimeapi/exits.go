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
	p.mu.Lock()
	inst.disarm()
	p.forget(inst)
	select {
	case inv := <-inst.offer: // the process exited before the invocation was sent
		p.takeBack(inst, inv)
	default:
	}
	was := inst.phase
	inst.phase = dead
	p.slots[inst.number-1] = nil
	report := p.settle(inst, was, exit)
	p.dispatch()
	p.mu.Unlock()

	inst.reporting.Lock()
	defer inst.reporting.Unlock()
	close(inst.gone)
	if report != nil {
		report()
	}
	if reported := p.set.Events.Exited; reported != nil {
		reported(Exited{Instance: inst.number, PID: inst.pid, Exit: exit, Asked: string(inst.asked)})
	}
}

// report may be nil. The caller must hold the mutex.
func (p *Pool) settle(inst *instance, was phase, exit supervisor.Exit) (report func()) {
	switch {
	case was == busy:
		return p.answerFor(inst, exit)
	case was == starting && inst.asked != byStop:
		return p.initFailed(inst, exit)
	case was != answered && (inst.asked == "" || inst.asked == byAbsence):
		p.fail()
	}
	return nil
}

func (p *Pool) answerFor(inst *instance, exit supervisor.Exit) (report func()) {
	inv := inst.current
	switch inst.asked {
	case "":
		inv.end(outcome{Invocation: failure("Runtime.ExitError", inv.id, exitMessage(exit))})
	case byTimeLimit:
		text := fmt.Sprintf("Task timed out after %.2f seconds", seconds(inv.limit))
		inv.end(outcome{Invocation: failure("Sandbox.Timedout", inv.id, text)})
		if reported := p.set.Events.TimedOut; reported != nil {
			return func() { reported(TimedOut{Instance: inst.number, RequestID: inv.id, Limit: inv.limit}) }
		}
	default:
		inv.end(outcome{err: fmt.Errorf("invocation %s may have run in part: its process was killed: %s", inv.id,
			inst.asked)})
	}
	return nil
}

// If initFailed starts a pause, it answers the oldest waiting invocation with the error.
func (p *Pool) initFailed(inst *instance, exit supervisor.Exit) (report func()) {
	id := ""
	if len(p.waiting) > 0 {
		id = p.waiting[0].id
	}
	answer, reason := p.initFailure(inst, id, exit)
	if p.fail() && id != "" {
		p.waiting[0].end(outcome{Invocation: answer})
		p.waiting = p.waiting[1:]
	}
	reported := p.set.Events.InitFailed
	if reported == nil {
		return nil
	}
	event := InitFailed{Instance: inst.number, Type: answer.Reason, Reason: reason, Failures: p.failures,
		Pause: time.Until(p.pauseEnd)}
	return func() { reported(event) }
}

func (p *Pool) initFailure(inst *instance, id string, exit supervisor.Exit) (answer queue.Invocation, reason string) {
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
		return "Runtime exited with error: signal: " + unix.SignalNum(e.Signal).String()
	case e.Code == 0:
		return "Runtime exited without providing a reason"
	default:
		return "Runtime exited with error: exit status " + strconv.Itoa(e.Code)
	}
}
