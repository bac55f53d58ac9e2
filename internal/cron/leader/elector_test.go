package leader

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"tendril/internal/registry/registrytest"
	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testpeer.Contained(m)) }

type harness struct {
	t     *testing.T
	store *memoryStore
	nodes []*node
}

type node struct {
	*Elector
	stop func()
	kill func() // like kill -9, without releasing the lease

	mu       sync.Mutex
	reported []string
	wall     time.Duration
}

func (n *node) report(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reported = append(n.reported, fmt.Sprintf(format, args...))
}

func (n *node) events() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.reported, "\n")
}

type cuttable struct {
	*memoryStore
	mu  sync.Mutex
	cut bool
}

var errCut = errors.New("no route to the store")

func (c *cuttable) down() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut
}

func (c *cuttable) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
}

func (c *cuttable) Read(ctx context.Context, name string) (queue.Lease, error) {
	if c.down() {
		return queue.Lease{}, errCut
	}
	return c.memoryStore.Read(ctx, name)
}

func (c *cuttable) Swap(ctx context.Context, name string, old, next queue.Lease) (bool, queue.Lease, error) {
	if c.down() {
		return false, queue.Lease{}, errCut
	}
	return c.memoryStore.Swap(ctx, name, old, next)
}

func in(t *testing.T, test func(r *harness)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &harness{t: t, store: newMemory()}
		test(r)
		for _, n := range r.nodes {
			n.stop()
		}
	})
}

func (r *harness) start(change ...func(*Options)) *node {
	r.t.Helper()
	n := &node{}
	way := &cuttable{memoryStore: r.store}
	opts := Options{
		Name:  "jobs",
		Owner: fmt.Sprintf("node-%d", len(r.nodes)),
		Wall: func() time.Time {
			n.mu.Lock()
			defer n.mu.Unlock()
			return time.Now().Add(n.wall)
		},
		Events: &Events{
			Elected:   func(e Elected) { n.report("%s: leading, term %d", e.Name, e.Term) },
			Lost:      func(e Lost) { n.report("%s: no longer leading, term %d: %s", e.Name, e.Term, e.Reason) },
			Following: func(e Following) { n.report("%s: following %s, term %d", e.Name, e.Owner, e.Term) },
			Failed:    func(e Failure) { n.report("%s: failure %d: %v", e.Name, e.Consecutive, e.Err) },
		},
	}
	for _, c := range change {
		c(&opts)
	}
	e, err := New(way, opts)
	if err != nil {
		r.t.Fatal(err)
	}
	n.Elector = e
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := e.Run(ctx); err != nil {
			r.t.Error(err)
		}
	}()
	n.stop = func() { cancel(); <-done }
	n.kill = func() { way.set(true); n.stop() }
	r.nodes = append(r.nodes, n)
	synctest.Wait()
	return n
}

func (r *harness) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
	r.atMostOne()
}

func (r *harness) atMostOne() *node {
	r.t.Helper()
	var leader *node
	for _, n := range r.nodes {
		if _, ok := n.Term(); ok {
			if leader != nil {
				r.t.Fatalf("%s and %s both lead", leader.opts.Owner, n.opts.Owner)
			}
			leader = n
		}
	}
	return leader
}

func (r *harness) until(limit time.Duration, of ...*node) (*node, time.Duration) {
	r.t.Helper()
	begin := time.Now()
	for time.Since(begin) < limit {
		if l := r.atMostOne(); l != nil {
			for _, n := range of {
				if n == l {
					return l, time.Since(begin)
				}
			}
		}
		r.sleep(10 * time.Millisecond)
	}
	r.t.Fatalf("no leader after %s", limit)
	return nil, 0
}

func (n *node) wants(t *testing.T, term int64) {
	t.Helper()
	if got, ok := n.Term(); ok != (term > 0) || got != term {
		t.Errorf("%s: Term() = %d, %v, want %d\n%s", n.opts.Owner, got, ok, term, n.events())
	}
}

func TestFirstIsElectedAtOnceAndStays(t *testing.T) {
	in(t, func(r *harness) {
		a, b := r.start(), r.start()
		a.wants(t, 1)
		b.wants(t, 0)
		for range 600 {
			r.sleep(time.Second)
			a.wants(t, 1)
		}
		if got := r.store.Counts().Swaps; got < 100 || got > 125 {
			t.Errorf("%d writes in ten minutes, want one each 5 s", got)
		}
		if got := r.store.Counts().Reads; got < 120 || got > 180 {
			t.Errorf("%d reads in ten minutes, want one each 3.75 s to 5 s", got)
		}
		if got, want := a.events(), "jobs: leading, term 1"; got != want {
			t.Errorf("a was told\n%s\nwant\n%s", got, want)
		}
		if got, want := b.events(), "jobs: following node-0, term 1"; got != want {
			t.Errorf("b was told\n%s\nwant\n%s", got, want)
		}
	})
}

