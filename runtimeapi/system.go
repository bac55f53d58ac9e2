package runtimeapi

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"syscall"
	"time"

	"tendril/procgroup"
)

// outputPatience is how long the output of a process that ended may be kept
// open by what has left its group.
const outputPatience = 500 * time.Millisecond

// system starts real processes.
type system struct {
	set    *Options
	thread procgroup.Thread
	guard  procgroup.Guard
}

func newSystem(set *Options) *system { return &system{set: set} }

func (s *system) listen() (net.Listener, error) { return net.Listen("tcp4", "127.0.0.1:0") }

func (s *system) close() {
	s.thread.Close()
	s.guard.Close()
}

// start finds the program anew: it may have been built again since.
func (s *system) start(c command) (process, error) {
	path, err := findProgram(s.set.Command[0], s.set.Dir, lookup(c.env, "PATH"))
	if err != nil {
		return nil, err
	}
	p := &osProcess{guard: &s.guard, ended: make(chan struct{})}
	p.Cmd = &exec.Cmd{
		Path: path, Args: s.set.Command, Dir: s.set.Dir, Env: c.env,
		SysProcAttr: procgroup.Attributes(), WaitDelay: outputPatience,
	}
	if s.set.Output != nil {
		stdout := &lineWriter{instance: c.instance, stream: "stdout", max: s.set.MaxLine, sink: s.set.Output}
		stderr := &lineWriter{instance: c.instance, stream: "stderr", max: s.set.MaxLine, sink: s.set.Output}
		p.Cmd.Stdout, p.Cmd.Stderr, p.streams = stdout, stderr, []io.Closer{stdout, stderr}
	}
	s.guard.Watch() // before there is anything to guard
	s.thread.Do(func() { err = p.Cmd.Start() })
	if err != nil {
		return nil, fmt.Errorf("running %s: %w", path, err)
	}
	s.guard.Add(p.PID(), "")
	go func() {
		defer close(p.ended)
		p.Await()
	}()
	return p, nil
}

// osProcess is a real process.
type osProcess struct {
	procgroup.Leader
	guard   *procgroup.Guard
	ended   chan struct{}
	streams []io.Closer
}

func (p *osProcess) pid() int                { return p.PID() }
func (p *osProcess) exited() <-chan struct{} { return p.ended }

// signal reaches all that the process started and that did not leave its group.
// An error means that nothing of it is left.
func (p *osProcess) signal(sig syscall.Signal) { _ = syscall.Kill(-p.pid(), sig) }

func (p *osProcess) reap() Exit {
	p.signal(syscall.SIGKILL)
	p.guard.Remove(p.PID())
	err := p.Reap()
	for _, stream := range p.streams {
		_ = stream.Close()
	}
	return exitOf(p.Cmd.ProcessState, err)
}
