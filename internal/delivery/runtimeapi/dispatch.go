package runtimeapi

import (
	"fmt"
	"slices"
	"time"

	"tendril/queue"
)

// The functions of this file decide who works on what. Those that do not lock the
// pool's mutex are called with it held.

// lingering is how long a process that has answered is expected to ask for more
// at any moment, so that no other is started in its place.
const lingering = 50 * time.Millisecond

// dispatch brings together what waits and who is idle, then starts processes for
// what is left, or refuses it.
func (p *Pool) dispatch() {
	for len(p.waiting) > 0 && len(p.idle) > 0 {
		inst, inv := p.idle[len(p.idle)-1], p.waiting[0]
		p.idle, p.waiting = p.idle[:len(p.idle)-1], p.waiting[1:]
		inst.assign(inv)
	}
	switch {
	case p.stopping || !p.started:
	case p.pause == nil:
		p.grow()
	case !slices.ContainsFunc(p.slots, func(inst *instance) bool { return inst != nil && inst.usable() }):
		p.refuse(outcome{Invocation: paused(time.Until(p.pauseEnd))})
	}
}

// grow starts a process for every waiting invocation that none is coming for, as
// far as there is room; one when there is none at all.
func (p *Pool) grow() {
	alive, coming := 0, 0
	for _, inst := range p.slots {
		if inst == nil {
			continue
		}
		alive++
		if inst.usable() && (inst.phase == starting || inst.phase == away || inst.phase == answered && !inst.lingers) {
			coming++
		}
	}

	wanted := len(p.waiting) - coming
	if alive == 0 {
		wanted = max(wanted, 1)
	}

	for number := range p.slots {
		if wanted <= 0 {
			return
		}
		if p.slots[number] == nil {
			p.slots[number] = p.launch(number + 1)
			wanted--
		}
	}
}

// poll takes in a process that asks for an invocation, and returns the channel
// on which it comes. first: it is the process's first time. allowed is false for
// one that owes an answer.
func (p *Pool) poll(inst *instance) (offer <-chan *invocation, first, allowed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case inv := <-inst.offer: // it hung up on this one without having seen it
		p.takeBack(inst, inv)
	default:
	}
	if inst.phase == busy {
		return nil, false, false
	}

	waits := inst.phase == idle && slices.Contains(p.idle, inst)
	inst.offer = make(chan *invocation, 1)
	if !inst.usable() || waits {
		return inst.offer, false, true
	}

	first = !inst.initialized
	inst.initialized = true
	inst.disarm()
	inst.current, inst.phase = nil, idle

	if p.stopping {
		inst.terminate(byStop)
		return inst.offer, first, true
	}

	p.idle = append(p.idle, inst)
	p.dispatch()
	return inst.offer, first, true
}

// hangUp takes note that a process does not wait for an invocation any more. If
// one was already meant for it, that one goes back.
func (p *Pool) hangUp(inst *instance, offer <-chan *invocation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if inst.offer != offer {
		return // it asked again in the meantime
	}
	select {
	case inv := <-offer:
		p.takeBack(inst, inv)
	default:
	}
	p.leave(inst)
}

// sendBack is takeBack for one that the process hung up on.
func (p *Pool) sendBack(inst *instance, inv *invocation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.takeBack(inst, inv)
	p.leave(inst)
}

// takeBack undoes an assignment of which nothing was sent: the invocation waits
// again, in front.
func (p *Pool) takeBack(inst *instance, inv *invocation) {
	if inst.phase != busy || inst.current != inv {
		return
	}
	inst.disarm()
	inst.phase = idle
	inst.current = nil
	inv.at = nil
	if p.stopping {
		inv.end(outcome{err: fmt.Errorf("%w: the pool was stopped", errNotInvoked)})
		return
	}
	p.waiting = slices.Insert(p.waiting, 0, inv)
}

// leave makes an idle process one that has to come back.
func (p *Pool) leave(inst *instance) {
	if inst.phase != idle || !inst.usable() {
		return
	}
	inst.phase = away
	p.forget(inst)
	inst.arm(initTimeout, byAbsence)
	p.dispatch()
}

// owed reports whether the process has to answer the invocation with that id.
func (p *Pool) owed(inst *instance, id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return inst.owes(id)
}

// initFailing takes the report of a process that cannot initialize, and gives it
// a moment to end by itself. It returns false for one that is past that.
func (p *Pool) initFailing(inst *instance, a queue.Invocation) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if inst.phase != starting || inst.asked != "" {
		return false
	}
	inst.initError, inst.asked = &a, byInitError
	inst.arm(initErrorPatience, byInitError)
	return true
}

// answer takes the function's answer to an invocation. It returns false when
// the process owes none of that id.
func (p *Pool) answer(inst *instance, id string, a queue.Invocation) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !inst.owes(id) {
		return false
	}
	inst.phase, inst.lingers = answered, false
	p.failures = 0
	inv := inst.current
	inv.end(outcome{Invocation: a})
	time.AfterFunc(lingering, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if inst.phase == answered && inst.current == inv {
			inst.lingers = true
			p.dispatch()
		}
	})
	return true
}

// fail counts a failure that calls for a pause, and begins the pause. In one, it
// does nothing: several processes that fail together are one failure.
func (p *Pool) fail() (first bool) {
	if p.pause != nil || p.stopping {
		return false
	}
	p.failures++
	pause := pauseAfter(p.failures)
	var timer *time.Timer
	timer = time.AfterFunc(pause, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.pause == timer {
			p.pause = nil
			p.dispatch()
		}
	})
	p.pause, p.pauseEnd = timer, time.Now().Add(pause)
	return true
}
