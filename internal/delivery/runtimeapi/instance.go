package runtimeapi

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"time"

	"tendril/internal/host/httplimit"
	"tendril/internal/supervisor"
)

// initTimeout is how long a process may take from its start until it asks for its first
// invocation. (Lambda gives 10 s, then starts over within the time limit of the first
// invocation.)
const initTimeout = time.Minute

// initErrorPatience is how long a process that reported that it cannot
// initialize may take to end by itself.
const initErrorPatience = time.Second

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

// live runs the process and returns when it has ended.
func (inst *instance) live() supervisor.Exit {
	p := inst.pool
	listener, err := p.host.listen()
	if err != nil {
		return supervisor.Exit{Code: -1, Err: fmt.Errorf("listening for its requests: %w", err)}
	}

	address := listener.Addr().String()
	server := &http.Server{
		Handler: newAPI(inst, address), ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: headerPatience,
		ConnContext: withCaller,
	}

	limited := httplimit.Listen(server, listener, httplimit.Limits{Connections: maxConnections,
		Anonymous: func(r *http.Request) bool { return !inst.started(r) }})

	serving := make(chan struct{})
	go func() {
		defer close(serving)
		_ = server.Serve(limited) // always an error: the server was closed
	}()
	defer func() {
		_ = server.Close() // nobody is left to talk to
		<-serving
	}()

	proc, err := p.host.start(inst.number, environ(&p.set, address, inst.since))
	if err != nil {
		return supervisor.Exit{Code: -1, Err: err}
	}

	inst.attach(proc)
	<-proc.Exited()
	inst.detach()
	exit := proc.Reap()
	exit.Ran = time.Since(inst.since)
	return exit
}

// attach makes the process known, and catches up on what was asked
// of it before.
func (inst *instance) attach(proc process) {
	defer close(inst.announced)
	inst.pool.mu.Lock()
	defer inst.pool.mu.Unlock()
	inst.proc, inst.pid = proc, proc.PID()
	switch {
	case inst.asked != "":
		inst.kill(inst.asked)
	case inst.phase == starting:
		inst.arm(initTimeout, byInit)
	}
}

// detach must come before the process is reaped: from then on its number may
// belong to somebody else.
func (inst *instance) detach() {
	inst.pool.mu.Lock()
	defer inst.pool.mu.Unlock()
	inst.proc = nil
}
