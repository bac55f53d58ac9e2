package runtimeapi

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"tendril/queue"
)

// killPatience is longer than processes survive SIGKILL, unless they hang in the kernel.
const killPatience = 5 * time.Second

// New returns a pool that is not started.
func New(o Options) (*Pool, error) {
	set, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	h, err := newHost(&set)
	if err != nil {
		return nil, err
	}
	return newPool(set, h), nil
}

func newPool(set Options, h host) *Pool {
	return &Pool{set: set, arn: functionARN(&set), host: h, slots: make([]*instance, set.Instances),
		stopped: make(chan struct{})}
}

// Start starts the first process and returns immediately. Later calls do nothing.
func (p *Pool) Start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started = true
	p.dispatch()
}

// Invoke passes payload to a process and returns its response, which may report a failure. Callers are served in order.
// An error whose Unsent method returns true means that the function received nothing. If ctx ends while the function
// runs, its process is terminated. paused is called, with a lock held, before a process receives the invocation; may be
// nil.
func (p *Pool) Invoke(ctx context.Context, payload []byte, paused func() bool) (queue.Invocation, error) {
	if len(payload) > maxRequest {
		return tooLarge(len(payload)), nil
	}
	inv := &invocation{id: uuid.NewString(), payload: payload, outcome: make(chan outcome, 1), limit: p.set.Timeout,
		paused: paused}
	if deadline, ok := ctx.Deadline(); ok {
		inv.deadline = deadline
	}
	p.enqueue(inv)
	select {
	case o := <-inv.outcome:
		return o.Invocation, o.err
	case <-ctx.Done():
		return p.abandon(inv, context.Cause(ctx))
	}
}

func (p *Pool) enqueue(inv *invocation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping || !p.started {
		inv.end(outcome{err: fmt.Errorf("%w: the pool is not running", errNotInvoked)})
		return
	}
	p.waiting = append(p.waiting, inv)
	p.dispatch()
}

// abandon removes a waiting invocation or ends its process, unless the outcome has arrived meanwhile.
func (p *Pool) abandon(inv *invocation, cause error) (queue.Invocation, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case o := <-inv.outcome:
		return o.Invocation, o.err
	default:
	}

	if inv.at == nil {
		p.waiting = slices.DeleteFunc(p.waiting, func(other *invocation) bool { return other == inv })
		return queue.Invocation{}, fmt.Errorf("%w: all processes were busy: %w", errNotInvoked, cause)
	}
	inv.at.terminate(byCaller)
	return queue.Invocation{}, fmt.Errorf("invocation %s was abandoned and its process killed: %w", inv.id, cause)
}

// Stop ends all processes and waits for them; the error lists processes that did not exit. Waiting and later
// invocations fail. Idle processes receive SIGTERM, and SIGKILL after the grace period; busy ones only once ctx is
// done. Once [Options].Hurry is done, all are killed. Later calls wait for the first.
func (p *Pool) Stop(ctx context.Context) error {
	if !p.beginStop() {
		<-p.stopped
		return p.stopErr
	}
	defer close(p.stopped)

	ended := make(chan struct{})
	go func() {
		p.running.Wait()
		p.host.close()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	case <-p.set.Hurry.Done():
	}

	p.endAll((*instance).terminate) // SIGKILL follows after the grace period
	patience := time.NewTimer(p.set.Grace + killPatience)
	defer patience.Stop()
	for hurry := p.set.Hurry.Done(); ; {
		select {
		case <-ended:
			return nil
		case <-hurry:
			hurry = nil
			p.endAll((*instance).kill)
			patience.Reset(killPatience)
		case <-patience.C:
			p.stopErr = fmt.Errorf("processes %v of the function did not exit within %s of KILL", p.pids(), killPatience)
			return p.stopErr
		}
	}
}

func (p *Pool) pids() (pids []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, inst := range p.slots {
		if inst != nil && inst.proc != nil {
			pids = append(pids, inst.pid)
		}
	}
	return pids
}

func (p *Pool) endAll(end func(*instance, asked)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, inst := range p.slots {
		if inst != nil {
			end(inst, byStop)
		}
	}
}

func (p *Pool) beginStop() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		return false
	}
	p.stopping = true
	p.endPause()
	p.endWaiting(outcome{err: fmt.Errorf("%w: the pool was stopped", errNotInvoked)})
	for _, inst := range p.slots {
		if inst != nil && inst.phase != busy && inst.phase != responded {
			inst.terminate(byStop)
		}
	}
	return true
}
