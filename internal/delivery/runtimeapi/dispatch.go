package runtimeapi

import (
	"fmt"
	"slices"
	"time"

	"tendril/queue"
)

// Functions in this file that do not lock the pool's mutex require the caller to hold it.

// lingering is how long a process that has responded may take to request another invocation before another process is
// started.
const lingering = 50 * time.Millisecond

func (p *Pool) dispatch() {
	for len(p.waiting) > 0 && len(p.idle) > 0 {
		inv := p.waiting[0]
		p.waiting = p.waiting[1:]
		if inv.paused != nil && inv.paused() {
			inv.end(outcome{err: fmt.Errorf("%w: its queue was paused", errNotInvoked)})
			continue
		}
		inst := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		inst.assign(inv)
	}
	switch {
	case p.stopping || !p.started:
	case p.pause == nil:
		p.grow()
	case !slices.ContainsFunc(p.slots, func(inst *instance) bool { return inst != nil && inst.usable() }):
		p.endWaiting(outcome{Invocation: keepsExiting(time.Until(p.pauseEnd))})
	}
}

func (p *Pool) grow() {
	alive, coming := 0, 0
	for _, inst := range p.slots {
		if inst == nil {
			continue
		}
		alive++
		if inst.isComing() {
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

type nextRequest struct {
	offer    <-chan *invocation // stays empty if the pool is ending the process
	endsInit bool
}

// poll records a request for the next invocation, or returns false while the process owes a response.
func (p *Pool) poll(inst *instance) (r nextRequest, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reclaim(inst, inst.offer)
	if inst.phase == busy {
		return nextRequest{}, false
	}

	inst.offer = make(chan *invocation, 1)
	r.offer = inst.offer
	alreadyWaits := inst.phase == idle && slices.Contains(p.idle, inst)
	if inst.usable() && !alreadyWaits {
		r.endsInit = !inst.initialized
		p.becomeIdle(inst)
	}
	return r, true
}

func (p *Pool) becomeIdle(inst *instance) {
	inst.initialized = true
	inst.disarm()
	inst.current = nil
	inst.phase = idle
	if p.stopping {
		inst.terminate(byStop)
		return
	}
	p.idle = append(p.idle, inst)
	p.dispatch()
}

func (p *Pool) hangUp(inst *instance, offer <-chan *invocation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if inst.offer != offer {
		return // the process has made a new request
	}
	p.reclaim(inst, offer)
	p.markAway(inst)
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
	p.markAway(inst)
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

func (p *Pool) markAway(inst *instance) {
	if inst.phase != idle || !inst.usable() {
		return
	}
	inst.phase = away
	p.removeIdle(inst)
	inst.arm(initTimeout, byAbsence)
	p.dispatch()
}

func (p *Pool) owesResponse(inst *instance, id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return inst.owesResponse(id)
}

// initReported records an initialization error, and gives the process time to exit. It returns false if the process is
// already initialized, or if the pool is ending it.
func (p *Pool) initReported(inst *instance, a queue.Invocation) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if inst.phase != starting || inst.asked != "" {
		return false
	}
	inst.initError, inst.asked = &a, byInitError
	inst.arm(initErrorPatience, byInitError)
	return true
}

// recordResponse returns false if the process does not owe a response to this invocation.
func (p *Pool) recordResponse(inst *instance, id string, response queue.Invocation) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !inst.owesResponse(id) {
		return false
	}

	inst.phase = responded
	inst.lingers = false
	p.failures = 0
	inv := inst.current
	inv.end(outcome{Invocation: response})
	time.AfterFunc(lingering, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if inst.phase == responded && inst.current == inv {
			inst.lingers = true
			p.dispatch()
		}
	})
	return true
}

// recordFailure counts a failure and starts a pause. During a pause or a stop, it returns false, so that processes
// that fail together count once.
func (p *Pool) recordFailure() (first bool) {
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
