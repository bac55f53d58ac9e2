package runtimeapi

import (
	"fmt"
	"slices"
	"time"

	"tendril/queue"
)

// Unless they lock the pool's mutex, the functions in this file require the caller to hold it.

// lingering is how long to wait for a process that has answered, before starting another one.
const lingering = 50 * time.Millisecond

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

// poll handles a request for the next invocation. offer stays empty if the process is to exit. first is true for the
// request that ends the initialization. allowed is false while the process owes an answer.
func (p *Pool) poll(inst *instance) (offer <-chan *invocation, first, allowed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reclaim(inst, inst.offer)
	if inst.phase == busy {
		return nil, false, false
	}
	alreadyWaits := inst.phase == idle && slices.Contains(p.idle, inst)
	inst.offer = make(chan *invocation, 1)
	if inst.usable() && !alreadyWaits {
		first = p.becomeIdle(inst)
	}
	return inst.offer, first, true
}

func (p *Pool) becomeIdle(inst *instance) (first bool) {
	first = !inst.initialized
	inst.initialized = true
	inst.disarm()
	inst.current, inst.phase = nil, idle
	if p.stopping {
		inst.terminate(byStop)
		return first
	}
	p.idle = append(p.idle, inst)
	p.dispatch()
	return first
}

func (p *Pool) hangUp(inst *instance, offer <-chan *invocation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if inst.offer != offer {
		return // the process has made a new request
	}
	p.reclaim(inst, offer)
	p.leave(inst)
}

func (p *Pool) reclaim(inst *instance, offer <-chan *invocation) {
	select {
	case inv := <-offer:
		p.takeBack(inst, inv)
	default:
	}
}

func (p *Pool) sendBack(inst *instance, inv *invocation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.takeBack(inst, inv)
	p.leave(inst)
}

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

func (p *Pool) leave(inst *instance) {
	if inst.phase != idle || !inst.usable() {
		return
	}
	inst.phase = away
	p.forget(inst)
	inst.arm(initTimeout, byAbsence)
	p.dispatch()
}

func (p *Pool) owed(inst *instance, id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return inst.owes(id)
}

// initFailing gives a process some time to exit. It returns false if the process has initialized or is being ended.
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

// fail starts a pause. It returns false during a pause, so that processes that fail together count once.
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
