package acceptance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tendril/internal/cron/periodic"
	"tendril/internal/registry"
	"tendril/internal/sqsapi"
	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

// The lease is a fifth of the default, to shorten the faults. The timeout for calls allows for a busy disk.
const (
	testLease = 3 * time.Second
	testRenew = 600 * time.Millisecond
	testCall  = 1200 * time.Millisecond
	leaseName = "periodic:ticks"
	tickTask  = "tick"
)

// The leader is killed, paused for longer than the lease, or cut off from the network. On a standard queue of Amazon
// SQS, a run may have a second message with the same ID.
//
// TENDRIL_LEADER_KILLS sets the number of faults. By default, the test runs only at night, because it needs an idle
// machine.
func TestKilledLeadersEnqueueEachRunOnce(t *testing.T) {
	t.Parallel()
	faults := testpeer.Size(0, 100)
	if n, err := strconv.Atoi(os.Getenv("TENDRIL_LEADER_KILLS")); err == nil {
		faults = n
	}
	if faults == 0 {
		t.Skip("NOT RUN: set TENDRIL_LEADER_KILLS to the number of faults, for instance 12, or TENDRIL_NIGHTLY")
	}
	for _, name := range []string{"ticks", "ticks.fifo"} {
		t.Run("embedded "+name, func(t *testing.T) {
			t.Parallel()
			resume(t)
			killLeaders(t, servedPlace(t, name), faults)
		})
		t.Run("amazon "+name, func(t *testing.T) {
			t.Parallel()
			resume(t)
			killLeaders(t, amazonPlace(t, name), faults)
		})
	}
}

type place struct {
	endpoint, queue string
	role            string
	token           string
	// term is the maximum time until the next fault. On average, missed runs can be caught up within it.
	term  time.Duration
	lease func(context.Context) (queue.Lease, error)
	// since is as in [registry.Runs].
	since func(ctx context.Context, term int64, starts map[string]registry.Start) (map[string]queue.TaskTimes, error)
	runs  func(t *testing.T) []run
	twice bool
}

type run struct {
	id       string
	at, sent time.Time
}

func runOf(t *testing.T, m *queue.Message) run {
	t.Helper()
	scheduled := queue.ParseRun(m)
	id := periodic.IDOf(scheduled)
	if id == "" {
		t.Fatalf("message %s is not a run of a task", m.ID)
	}
	return run{id, scheduled.ScheduledAt, m.SentAt}
}

func servedPlace(t *testing.T, name string) *place {
	dir := t.TempDir()
	serve, started := start(t, "serve", "--data-dir", dir, "--listen", "127.0.0.1:0", "--console", "off")
	createQueue(t, client(started.Endpoint), name, fifoAttributes(name))
	token, err := os.ReadFile(filepath.Join(dir, "registry-token"))
	if err != nil {
		t.Fatal(err)
	}
	as := sqsapi.Identity{Token: strings.TrimSpace(string(token))}
	client := sqsapi.NewRegistryClient(started.Endpoint, scope, as, &http.Client{Transport: &http.Transport{}})
	lease := func(ctx context.Context) (queue.Lease, error) { return client.Read(ctx, leaseName) }
	return &place{endpoint: started.Endpoint, queue: name, role: "scheduler",
		token: as.Token, term: 1500 * time.Millisecond,
		lease: lease, since: client.Since, runs: func(t *testing.T) []run {
			serve.terminate(t)
			return storedRuns(t, dir, name)
		}}
}

func storedRuns(t *testing.T, dir, name string) (runs []run) {
	for _, m := range stored(t, dir, name) {
		runs = append(runs, runOf(t, &m.Message))
	}
	return runs
}

func fifoAttributes(name string) map[string]string {
	if queue.IsFIFO(name) {
		return map[string]string{"FifoQueue": "true"}
	}
	return map[string]string{}
}

func killLeaders(t *testing.T, p *place, faults int) {
	fleet := &fleet{t: t, place: p, nodes: map[string]*node{}, missedLog: filepath.Join(t.TempDir(), "missed")}
	for range 3 {
		fleet.add()
	}
	var takeovers []time.Duration
	fleet.leader("", nil)
	first := time.Now()
	for i := range faults {
		led, _ := fleet.leader("", nil)
		time.Sleep(rand.N(p.term))
		began := time.Now()
		healed := fleet.fault(led, i%3)
		if next, _ := fleet.leader(led, healed); next != led {
			takeovers = append(takeovers, time.Since(began))
		}
	}
	fleet.awaitOutstanding()
	last := time.Now()
	fleet.stop()
	checkTicks(t, p, faults, takeovers, first, last, readMissed(t, fleet.missedLog))
}

func readMissed(t *testing.T, path string) map[int64]int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	missed := map[int64]int{}
	for _, line := range strings.Fields(string(data)) {
		tick, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		missed[tick]++
	}
	return missed
}

