package runtimeapi

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"sync"
	"syscall"
	"time"

	"tendril/httplimit"
	"tendril/queue"
)

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
	byCaller    asked = "invocation given up"
	byTimeLimit asked = "time limit"
	byInit      asked = "initialization took too long"
	byInitError asked = "initialization failed"
	byAbsence   asked = "did not ask for work again"
)

// initErrorPatience is how long a process that reported that it cannot
// initialize may take to end by itself.
const initErrorPatience = time.Second

// instance is one process and its Runtime API. All but the constants is guarded
// by the pool's mutex.
type instance struct {
	pool   *Pool
	number int
	since  time.Time
	// announced is closed when Started was reported, gone when the process is dead.
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

// launch makes the instance with that number and starts its process in a
// goroutine. The pool's mutex is held.
func (p *Pool) launch(number int) *instance {
	inst := &instance{
		pool: p, number: number, since: time.Now(),
		announced: make(chan struct{}), gone: make(chan struct{}),
	}
	p.running.Go(func() { p.cleanUp(inst, inst.live()) })
	return inst
}

// usable reports whether the process is alive and meant to stay.
func (inst *instance) usable() bool { return inst.asked == "" && inst.phase != dead }

// owes reports whether the process has to answer the invocation with that id.
func (inst *instance) owes(id string) bool {
	return inst.phase == busy && inst.current.id == id
}

// assign hands the process an invocation. It is idle.
func (inst *instance) assign(inv *invocation) {
	inst.phase, inst.current, inv.at = busy, inv, inst
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

// live runs the process and returns when it has ended.
func (inst *instance) live() Exit {
	p := inst.pool
	listener, err := p.host.listen()
	if err != nil {
		return Exit{Code: -1, Err: fmt.Errorf("listening for its requests: %w", err)}
	}
	address := listener.Addr().String()
	server := &http.Server{
		Handler: newAPI(inst, address), ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: headerPatience,
		ConnContext: withCaller,
	}
	limited := httplimit.Listen(server, listener, maxConnections, func() {})
	serving := make(chan struct{})
	go func() {
		defer close(serving)
		_ = server.Serve(limited) // always an error: the server was closed
	}()
	defer func() {
		_ = server.Close() // nobody is left to talk to
		<-serving
	}()
	proc, err := p.host.start(command{instance: inst.number, env: environ(&p.set, address, inst.since)})
	if err != nil {
		return Exit{Code: -1, Err: err}
	}
	inst.attach(proc)
	<-proc.Exited()
	inst.detach()
	exit := proc.Reap()
	exit.Ran = time.Since(inst.since)
	return exit
}

// attach makes the process known, reports it, and catches up on what was asked
// of it before.
func (inst *instance) attach(proc process) {
	inst.pid = proc.PID()
	if reported := inst.pool.set.Events.Started; reported != nil {
		reported(Started{Instance: inst.number, PID: inst.pid})
	}
	defer close(inst.announced)
	inst.pool.mu.Lock()
	defer inst.pool.mu.Unlock()
	inst.proc = proc
	switch {
	case inst.asked != "":
		inst.kill(inst.asked)
	case inst.phase == starting:
		inst.arm(inst.pool.set.InitTimeout, byInit)
	}
}

// detach must come before the process is reaped: from then on its number may
// belong to somebody else.
func (inst *instance) detach() {
	inst.pool.mu.Lock()
	defer inst.pool.mu.Unlock()
	inst.proc = nil
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
