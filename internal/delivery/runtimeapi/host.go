package runtimeapi

import (
	"fmt"
	"net"
	"strconv"
	"syscall"

	"tendril/internal/supervisor"
)

type host struct {
	listen func() (net.Listener, error)
	// client describes the program at the other end of a connection, or returns "" if it has exited.
	client func(net.Conn) string
	// start makes the command the leader of a new process group.
	start func(instance int, env []string) (process, error)
	// close must follow the reaping of all processes.
	close func()
}

type process interface {
	PID() int
	Exited() <-chan struct{}
	Owns(conn net.Conn) bool
	Signal(sig syscall.Signal)
	Reap() supervisor.Exit
}

const processName = "function"

func newHost(set *Options) (host, error) {
	p := supervisor.Process{Name: processName, Argv: set.Command, Dir: set.Dir, Env: set.Env, User: set.User,
		Limits: set.Limits}
	if err := p.Validate(); err != nil {
		return host{}, err
	}

	runner := supervisor.NewRunner(&supervisor.Options{LinesPerSecond: set.LinesPerSecond,
		Events: supervisor.Events{LinesDropped: set.Events.LinesDropped}})

	return host{
		listen: func() (net.Listener, error) { return net.Listen("tcp4", "127.0.0.1:0") },
		client: supervisor.Client,
		start: func(instance int, env []string) (process, error) {
			var output func(stream string, line []byte)
			if set.Output != nil {
				output = func(stream string, line []byte) { set.Output(instance, stream, line) }
			}
			one := p
			one.Name, one.Env = processName+"-"+strconv.Itoa(instance), env
			run, err := runner.Start(&one, output)
			if err != nil {
				return nil, fmt.Errorf("starting the function: %w", err)
			}
			return run, nil
		},
		close: runner.Close,
	}, nil
}