func TestTenStartTogether(t *testing.T) {
	in(t, func(r *harness) {
		r.store.SetFault(func(bool) storeFault { return storeFault{Takes: 100 * time.Millisecond} })
		for range 10 {
			r.start()
		}
		r.until(time.Second, r.nodes...)
		if got := r.store.Stored("jobs").Term; got != 1 {
			t.Errorf("term %d after ten started on an empty store, want 1", got)
		}
	})
}

func TestTakeoverAfterAKill(t *testing.T) {
	in(t, func(r *harness) {
		var longest time.Duration
		alive := r.start()
		for i := range 100 {
			dead := alive
			alive = r.start()
			r.sleep(20*time.Second + time.Duration(i)*53*time.Millisecond)
			dead.wants(t, int64(i+1))
			dead.kill()
			_, took := r.until(time.Minute, alive)
			longest = max(longest, took)
			alive.wants(t, int64(i+2))
		}
		if limit := 20 * time.Second; longest > limit {
			t.Errorf("longest takeover of 100: %s, want at most %s (lease + one poll)", longest, limit)
		}
		t.Logf("longest takeover of 100 kills: %s", longest)
	})
}

func TestStopReleasesTheLease(t *testing.T) {
	in(t, func(r *harness) {
		a, b := r.start(), r.start()
		r.sleep(7 * time.Second)
		changed := a.Changed()
		a.stop()
		a.wants(t, 0)
		select {
		case <-changed:
		default:
			t.Error("the stop did not close the channel of Changed")
		}
		if l := r.store.Stored("jobs"); !l.Released || l.Term != 1 {
			t.Errorf("stored after a stop: %+v", l)
		}
		if _, took := r.until(time.Minute, b); took > 5*time.Second {
			t.Errorf("took over %s after a release, want at most one poll", took)
		}
		b.wants(t, 2)
		if err := a.Run(context.Background()); err == nil {
			t.Error("a second Run was not refused")
		}
		if !strings.HasSuffix(a.events(), "no longer leading, term 1: stopped") {
			t.Errorf("a was told\n%s", a.events())
		}
	})
}

func TestStopAfterALostResponse(t *testing.T) {
	in(t, func(r *harness) {
		r.store.SetFault(func(swap bool) storeFault {
			if swap {
				return storeFault{Err: errors.New("reply lost")}
			}
			return storeFault{}
		})
		a := r.start()
		r.store.SetFault(nil)
		a.stop()
		if l := r.store.Stored("jobs"); !l.Released {
			t.Errorf("stored after the stop: %+v", l)
		}
	})
}

func TestLeaderCutFromTheStore(t *testing.T) {
	in(t, func(r *harness) {
		a, b := r.start(), r.start()
		r.sleep(7 * time.Second)
		a.lease.store.(*cuttable).set(true)
		r.sleep(9*time.Second + 990*time.Millisecond)
		a.wants(t, 1)
		r.sleep(20 * time.Millisecond) // just after 5 s + 15 s - 3 s
		a.wants(t, 0)
		if n := strings.Count(a.events(), "failure"); n < 8 {
			t.Errorf("%d tries to renew:\n%s", n, a.events())
		}
		if s := a.Status(); !errors.Is(s.Err, errCut) || s.Failing.Round(time.Second) != 7*time.Second {
			t.Errorf("status of the one cut off: %+v", s)
		}
		if !strings.Contains(a.events(), "term 1: the lease was not renewed in time") {
			t.Errorf("a was told\n%s", a.events())
		}
		r.until(10*time.Second, b)
		b.wants(t, 2)
		a.lease.store.(*cuttable).set(false)
		r.sleep(10 * time.Second)
		a.wants(t, 0)
		if s := a.Status(); s.Err != nil || s.Failing != 0 || s.Leader != "node-1" || s.LeaderTerm != 2 {
			t.Errorf("status after the cut: %+v", s)
		}
	})
}

