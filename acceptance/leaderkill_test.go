package acceptance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"tendril/broker"
	"tendril/leader"
	"tendril/periodic"
	"tendril/sqsapi"
)

// The lease of this test is a fifth of the default, so that a fault costs
// seconds; a call may take as long as a busy disk needs.
const (
	testLease = 3 * time.Second
	testRenew = 600 * time.Millisecond
	testCall  = 1200 * time.Millisecond
	leaseName = "periodic:ticks"
)

// TestKilledLeadersFireEachTickOnce runs three instances that share a `tendril
// serve`, with a task due every second, and does bad things to whichever leads:
// kill -9, a standstill longer than the lease (SIGSTOP, CONT), and being cut off
// from the registry. Every second is enqueued exactly once, none early.
// TENDRIL_LEADER_KILLS sets how many faults there are; without it the test is
// left out, since it needs a machine that is not starved by other jobs.
func TestKilledLeadersFireEachTickOnce(t *testing.T) {
	t.Parallel()
	faults, err := strconv.Atoi(os.Getenv("TENDRIL_LEADER_KILLS"))
	if err != nil {
		t.Skip("NOT RUN: set TENDRIL_LEADER_KILLS to the number of faults, for instance 12")
	}
	for _, queueName := range []string{"ticks", "ticks.fifo"} {
		t.Run(queueName, func(t *testing.T) {
			t.Parallel()
			killLeaders(t, queueName, faults)
		})
	}
}

func killLeaders(t *testing.T, queueName string, faults int) {
	dir := t.TempDir()
	serve, started := start(t, "serve", "--data-dir", dir, "--listen", "127.0.0.1:0", "--console", "off")
	c := client(started.Endpoint)
	attrs := map[string]string{}
	if periodic.FIFO(queueName) {
		attrs["FifoQueue"] = "true"
	}
	createQueue(t, c, queueName, attrs)
	fleet := &fleet{t: t, serve: serve, endpoint: started.Endpoint, queue: queueName, nodes: map[string]*node{}}
	for range 3 {
		fleet.add()
	}
	registry := sqsapi.NewRegistryClient(started.Endpoint, &http.Client{Transport: &http.Transport{}})
	takeovers := make([]time.Duration, 0, faults)
	for i := range faults {
		led := fleet.leader(registry, "")
		time.Sleep(rand.N(1500 * time.Millisecond)) // a random moment of its term
		began := time.Now()
		fleet.fault(led, i%3)
		fleet.leader(registry, led)
		takeovers = append(takeovers, time.Since(began))
	}
	time.Sleep(3 * time.Second)
	fleet.stop()
	serve.terminate(t)
	checkTicks(t, dir, queueName, faults, takeovers)
}

// checkTicks holds what lies in the queue against the seconds that passed.
func checkTicks(t *testing.T, dir, queueName string, faults int, takeovers []time.Duration) {
	t.Helper()
	store, err := broker.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	count, early := map[int64]int{}, 0
	var first, last int64
	for after := ""; ; {
		page, next, err := store.Browse(t.Context(), queueName, broker.BrowseRequest{After: after, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page {
			_, at, ok := periodic.RunOf(&m.Message)
			if !ok {
				t.Fatalf("message %s is no run of a task", m.ID)
			}
			if m.SentAt.Before(at) {
				early++
			}
			tick := at.Unix()
			count[tick]++
			if first == 0 || tick < first {
				first = tick
			}
			last = max(last, tick)
		}
		if after = next; after == "" {
			break
		}
	}
	doubles, missed := 0, 0
	for tick := first; tick <= last; tick++ {
		doubles += max(count[tick]-1, 0)
		if count[tick] == 0 {
			missed++
		}
	}
	longest := time.Duration(0)
	for _, d := range takeovers {
		longest = max(longest, d)
	}
	t.Logf("%d ticks over %d faults of the leader: doubles %d, missed %d, early %d; longest takeover %v with a lease of %v",
		len(count), faults, doubles, missed, early, longest.Round(10*time.Millisecond), testLease)
	if doubles > 0 || missed > 0 || early > 0 {
		t.Errorf("doubles %d, missed %d, early %d: all should be 0", doubles, missed, early)
	}
	if int(last-first) < 2*faults {
		t.Errorf("only %d seconds were seen: too few for %d faults", last-first, faults)
	}
}

// fleet is a number of instances, each behind a wire of its own that can be cut.
type fleet struct {
	t               *testing.T
	serve           *process
	endpoint, queue string
	made            int
	nodes           map[string]*node
}

type node struct {
	name string
	cmd  *exec.Cmd
	wire *wire
}

func (f *fleet) add() {
	f.t.Helper()
	f.made++
	n := &node{name: fmt.Sprintf("node-%d", f.made), wire: newWire(f.t, f.endpoint[len("http://"):])}
	n.cmd = exec.Command(os.Args[0])
	n.cmd.Env = append(os.Environ(), "ACCEPTANCE_ROLE=scheduler", "ACCEPTANCE_NAME="+n.name, "ACCEPTANCE_QUEUE="+f.queue, "ACCEPTANCE_ENDPOINT=http://"+n.wire.address())
	n.cmd.Stderr = os.Stderr
	if err := n.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { n.cmd.Process.Kill(); n.cmd.Wait() })
	f.nodes[n.name] = n
}

// leader waits until a living instance other than not holds the lease, and
// returns its name.
func (f *fleet) leader(registry *sqsapi.RegistryClient, not string) string {
	f.t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		lease, err := registry.Read(context.Background(), leaseName)
		if err == nil && !lease.Released && lease.Owner != not && f.nodes[lease.Owner] != nil {
			return lease.Owner
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-deadline:
			f.t.Fatalf("within two minutes nobody but %q led: %+v, %v\n%s", not, lease, err, f.serve.stderr)
		}
	}
}