// Each second from the first leader to the end must have one run, or be reported as missed.
func checkTicks(t *testing.T, p *place, faults int, takeovers []time.Duration, began, ended time.Time,
	reportedMissed map[int64]int,
) {
	t.Helper()
	count := map[int64]int{}
	ids := map[int64]string{}
	early := 0
	var first, last int64
	doubles, missed, foreign := 0, 0, 0
	runs := p.runs(t)
	for _, r := range runs {
		if r.sent.Before(r.at) {
			early++
		}
		tick := r.at.Unix()
		if count[tick]++; count[tick] > 1 {
			doubles++
			if r.id != ids[tick] {
				foreign++
			}
		}
		ids[tick] = r.id
		if first == 0 || tick < first {
			first = tick
		}
		last = max(last, tick)
	}
	for tick := first; tick <= last; tick++ {
		if count[tick] == 0 {
			missed++
		}
	}
	for tick, n := range reportedMissed {
		if count[tick] > 0 || n > 1 {
			t.Errorf("%v was reported as missed %d times, and is %d times in the queue",
				time.Unix(tick, 0).UTC(), n, count[tick])
		}
	}
	var latest time.Duration
	for _, r := range runs {
		latest = max(latest, r.sent.Sub(r.at))
	}
	slices.Sort(takeovers)
	if len(takeovers) == 0 {
		t.Fatal("nobody ever took over")
	}
	at := func(share float64) time.Duration {
		return takeovers[int(share*float64(len(takeovers)-1))].Round(10 * time.Millisecond)
	}
	report(t, "%d ticks over %d faults of the leader: doubles %d (with another id %d), missed %d, early %d; "+
		"%d takeovers, p50 %v, p99 %v, longest %v, with a lease of %v; latest run %v late",
		len(count), faults, doubles, foreign, missed, early, len(takeovers), at(0.5), at(0.99), at(1), testLease, latest)
	if foreign > 0 || missed > 0 || early > 0 || doubles > 0 && !p.twice {
		t.Errorf("doubles %d (with another id %d), missed %d, early %d: all should be 0", doubles, foreign, missed, early)
	}
	if late, short := first-began.Unix(), ended.Unix()-last; late > 3 || short > 3 {
		t.Errorf("the first tick came %d s after the first leader, the last %d s before the end", late, short)
	}
	if len(takeovers) < faults*9/10 {
		t.Errorf("only %d of %d faults had another instance take over", len(takeovers), faults)
	}
}

type fleet struct {
	*place
	t         *testing.T
	made      int
	nodes     map[string]*node
	missedLog string
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
	n.cmd.Env = append(os.Environ(), "ACCEPTANCE_ROLE="+f.role, "ACCEPTANCE_NAME="+n.name, "ACCEPTANCE_QUEUE="+f.queue,
		"ACCEPTANCE_MISSED="+f.missedLog, "ACCEPTANCE_REGISTRY_TOKEN="+f.token,
		"ACCEPTANCE_ENDPOINT=http://"+n.wire.address(), "AWS_ENDPOINT_URL=http://"+n.wire.address(),
		"AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_REGION=us-east-1", "AWS_EC2_METADATA_DISABLED=true")
	n.cmd.Stderr = os.Stderr
	if err := n.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { n.cmd.Process.Kill(); n.cmd.Wait() })
	f.nodes[n.name] = n
}

// leader waits until the lease is held by a live instance other than the one named not, or until that one has renewed
// the lease after the fault.
func (f *fleet) leader(not string, healed <-chan struct{}) (string, queue.Lease) {
	f.t.Helper()
	deadline := time.After(2 * time.Minute)
	var before *queue.Lease
	for {
		lease, err := f.lease(context.Background())
		if err == nil && !lease.Released && f.nodes[lease.Owner] != nil {
			if lease.Owner != not || before != nil && lease.Version != before.Version {
				return lease.Owner, lease
			}
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-healed:
			if err == nil {
				healed, before = nil, &lease
			}
		case <-deadline:
			f.t.Fatalf("within two minutes nobody but %q led: %+v, %v", not, lease, err)
		}
	}
}

// The channel is closed when the fault ends; it is nil for a permanent fault.
func (f *fleet) fault(name string, kind int) <-chan struct{} {
	n, healed := f.nodes[name], make(chan struct{})
	switch kind {
	case 0:
		n.cmd.Process.Kill()
		n.cmd.Wait()
		delete(f.nodes, name)
		f.add()
		return nil
	case 1:
		if err := n.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			f.t.Errorf("stopping %s: %v", name, err)
		}
		time.AfterFunc(testLease*2, func() { n.cmd.Process.Signal(syscall.SIGCONT); close(healed) })
	case 2:
		n.wire.cut(true)
		time.AfterFunc(testLease*2, func() { n.wire.cut(false); close(healed) })
	}
	return healed
}

func (f *fleet) awaitOutstanding() {
	f.t.Helper()
	const patience = 5 * time.Minute
	for began := time.Now(); ; time.Sleep(testRenew) {
		_, lease := f.leader("", nil)
		now := time.Now()
		upTo, err := f.since(f.t.Context(), lease.Term, map[string]registry.Start{tickTask: {At: now}})
		if behind := now.Sub(upTo[tickTask].UpTo); err == nil && behind < 2*time.Second {
			return
		} else if now.Sub(began) > patience {
			f.t.Fatalf("after %s without a fault runs are still %s behind, %v", patience, behind, err)
		}
	}
}

func (f *fleet) stop() {
	for _, n := range f.nodes {
		n.cmd.Process.Signal(syscall.SIGCONT)
		n.cmd.Process.Signal(syscall.SIGTERM)
		n.cmd.Wait()
	}
}
