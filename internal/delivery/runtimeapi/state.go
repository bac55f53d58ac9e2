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

// Pool runs the processes of one function. Make it with [New], Start it once
// and Stop it once. Its methods may be called by several goroutines.
type Pool struct {
	set  Options
	arn  string
	host host

	mu sync.Mutex
	// started and stopping are the two ends of its life.
	started, stopping bool
	// slots holds the process of every instance number, nil where there is none.
	slots []*instance
	// idle are the processes that wait for an invocation; the last was busy
	// last. waiting are the invocations that wait for a process, oldest first.
	idle    []*instance
	waiting []*invocation
	// failures are those that called for a pause since the last answer. In a pause, until
	// pauseEnd, no process is started; pause ends it, and is nil when there is none.
	failures int
	pause    *time.Timer
	pauseEnd time.Time
	refusals refusals
	// stopErr is set before stopped is closed.
	stopErr error
	stopped chan struct{}

	running sync.WaitGroup
}

// phase is what a process is doing.
type phase int

const (
	starting phase = iota // it has not asked for an invocation yet
	idle                  // it waits for one
	away                  // it waited, and hung up
	busy                  // it owes an answer
	answered              // it has answered and not asked again
	dead
)

// asked says why we end a process; "" means that we do not.
type asked string

const (
	byStop      asked = "stopped"
	byCaller    asked = "invocation abandoned"
	byTimeLimit asked = "time limit"
	byInit      asked = "initialization took too long"
	byInitError asked = "initialization failed"
	byAbsence   asked = "did not ask for work again"
)

// instance is one process and its Runtime API. All but the constants is guarded
// by the pool's mutex.
type instance struct {
	pool   *Pool
	number int
	since  time.Time
	// announced is closed when the process runs and can be ended, gone when the process is dead.
	announced, gone chan struct{}

	phase phase
	// initialized: it has asked for an invocation at least once.
	initialized bool
	asked       asked
	// lingers: it answered a while ago and has not asked for more.
	lingers bool
	// initError is what it posted to init/error; nil if it did not.
	initError *queue.Invocation
	// offer is where the next invocation goes; current is the one in work.
	offer   chan *invocation
	current *invocation
	// limit ends the process when it fires.
	limit *time.Timer
	// proc is nil unless the process runs; pid is set once it did.
	proc process
	pid  int

	reporting sync.Mutex // held while an event is reported
}

// outcome is what waits for an Invoke: an answer, or an error.
type outcome struct {
	queue.Invocation
	err error
}

// invocation is one call on its way through the pool, guarded by its mutex.
type invocation struct {
	id       string
	payload  []byte
	deadline time.Time     // what the function is told
	outcome  chan outcome  // takes one
	at       *instance     // who works on it; nil while it waits
	limit    time.Duration // what it was given
}

// end gives the outcome to who waits for it. The first counts.
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

// pauseAfter is how long no process is started after so many failures in a row, at
// least one: it doubles.
func pauseAfter(failures int) time.Duration {
	return min(firstPause<<min(failures-1, 10), longestPause)
}

// endPause lets processes be started again.
func (p *Pool) endPause() {
	if p.pause != nil {
		p.pause.Stop()
		p.pause = nil
	}
}

// refusals counts the connections that were refused and reports the first, the tenth,
// the hundredth, and so on.
type refusals struct {
	mu          sync.Mutex
	total, next int // next is at how many one is reported
}

func (c *refusals) add(instance int, conn net.Conn, client func(net.Conn) string, report func(Refused)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total++
	if report == nil || c.total < c.next {
		return
	}
	if name := client(conn); name != "" { // "": it is gone
		c.next = max(c.next, 1) * 10
		report(Refused{Instance: instance, Client: name, Total: c.total})
	}
}

// usable reports whether the process is alive and meant to stay.
func (inst *instance) usable() bool { return inst.asked == "" && inst.phase != dead }

// owes reports whether the process has to answer the invocation with that id.
func (inst *instance) owes(id string) bool {
	return inst.phase == busy && inst.current.id == id
}

// assign hands the process an invocation. It is idle.
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

// arm has the process killed after d, unless disarmed or armed anew.
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

// terminate asks the process to end, and kills it after the grace. One that is being
// ended already keeps its time.
func (inst *instance) terminate(why asked) {
	if inst.asked != "" {
		return
	}
	inst.signal(why, syscall.SIGTERM)
	inst.arm(inst.pool.set.Grace, why)
}

// kill ends the process and its group.
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

// forget takes a process out of those that wait for work.
func (p *Pool) forget(inst *instance) {
	p.idle = slices.DeleteFunc(p.idle, func(other *instance) bool { return other == inst })
}

// refuse gives every waiting invocation the same outcome.
func (p *Pool) refuse(o outcome) {
	for _, inv := range p.waiting {
		inv.end(o)
	}
	p.waiting = nil
}

// announceReady reports that the process asked for its first invocation, after Started
// and never after Exited.
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

// running returns the process while it is alive.
func (inst *instance) running() process {
	inst.pool.mu.Lock()
	defer inst.pool.mu.Unlock()
	return inst.proc
}
