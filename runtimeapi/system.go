package runtimeapi

import (
	"fmt"
	"net"
	"strconv"
	"syscall"

	"tendril/supervisor"
)

// system starts real processes.
type system struct {
	set    *Options
	runner *supervisor.Runner
}

func newSystem(set *Options) (*system, error) {
	p := supervisor.Process{Name: processName, Argv: set.Command, Dir: set.Dir, User: set.User, Limits: set.Limits}
	opts := supervisor.Options{MaxLine: set.MaxLine, LinesPerSecond: set.LinesPerSecond}
	opts.Events.LinesDropped = set.Events.LinesDropped
	runner, err := supervisor.NewRunner(&p, &opts)
	if err != nil {
		return nil, err
	}
	return &system{set, runner}, nil
}

func (s *system) listen() (net.Listener, error) { return net.Listen("tcp4", "127.0.0.1:0") }

func (s *system) client(conn net.Conn) string { return supervisor.Client(conn) }

func (s *system) close() { s.runner.Close() }

// processName is what package supervisor calls the processes, with their number behind.
const processName = "function"

func (s *system) start(c command) (process, error) {
	var output func(stream string, line []byte)
	if s.set.Output != nil {
		output = func(stream string, line []byte) { s.set.Output(c.instance, stream, line) }
	}
	run, err := s.runner.Start(processName+"-"+strconv.Itoa(c.instance), c.env, output)
	if err != nil {
		return nil, fmt.Errorf("starting the function: %w", err)
	}
	return run, nil
}

// host starts processes and gives each its port.
type host interface {
	// listen opens a port that the next process can reach.
	listen() (net.Listener, error)
	// client names the program at the other end of a connection; "" when it is gone.
	client(conn net.Conn) string
	// start runs the function's command as the leader of a new group.
	start(c command) (process, error)
	// close lets go what the host keeps; every process must be reaped.
	close()
}

// command is what differs between two processes of one pool.
type command struct {
	instance int
	env      []string
}

// process is a running process and the group that it leads.
type process interface {
	PID() int
	// exited is closed when the leader has ended. It is not reaped then, so that
	// its number cannot belong to another program.
	Exited() <-chan struct{}
	// owns reports whether the other end of a connection belongs to the process or to
	// what it started.
	Owns(conn net.Conn) bool
	// signal sends sig to the whole group; not after reap.
	Signal(sig syscall.Signal)
	// reap kills what is left of the group and says how the leader ended.
	Reap() Exit
}