func TestNoInstanceLeadsWhileTheStoreFails(t *testing.T) {
	in(t, func(r *harness) {
		a, b := r.start(), r.start()
		r.sleep(time.Second)
		calls := 0
		r.store.SetFault(func(bool) storeFault {
			calls++
			return storeFault{Drop: true, Err: errors.New("throttled")}
		})
		r.sleep(12 * time.Second)
		for range 600 {
			r.sleep(time.Second)
			a.wants(t, 0)
			b.wants(t, 0)
		}
		if calls > 700 {
			t.Errorf("%d calls in ten minutes of two instances: the back-off does not hold", calls)
		}
		r.store.SetFault(nil)
		if _, took := r.until(time.Minute, a, b); took > 5*time.Second {
			t.Errorf("back after %s, want at most the longest back-off of 5 s", took)
		}
	})
}

func TestSlowStore(t *testing.T) {
	in(t, func(r *harness) {
		r.store.SetFault(func(bool) storeFault { return storeFault{Takes: 1900 * time.Millisecond} })
		a, b := r.start(), r.start()
		r.until(10*time.Second, a, b)
		leader := r.atMostOne()
		for range 100 {
			r.sleep(time.Second)
			leader.wants(t, 1)
		}
		beyondTheLimit := storeFault{Takes: 2100 * time.Millisecond}
		r.store.SetFault(func(bool) storeFault { return beyondTheLimit })
		r.sleep(13 * time.Second)
		for range 100 {
			r.sleep(time.Second)
			a.wants(t, 0)
			b.wants(t, 0)
		}
	})
}

// Every second write is applied, but its response is lost.
func TestLostReplies(t *testing.T) {
	in(t, func(r *harness) {
		n := 0
		r.store.SetFault(func(swap bool) storeFault {
			if n++; swap && n%2 == 0 {
				return storeFault{Err: errors.New("connection reset")}
			}
			return storeFault{}
		})
		a, b := r.start(), r.start()
		r.until(5*time.Second, a, b)
		leader := r.atMostOne()
		for range 600 {
			r.sleep(time.Second)
			leader.wants(t, 1)
		}
	})
}

// Any try may have been applied.
func TestTrustCountsFromTheFirstTry(t *testing.T) {
	in(t, func(r *harness) {
		first := true
		r.store.SetFault(func(swap bool) storeFault {
			if swap && first {
				first = false
				return storeFault{Err: errors.New("connection reset")}
			}
			return storeFault{Takes: 900 * time.Millisecond}
		})
		a := r.start()
		begin := time.Now()
		r.until(5*time.Second, a)
		r.store.SetFault(func(bool) storeFault { return storeFault{Drop: true, Err: errCut} })
		for r.atMostOne() == a && time.Since(begin) < time.Minute {
			r.sleep(10 * time.Millisecond)
		}
		if got := time.Since(begin); got > 12*time.Second+900*time.Millisecond+20*time.Millisecond {
			t.Errorf("trusted until %s after the start", got)
		}
	})
}

func TestSuspendedMachine(t *testing.T) {
	in(t, func(r *harness) {
		a, b := r.start(), r.start()
		r.sleep(6 * time.Second)
		a.mu.Lock()
		a.wall = 30 * time.Second // the monotonic clock stopped during a suspension
		a.mu.Unlock()
		if _, ok := a.Term(); ok {
			t.Fatal("leading right after a suspend")
		}
		r.sleep(time.Millisecond)
		if l := r.atMostOne(); l == a {
			a.wants(t, 2)
		}
		if !strings.Contains(a.events(), "the machine was suspended or its clock was set (30s apart)") {
			t.Errorf("a was told\n%s", a.events())
		}
		b.wants(t, 0)
	})
}

func TestSuspendedMachineLeadsAgainWhenItIsAlone(t *testing.T) {
	in(t, func(r *harness) {
		a := r.start()
		r.sleep(6 * time.Second)
		a.mu.Lock()
		a.wall = 30 * time.Second
		a.mu.Unlock()
		r.sleep(time.Second)
		a.wants(t, 2)
	})
}

func TestSmallClockSteps(t *testing.T) {
	in(t, func(r *harness) {
		a := r.start()
		for i := range 60 {
			a.mu.Lock()
			a.wall = time.Duration(i%2) * 900 * time.Millisecond
			a.mu.Unlock()
			r.sleep(time.Second)
			a.wants(t, 1)
		}
	})
}

