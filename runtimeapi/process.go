package runtimeapi

import (
	"net"
	"syscall"
)

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
	pid() int
	// exited is closed when the leader has ended. It is not reaped then, so that
	// its number cannot belong to a stranger.
	exited() <-chan struct{}
	// owns reports whether the other end of a connection belongs to the process or to
	// what it started.
	owns(conn net.Conn) bool
	// signal sends sig to the whole group; not after reap.
	signal(sig syscall.Signal)
	// reap kills what is left of the group and says how the leader ended.
	reap() Exit
}
