package runtimeapi

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"tendril/internal/host/httplimit"
	"tendril/internal/supervisor"
)

// initTimeout is the time within which a process must request its first invocation. Lambda allows 10 s and then tries
// again.
const initTimeout = time.Minute

// initErrorPatience is the time within which a process must exit after it has posted an initialization error.
const initErrorPatience = time.Second

// launch starts a process in the background. The caller must hold the pool's mutex.
func (p *Pool) launch(number int) *instance {
	inst := &instance{
		pool: p, number: number, since: time.Now(),
		announced: make(chan struct{}), gone: make(chan struct{}),
	}
	p.running.Go(func() { p.cleanUp(inst, inst.run()) })
	return inst
}

func (inst *instance) run() supervisor.Exit {
	p := inst.pool
	listener, err := p.host.listen()
	if err != nil {
		return supervisor.Exit{Code: -1, Err: fmt.Errorf("listening for its requests: %w", err)}
	}
	address := listener.Addr().String()
	stopServing := inst.serve(listener, address)
	defer stopServing()

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

func (inst *instance) serve(listener net.Listener, address string) (stop func()) {
	server := &http.Server{
		Handler: newAPI(inst, address), ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: headerPatience,
		ConnContext: withCaller,
	}
	limited := httplimit.Listen(server, listener, httplimit.Limits{Connections: maxConnections,
		Anonymous: func(r *http.Request) bool { return !inst.sentBy(r) }})

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(limited) // always fails once the server is closed
	}()
	return func() {
		_ = server.Close()
		<-ended
	}
}

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

// detach must precede reaping, after which the PID may be reused.
func (inst *instance) detach() {
	inst.pool.mu.Lock()
	defer inst.pool.mu.Unlock()
	inst.proc = nil
}