func TestBlockedListener(t *testing.T) {
	in(t, func(r *harness) {
		var a *node
		blocked := make(chan bool, 1)
		a = r.start(func(o *Options) {
			o.Events.Lost = func(Lost) {
				_, ok := a.Term()
				select {
				case blocked <- ok:
					time.Sleep(30 * time.Second)
				default:
				}
			}
		})
		r.sleep(time.Second)
		a.lease.store.(*cuttable).set(true)
		r.sleep(11500 * time.Millisecond)
		a.wants(t, 0)
		a.lease.store.(*cuttable).set(false)
		r.sleep(5 * time.Second) // the longest retry delay
		a.wants(t, 2)
		r.sleep(40 * time.Second)
		select {
		case open := <-blocked:
			if open {
				t.Error("the gate was open when Lost was called")
			}
		default:
			t.Error("Lost was not called")
		}
		blocked <- false
	})
}

func TestRemovedLeaseEndsTheTerm(t *testing.T) {
	in(t, func(r *harness) {
		a := r.start()
		r.sleep(time.Second)
		r.store.Remove("jobs")
		r.sleep(5 * time.Second)
		a.wants(t, 2) // fencing requires a higher term
		if !strings.Contains(a.events(), "the lease was removed from the store") {
			t.Errorf("a was told\n%s", a.events())
		}
	})
}

func TestContradictingStoreIsNotAskedInALoop(t *testing.T) {
	in(t, func(r *harness) {
		asked := 0
		r.store.SetFault(func(bool) storeFault { asked++; return storeFault{Drop: true} })
		a := r.start()
		r.sleep(time.Minute)
		a.wants(t, 0)
		if asked > 60 {
			t.Errorf("asked %d times in a minute", asked)
		}
	})
}

func TestStatus(t *testing.T) {
	in(t, func(r *harness) {
		a := r.start(func(o *Options) { o.Data = "http://127.0.0.1:9325" })
		b := r.start()
		r.sleep(6 * time.Second)
		s := a.Status()
		if s.Term != 1 || s.Leader != "node-0" || s.Age != time.Second {
			t.Errorf("status of the leader: %+v", s)
		}
		if left := time.Until(a.gate.trustedUntil); left != 11*time.Second {
			t.Errorf("the leader trusts its lease for another %s", left)
		}
		s = b.Status()
		if s.Term != 0 || s.Leader != "node-0" || s.LeaderTerm != 1 {
			t.Errorf("status of the follower: %+v", s)
		}
		if seen := b.lease.core; seen.seen.Data != "http://127.0.0.1:9325" || time.Since(seen.readAt) > 5*time.Second {
			t.Errorf("the follower read %+v at %s", seen.seen, seen.readAt)
		}
		e, err := New(r.store, Options{Name: "idle"})
		if err != nil {
			t.Fatal(err)
		}
		if s := e.Status(); s != (Status{}) || e.opts.Owner == "" {
			t.Errorf("status before Run: %+v", s)
		}
		if _, ok := e.Term(); ok {
			t.Error("leading before Run")
		}
	})
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		opts Options
		says string
	}{
		{Options{}, "needs a name"},
		{Options{Name: "x", Lease: 5 * time.Second, Renew: 4 * time.Second, CallTimeout: 2 * time.Second,
			Margin: time.Second}, "use a lease of at least 7s"},
		{Options{Name: "x", Lease: 7 * time.Second, Renew: 4 * time.Second, CallTimeout: 2 * time.Second,
			Margin: time.Second}, ""},
		{Options{Name: "x"}, ""},
		{Options{Name: "x", Lease: 900 * time.Millisecond}, ""},
	} {
		_, err := New(newMemory(), test.opts)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("New(%+v): %v, want %q", test.opts, err, test.says)
		}
	}
	if _, err := New(nil, Options{Name: "x"}); err == nil {
		t.Error("New without a store returned no error")
	}
	o, _ := Options{Name: "x"}.complete()
	if host, err := os.Hostname(); err == nil && o.Owner != fmt.Sprintf("%s (%d)", host, os.Getpid()) {
		t.Errorf("the owner is %q, want host name %s and process id", o.Owner, host)
	}
	if o.Lease != 15*time.Second || o.Renew != 5*time.Second || o.CallTimeout != 2*time.Second ||
		o.Margin != 3*time.Second {
		t.Errorf("defaults are %s %s %s %s", o.Lease, o.Renew, o.CallTimeout, o.Margin)
	}
}

func TestMemoryIsALeaseStore(t *testing.T) {
	t.Parallel()
	registrytest.Leases(t, func(testing.TB) registrytest.LeaseStore { return newMemory() })
}
