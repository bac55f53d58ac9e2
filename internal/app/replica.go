package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"tendril/internal/bundle"
	"tendril/internal/delivery/deliver"
	"tendril/internal/supervisor"
)

type processes interface {
	Status() []supervisor.Status
	Restart(ctx context.Context, name string) error
	// Once ctx is done, Stop ends the grace period.
	Stop(ctx context.Context) error
}

type replica struct {
	balancer     *balancer
	port, number int
	version      version
	processes    processes
	output       lastLines

	// The balancer's mu guards these fields.
	admitted, ready, retired bool
	reason                   string
	inWork                   int
	idle                     chan struct{} // closed once retired without deliveries

	stopping atomic.Bool
	// wasReady means that the replica may have received messages, causedByMessage that a message probably caused its
	// last exit.
	wasReady, causedByMessage atomic.Bool

	earlyExits int // used only by its events

	mu          sync.Mutex
	failure     error
	messages    map[delivered]int
	exited      chan struct{} // closed and replaced on an unexpected exit
	connections map[*Route]*deliver.Client
}

func newReplica(b *balancer, v version, port, number int) *replica {
	return &replica{balancer: b, port: port, number: number, version: v,
		reason: "starting", idle: make(chan struct{}),
		messages: map[delivered]int{}, exited: make(chan struct{}), connections: map[*Route]*deliver.Client{}}
}

func (r *replica) address() string { return fmt.Sprintf("http://localhost:%d", r.port) }

func (r *replica) name() string {
	if r.number == 1 {
		return bundle.MainProcess
	}
	return fmt.Sprintf("%s-%d", bundle.MainProcess, r.number)
}

func (r *replica) notReadyReason(known string) string {
	for _, st := range r.processes.Status() {
		if !st.Ready && st.Reason != "" {
			return st.Reason
		}
	}
	return known
}

// giveUp records the first failure. The supervisor may still retry the process.
func (r *replica) giveUp(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure == nil {
		r.failure = err
	}
}

func (r *replica) err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure
}

func (r *replica) Stop(ctx context.Context) error {
	r.stopping.Store(true)
	err := r.processes.Stop(ctx)
	r.balancer.remove(r)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, connection := range r.connections {
		connection.Close()
	}
	clear(r.connections)
	return err
}

func (r *replica) connection(route *Route) (*deliver.Client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.connections[route] == nil {
		connection, err := route.open(r.address())
		if err != nil {
			return nil, err
		}
		r.connections[route] = connection
	}
	return r.connections[route], nil
}

func (r *replica) disconnect(route *Route) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if connection := r.connections[route]; connection != nil {
		connection.Close()
		delete(r.connections, route)
	}
}

func (r *replica) begin(m delivered) (exited <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages[m]++
	return r.exited
}

func (r *replica) end(m delivered) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages[m]--
	if r.messages[m] == 0 {
		delete(r.messages, m)
	}
}

const maxEarlyExits = 3

func (r *replica) countEarlyExit(how supervisor.Exit) {
	r.earlyExits++
	if r.earlyExits == maxEarlyExits {
		r.giveUp(fmt.Errorf("%s exited %d times before it was ready: %s", r.name(), r.earlyExits, how))
	}
}

// recordExit passes the messages in flight to crashed before it wakes their deliveries.
func (r *replica) recordExit(crashed func([]delivered)) {
	r.mu.Lock()
	messages := slices.SortedFunc(maps.Keys(r.messages), func(a, b delivered) int { return strings.Compare(a.id, b.id) })
	r.causedByMessage.Store(len(messages) > 0)
	exited := r.exited
	r.exited = make(chan struct{})
	r.mu.Unlock()
	crashed(messages)
	close(exited)
}

const (
	maxLastLines = 20
	maxLastLine  = 1000 // bytes
)

func (r *replica) withOutput(err error) error { return &processError{r.name(), &r.output, err} }

// processError is the failure of a replica or step.
type processError struct {
	name   string
	output *lastLines
	err    error
}

// Error omits the output, which may contain secrets: all console users can see the error.
func (p *processError) Error() string { return p.err.Error() }

func (p *processError) Unwrap() error { return p.err }

type lastLines struct {
	mu   sync.Mutex
	kept []string
}

func (l *lastLines) add(line string) {
	if len(line) > maxLastLine {
		line = strings.ToValidUTF8(line[:maxLastLine], "") + " ..."
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept = append(l.kept, strings.Clone(line)); len(l.kept) > maxLastLines {
		l.kept = slices.Delete(l.kept, 0, 1)
	}
}

func (l *lastLines) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.kept)
}