// fault does one of three bad things to an instance.
func (f *fleet) fault(name string, kind int) {
	n := f.nodes[name]
	switch kind {
	case 0:
		n.cmd.Process.Kill()
		n.cmd.Wait()
		delete(f.nodes, name)
		f.add()
	case 1:
		n.cmd.Process.Signal(syscall.SIGSTOP)
		time.AfterFunc(testLease*2, func() { n.cmd.Process.Signal(syscall.SIGCONT) })
	case 2:
		n.wire.cut(true)
		time.AfterFunc(testLease*2, func() { n.wire.cut(false) })
	}
}

func (f *fleet) stop() {
	for _, n := range f.nodes {
		n.cmd.Process.Signal(syscall.SIGCONT)
		n.cmd.Process.Signal(syscall.SIGTERM)
		n.cmd.Wait()
	}
}

// wire passes TCP through to an address until it is cut.
type wire struct {
	l    net.Listener
	to   string
	mu   sync.Mutex
	off  bool
	open map[net.Conn]bool
}

func newWire(t *testing.T, to string) *wire {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{l: l, to: to, open: map[net.Conn]bool{}}
	go w.serve()
	t.Cleanup(func() { l.Close(); w.cut(true) })
	return w
}

func (w *wire) address() string { return w.l.Addr().String() }

func (w *wire) serve() {
	for {
		conn, err := w.l.Accept()
		if err != nil {
			return
		}
		go w.pass(conn)
	}
}

func (w *wire) pass(conn net.Conn) {
	defer conn.Close()
	out, err := net.Dial("tcp", w.to)
	if err != nil || !w.keep(conn, out) {
		return
	}
	defer out.Close()
	go io.Copy(out, conn)
	io.Copy(conn, out)
}

// keep remembers both ends, so that they can be cut; false when the wire is.
func (w *wire) keep(ends ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range ends {
		if w.off {
			c.Close()
		}
		w.open[c] = true
	}
	return !w.off
}

func (w *wire) cut(off bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.off = off
	if off {
		for c := range w.open {
			c.Close()
			delete(w.open, c)
		}
	}
}

// schedule is the other process of this test: an instance that takes part in
// the election and enqueues the ticks when it leads.
func schedule() error {
	endpoint, name, queueName := os.Getenv("ACCEPTANCE_ENDPOINT"), os.Getenv("ACCEPTANCE_NAME"), os.Getenv("ACCEPTANCE_QUEUE")
	registry := sqsapi.NewRegistryClient(endpoint, nil)
	elector, err := leader.New(registry, leader.Options{Name: leaseName, Owner: name, Lease: testLease, Renew: testRenew, CallTimeout: testCall})
	if err != nil {
		return err
	}
	tasks := &periodic.File{Tasks: []periodic.Task{{Name: "tick", URL: "/tick", Schedule: periodic.Every(time.Second), Missed: periodic.MissedAll}}}
	scheduler := periodic.New(tasks, elector, shared{registry}, periodic.Options{Queue: queueName, CallTimeout: testCall})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	done := make(chan error, 2)
	go func() { done <- elector.Run(ctx) }()
	go func() { done <- scheduler.Run(ctx) }()
	return errors.Join(<-done, <-done)
}

// shared is the registry of a `tendril serve`.
type shared struct{ *sqsapi.RegistryClient }

func (s shared) Since(ctx context.Context, term int64, from map[string]time.Time) (map[string]time.Time, error) {
	return s.RegistryClient.Since(ctx, leaseName, term, from)
}

func (s shared) Enqueue(ctx context.Context, term int64, f periodic.Fire) (periodic.Enqueued, error) {
	sent, already, err := s.Fire(ctx, s.request(term, f), f.Message)
	return periodic.Enqueued{Sent: sent, Already: already}, err
}

func (s shared) Skip(ctx context.Context, term int64, f periodic.Fire) error {
	return s.RegistryClient.Skip(ctx, s.request(term, f))
}

func (s shared) request(term int64, f periodic.Fire) broker.FireRequest {
	return broker.FireRequest{Queue: f.Queue, ID: f.ID, Task: f.Task, At: f.ScheduledAt, Lease: leaseName, Term: term}
}
