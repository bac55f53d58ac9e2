package runtimeapi

import (
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	"tendril/queue"
)

// Pool runs the processes of one function. Its methods are safe for concurrent use.
type Pool struct {
	set  Options
	arn  string
	host host

	mu                sync.Mutex
	started, stopping bool
	slots             []*instance
	// idle is in order of use, most recent last. waiting is in order of arrival.
	idle    []*instance
	waiting []*invocation
	// failures counts failures since the last response. While pause is not nil, no process starts before pauseEnd.
	failures int
	pause    *time.Timer
	pauseEnd time.Time
	refusals refusals
	// stopErr is set before stopped is closed.
	stopErr error
	stopped chan struct{}

	running sync.WaitGroup
}

type phase int

const (
	starting phase = iota // has not requested an invocation yet
	idle
	away // hung up while waiting
	busy
	responded // has not requested another invocation
	dead
)

type asked string

const (
	byStop      asked = "stopped"
	byCaller    asked = "invocation abandoned"
	byTimeLimit asked = "time limit"
	byInit      asked = "initialization took too long"
	byInitError asked = "initialization failed"
	byAbsence   asked = "did not request another invocation"
)

// instance is one process. The pool's mutex guards it.
type instance struct {
	pool   *Pool
	number int
	since  time.Time
	// announced is closed once the process can be terminated, and gone once it has exited.
	announced, gone chan struct{}

	phase       phase
	initialized bool
	asked       asked
	// lingers means that the process responded longer than lingering ago, but has not requested another invocation.
	lingers bool
	// initError is the error posted to init/error, or nil.
	initError *queue.Invocation
	offer     chan *invocation
	current   *invocation
	timer     *time.Timer // nil unless armed
	// proc is nil unless the process is running; pid stays after its exit.
	proc process
	pid  int

	reporting sync.Mutex // held while an event is reported
}

type outcome struct {
	queue.Invocation
	err error
}

// invocation is a call of the function. The pool's mutex guards it.
type invocation struct {
	id       string
	payload  []byte
	deadline time.Time
	outcome  chan outcome // buffer of one
	at       *instance    // nil while waiting
	limit    time.Duration
	paused   func() bool // may be nil
}

// end sets the outcome. Only the first call has an effect.
func (inv *invocation) end(o outcome) {
	o.RequestID = inv.id
	if o.Status != http.StatusOK {
		o.RequestID = ""
	}
	select {
	case inv.outcome <- o:
	default:
	}
}

const (
	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
)

func pauseAfter(failures int) time.Duration {
	return min(firstPause<<min(failures-1, 10), longestPause)
}

func (p *Pool) endPause() {
	if p.pause != nil {
		p.pause.Stop()
		p.pause = nil
	}
}

type refusals struct {
	mu          sync.Mutex
	total, next int // next is the total of the next report
}

func (c *refusals) add(instance int, conn net.Conn, client func(net.Conn) string, report func(Refused)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total++
	if report == nil || c.total < c.next {
		return
	}
	if name := client(conn); name != "" { // if the client has exited, the next rejection is reported instead
		c.next = max(c.next, 1) * 10
		report(Refused{Instance: instance, Client: name, Total: c.total})
	}
}

func (inst *instance) usable() bool { return inst.asked == "" && inst.phase != dead }

func (inst *instance) isComing() bool {
	if !inst.usable() {
		return false
	}
	return inst.phase == starting || inst.phase == away || inst.phase == responded && !inst.lingers
}

func (inst *instance) owesResponse(id string) bool {
	return inst.phase == busy && inst.current.id == id
}

func (inst *instance) assign(inv *invocation) {
	inst.phase = busy
	inst.current = inv
	inv.at = inst
	if end := time.Now().Add(inv.limit); inv.deadline.IsZero() || end.Before(inv.deadline) {
		inv.deadline = end
	}
	inst.arm(inv.limit, byTimeLimit)
	inst.offer <- inv
}

// arm lets the pool kill the process after d, and replaces the previous timer.
func (inst *instance) arm(d time.Duration, why asked) {
	inst.disarm()
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		inst.pool.mu.Lock()
		defer inst.pool.mu.Unlock()
		if inst.timer == timer {
			inst.kill(why)
		}
	})
	inst.timer = timer
}

func (inst *instance) disarm() {
	if inst.timer != nil {
		inst.timer.Stop()
		inst.timer = nil
	}
}

func (inst *instance) terminate(why asked) {
	if inst.asked != "" {
		return
	}
	inst.signal(why, syscall.SIGTERM)
	inst.arm(inst.pool.set.Grace, why)
}

func (inst *instance) kill(why asked) {
	inst.signal(why, syscall.SIGKILL)
	inst.disarm()
}

func (inst *instance) signal(why asked, sig syscall.Signal) {
	if inst.phase == dead {
		return
	}
	if inst.asked == "" {
		inst.asked = why
	}
	inst.pool.removeIdle(inst)
	if inst.proc != nil {
		inst.proc.Signal(sig)
	}
}

func (p *Pool) removeIdle(inst *instance) {
	p.idle = slices.DeleteFunc(p.idle, func(other *instance) bool { return other == inst })
}

func (p *Pool) endWaiting(o outcome) {
	for _, inv := range p.waiting {
		inv.end(o)
	}
	p.waiting = nil
}

func (inst *instance) announceReady() {
	reported := inst.pool.set.Events.Ready
	if reported == nil {
		return
	}
	inst.reporting.Lock()
	defer inst.reporting.Unlock()
	select {
	case <-inst.gone:
	default:
		reported(Ready{Instance: inst.number, PID: inst.pid, After: time.Since(inst.since)})
	}
}

func (inst *instance) process() process {
	inst.pool.mu.Lock()
	defer inst.pool.mu.Unlock()
	return inst.proc
}
