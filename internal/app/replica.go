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

// processes are running processes of the app: those of a replica, or the helpers of a version.
type processes interface {
	// Status describes each process.
	Status() []supervisor.Status
	// Restart ends one of them and starts it again.
	Restart(ctx context.Context, name string) error
	// Stop ends them; ctx bounds how long they may take.
	Stop(ctx context.Context) error
}

// replica is one running copy of the app that takes deliveries.
type replica struct {
	balancer     *balancer
	port, number int
	version      version
	processes    processes
	output       lastLines

	// The balancer's lock guards these.
	admitted, ready, retired bool
	reason                   string // why it is not ready
	inWork                   int
	idle                     chan struct{} // closed when retired and nothing is in work

	stopping atomic.Bool // it was asked to end
	// wasReady: messages may have been in work. overMessage: the last exit seems to be a
	// message's fault.
	wasReady, overMessage atomic.Bool

	mu          sync.Mutex
	exits       int            // how often it exited by itself
	failure     error          // why it was abandoned
	messages    map[string]int // deliveries in work, by message id
	exited      chan struct{}  // closed when the process exits by itself, then replaced
	connections map[*Route]*deliver.Client
}

// newReplica returns a replica without processes.
func newReplica(b *balancer, v version, port, number int) *replica {
	return &replica{balancer: b, port: port, number: number, version: v,
		reason: "starting", idle: make(chan struct{}),
		messages: map[string]int{}, exited: make(chan struct{}), connections: map[*Route]*deliver.Client{}}
}

// address is where it listens.
func (r *replica) address() string { return fmt.Sprintf("http://localhost:%d", r.port) }

// name is that of its process: web, and web-2 and so on for further replicas.
func (r *replica) name() string {
	if r.number == 1 {
		return bundle.MainProcess
	}
	return fmt.Sprintf("%s-%d", bundle.MainProcess, r.number)
}

// notReadyReason is what its last check met, or else what is known without one.
func (r *replica) notReadyReason(known string) string {
	for _, st := range r.processes.Status() {
		if !st.Ready && st.Reason != "" {
			return st.Reason
		}
	}
	return known
}

// giveUp records why it failed too often, the first time. It is started again now and
// then all the same.
func (r *replica) giveUp(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure == nil {
		r.failure = err
	}
}

// err returns why it was abandoned, nil when it was not.
func (r *replica) err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure
}

// Stop ends its processes and removes it.
func (r *replica) Stop(ctx context.Context) error {
	r.stopping.Store(true)
	err := r.processes.Stop(ctx)
	r.balancer.remove(r)
	r.mu.Lock()
	defer r.mu.Unlock()
	for route := range r.connections {
		r.disconnect(route)
	}
	return err
}

// connection returns the connections of a route to it.
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

// disconnect closes the connections of a route to it. It needs the lock.
func (r *replica) disconnect(route *Route) {
	if connection := r.connections[route]; connection != nil {
		connection.Close()
		delete(r.connections, route)
	}
}

// begin records that a message is in work, and returns what is closed when the process
// exits by itself.
func (r *replica) begin(id string) (exited <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages[id]++
	return r.exited
}

// end records that a message is no longer in work.
func (r *replica) end(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.messages[id]--; r.messages[id] == 0 {
		delete(r.messages, id)
	}
}

// maxExits is after how many exits a replica that was never ready counts as failed.
const maxExits = 3

// recordExit records that the process exited by itself, calls crashed with the messages that
// it had in work, and ends the waits of their deliveries.
func (r *replica) recordExit(how supervisor.Exit, crashed func(ids []string)) {
	if r.stopping.Load() {
		return
	}
	r.mu.Lock()
	if r.exits++; r.exits == maxExits && !r.wasReady.Load() && r.failure == nil {
		r.failure = fmt.Errorf("%s ended %d times before it was ready: %s", r.name(), r.exits, how)
	}
	ids := slices.Sorted(maps.Keys(r.messages))
	r.overMessage.Store(len(ids) > 0)
	exited := r.exited
	r.exited = make(chan struct{})
	r.mu.Unlock()
	crashed(ids)
	close(exited)
}

const (
	maxLastLines = 20   // of a process are kept
	maxLastLine  = 1000 // bytes of each
)

// failedStep returns err as the reason for which the replica kept a new version from serving.
func (r *replica) failedStep(err error) error { return &stepError{r.name(), r.output.lines, err} }

// stepError says which hook, build command or replica failed in a deployment.
type stepError struct {
	name   string
	output func() []string // the last lines that it wrote
	err    error
}

// Error names the step and how it ended, but not what it wrote: that may be secret, and
// the text is shown to everybody who reaches the console.
func (s *stepError) Error() string { return s.err.Error() }

// Unwrap returns how the step ended.
func (s *stepError) Unwrap() error { return s.err }

// lastLines keeps the last lines that a process wrote. The zero value is empty.
type lastLines struct {
	mu   sync.Mutex
	kept []string
}

// add takes one line.
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

// lines returns them, the oldest first.
func (l *lastLines) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.kept)
}
