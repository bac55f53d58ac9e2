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

// Pool runs the processes of one function. Create it with [New], then call Start and Stop once each. It is safe for
// concurrent use.
type Pool struct {
	set  Options
	arn  string
	host host

	mu                sync.Mutex
	started, stopping bool
	// slots contains the process of each instance number, nil if it does not exist.
	slots []*instance
	// idle are the processes waiting for an invocation, most recently used last. waiting are the invocations waiting
	// for a process, oldest first.
	idle    []*instance
	waiting []*invocation
	// failures counts failures with a pause since the last answer. During a pause, until pauseEnd, no process is
	// started; the timer pause ends it, and is nil otherwise.
	failures int
	pause    *time.Timer
	pauseEnd time.Time
	refusals refusals
	// stopErr is set before stopped is closed.
	stopErr error
	stopped chan struct{}

	running sync.WaitGroup
}

// phase is the state of a process.
type phase int

const (
	starting phase = iota // has not asked for an invocation yet
	idle                  // waiting for an invocation
	away                  // hung up while waiting
	busy                  // owes an answer
	answered              // has answered and not asked again
	dead
)

// asked is why the pool ends a process; "" if it does not.
type asked string

const (
	byStop      asked = "stopped"
	byCaller    asked = "invocation abandoned"
	byTimeLimit asked = "time limit"
	byInit      asked = "initialization took too long"
	byInitError asked = "initialization failed"
	byAbsence   asked = "did not ask for work again"
)

// instance is one process and its Runtime API. The pool's mutex guards the variable fields.
type instance struct {
	pool   *Pool
	number int
	since  time.Time
	// announced is closed when the process can be terminated, gone when it is dead.
	announced, gone chan struct{}

	phase phase
	// initialized: it has asked for an invocation.
	initialized bool
	asked       asked
	// lingers: it answered a while ago and has not asked for more.
	lingers bool
	// initError is the error it posted to init/error, or nil.
	initError *queue.Invocation
	// offer delivers the next invocation; current is the one being handled.
	offer   chan *invocation
	current *invocation
	// limit ends the process when it fires.
	limit *time.Timer
	// proc is nil unless the process runs; pid remains.
	proc process
	pid  int

	reporting sync.Mutex // held while an event is reported
}

// outcome is the result of an Invoke: an answer or an error.
type outcome struct {
	queue.Invocation
	err error
}

// invocation is one call passing through the pool, guarded by the pool's mutex.
type invocation struct {
	id       string
	payload  []byte
	deadline time.Time     // as reported to the function
	outcome  chan outcome  // buffer of one
	at       *instance     // the process handling it; nil while waiting
	limit    time.Duration // its timeout
}

// end sets the outcome, unless there already is one.
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

// pauseAfter returns the pause after a number of consecutive failures, at least one. It doubles each time.
func pauseAfter(failures int) time.Duration {
	return min(firstPause<<min(failures-1, 10), longestPause)
}

func (p *Pool) endPause() {
	if p.pause != nil {
		p.pause.Stop()
		p.pause = nil
	}
}

// refusals counts refused connections and reports the first, tenth, hundredth and so on.
type refusals struct {
	mu          sync.Mutex
	total, next int // next is the total at which to report
}

func (c *refusals) add(instance int, conn net.Conn, client func(net.Conn) string, report func(Refused)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total++
	if report == nil || c.total < c.next {
		return
	}
	if name := client(conn); name != "" { // the client is gone
		c.next = max(c.next, 1) * 10
		report(Refused{Instance: instance, Client: name, Total: c.total})
	}
}

// usable reports whether the process is alive and not being ended.
func (inst *instance) usable() bool { return inst.asked == "" && inst.phase != dead }

// owes reports whether the process must answer the invocation with this ID.
func (inst *instance) owes(id string) bool {
	return inst.phase == busy && inst.current.id == id
}

// assign passes an invocation to an idle process.
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

// arm schedules killing the process after d, replacing the previous timer.
func (inst *instance) arm(d time.Duration, why asked) {
	inst.disarm()
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		inst.pool.mu.Lock()
		defer inst.pool.mu.Unlock()
		if inst.limit == timer {
			inst.kill(why)
		}
	})
	inst.limit = timer
}

func (inst *instance) disarm() {
	if inst.limit != nil {
		inst.limit.Stop()
		inst.limit = nil
	}
}

// terminate sends TERM, and KILL after the grace period. A process already being ended keeps its timer.
func (inst *instance) terminate(why asked) {
	if inst.asked != "" {
		return
	}
	inst.signal(why, syscall.SIGTERM)
	inst.arm(inst.pool.set.Grace, why)
}

// kill kills the process and its group.
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
	inst.pool.forget(inst)
	if inst.proc != nil {
		inst.proc.Signal(sig)
	}
}

// forget removes a process from the idle ones.
func (p *Pool) forget(inst *instance) {
	p.idle = slices.DeleteFunc(p.idle, func(other *instance) bool { return other == inst })
}

// refuse gives all waiting invocations the same outcome.
func (p *Pool) refuse(o outcome) {
	for _, inv := range p.waiting {
		inv.end(o)
	}
	p.waiting = nil
}

// announceReady reports the process's first request for an invocation, never after Exited.
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

// running returns the process while it is alive, otherwise nil.
func (inst *instance) running() process {
	inst.pool.mu.Lock()
	defer inst.pool.mu.Unlock()
	return inst.proc
}
