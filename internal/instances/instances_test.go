package instances

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tendril/internal/autoscale"
	"tendril/internal/cron/leader"
	"tendril/internal/observe/health"
	"tendril/internal/registry"
	"tendril/queue"
)

type network struct {
	Store
	down   atomic.Bool
	writes *atomic.Int64
	reads  *atomic.Int64
}

var errDown = errors.New("no answer")

func (n *network) Read(ctx context.Context, name string) (queue.Lease, error) {
	if n.down.Load() {
		return queue.Lease{}, errDown
	}
	n.reads.Add(1)
	return n.Store.Read(ctx, name)
}

func (n *network) Swap(ctx context.Context, name string, old, next queue.Lease) (bool, queue.Lease, error) {
	if n.down.Load() {
		return false, queue.Lease{}, errDown
	}
	n.writes.Add(1)
	return n.Store.Swap(ctx, name, old, next)
}

type fleet struct {
	store  Store
	key    FleetKey
	writes atomic.Int64
	reads  atomic.Int64
}

func newFleet() *fleet { return &fleet{store: registry.NewLeases(registry.NewMemory())} }

func (f *fleet) options() (Options, *network) {
	n := &network{Store: f.store, writes: &f.writes, reads: &f.reads}
	return Options{Store: n, Environment: "jobs", Key: f.key, Log: slog.New(slog.DiscardHandler)}, n
}

type process struct {
	*Member
	network *network
	paused  atomic.Bool
	kill    context.CancelFunc
	ended   sync.WaitGroup
}

func (f *fleet) start(t *testing.T, name string) *process {
	opts, n := f.options()
	ctx, kill := context.WithCancel(t.Context())
	p := &process{network: n, kill: kill}
	p.Member = NewMember(opts, func() Record {
		r := Record{Name: name, Version: "1", State: "running", Health: "Green"}
		if p.paused.Load() {
			r.PausedQueues = []string{"jobs"}
		}
		return r
	}, func() Load {
		return Load{Sample: autoscale.Sample{Slots: 10, InWork: 5, CPU: autoscale.Reading{Value: 50, Known: true}}}
	})
	p.ended.Go(func() { p.Run(ctx) })
	return p
}

func (p *process) stop(t *testing.T) {
	t.Helper()
	p.kill()
	p.ended.Wait()
	if err := p.Leave(t.Context()); err != nil {
		t.Errorf("leaving: %v", err)
	}
}

func (f *fleet) watcher() *Watcher {
	opts, _ := f.options()
	return NewWatcher(opts)
}

func names(t *testing.T, w *Watcher) (reachable []string) {
	t.Helper()
	all, err := w.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if one.Reachable() {
			reachable = append(reachable, one.Name)
		}
	}
	slices.Sort(reachable)
	return reachable
}

// after sleeps and lets everything due, such as a heartbeat, finish.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestInstancesSeeEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		for i := range 3 {
			defer f.start(t, fmt.Sprint("host-", i)).kill()
		}
		after(2 * Heartbeat)

		all, err := f.watcher().Read(t.Context())
		if err != nil || len(all) != 3 {
			t.Fatalf("read %d instances, %v", len(all), err)
		}
		for _, one := range all {
			if one.Load.InWork != 5 || one.Load.CPU.Value != 50 || one.Health != "Green" || one.ID == "" {
				t.Errorf("read %+v", one)
			}
		}
	})
}

func TestStoppedInstanceFreesItsSlotAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, w := newFleet(), (*Watcher)(nil)
		w = f.watcher()
		first, second := f.start(t, "a"), f.start(t, "b")
		defer second.kill()
		after(Heartbeat)
		first.stop(t)
		if got := names(t, w); !slices.Equal(got, []string{"b"}) {
			t.Errorf("after the stop %q are reachable", got)
		}

		third := f.start(t, "c")
		defer third.kill()
		after(Heartbeat)
		if list, _ := rosterOf(mustRead(t, f.store, w.rosterName())); list.Slots != 2 {
			t.Errorf("the roster has %d slots for two instances", list.Slots)
		}
	})
}

func mustRead(t *testing.T, s Store, name string) queue.Lease {
	t.Helper()
	l, err := s.Read(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestDisconnectedInstanceIsUnreachableAndComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		w := f.watcher()
		stays, cut := f.start(t, "stays"), f.start(t, "cut")
		defer stays.kill()
		defer cut.kill()
		running, stop := context.WithCancel(t.Context())
		defer stop()
		go w.Run(running, func() bool { return true })

		after(5 * time.Minute)
		cut.network.down.Store(true)
		after(FreshFor - Heartbeat - ReadInterval)
		if got := names(t, w); len(got) != 2 {
			t.Errorf("right after the cut only %q are reachable", got)
		}
		after(Heartbeat + 2*ReadInterval)
		if got := names(t, w); !slices.Equal(got, []string{"stays"}) {
			t.Errorf("%s after the cut %q are reachable", FreshFor+ReadInterval, got)
		}

		after(ForgetAfter)
		if all, _ := w.Recent(); len(all) != 1 {
			t.Errorf("%d instances are remembered", len(all))
		}
		cut.network.down.Store(false)
		after(2*maxRetryInterval + ReadInterval)
		if got := names(t, w); !slices.Equal(got, []string{"cut", "stays"}) {
			t.Errorf("after the return %q are reachable", got)
		}
	})
}

func TestChangedStatusIsWrittenAtOnceAndLoadIsNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		p := f.start(t, "a")
		defer p.kill()
		after(Heartbeat + time.Second)
		before := f.writes.Load()

		p.paused.Store(true)
		after(statusInterval + pollInterval)
		all, err := f.watcher().Read(t.Context())
		if err != nil || len(all) != 1 || len(all[0].PausedQueues) != 1 {
			t.Errorf("the pause is not in the record: %+v, %v", all, err)
		}
		if n := f.writes.Load() - before; n != 1 {
			t.Errorf("%d writes for one change", n)
		}

		before = f.writes.Load()
		after(time.Hour)
		if n := f.writes.Load() - before; n < 60 || n > 67 {
			t.Errorf("%d writes in an hour", n)
		}
	})
}

func TestLostAnswerDoesNotCostTheSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		opts, _ := f.options()
		losing := &answerLoser{Store: f.store}
		opts.Store = losing
		m := NewMember(opts, func() Record { return Record{Name: "a"} }, func() Load { return Load{} })
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go m.Run(ctx)
		after(Heartbeat)
		losing.lose.Store(true)
		after(Heartbeat)
		losing.lose.Store(false)
		after(Heartbeat)

		list, _ := rosterOf(mustRead(t, f.store, "jobs/instances"))
		if got := names(t, f.watcher()); list.Slots != 1 || len(got) != 1 {
			t.Errorf("%d slots, reachable are %q", list.Slots, got)
		}
	})
}

type answerLoser struct {
	Store
	lose atomic.Bool
}

func (a *answerLoser) Swap(ctx context.Context, name string, old, next queue.Lease) (bool, queue.Lease, error) {
	won, current, err := a.Store.Swap(ctx, name, old, next)
	if a.lose.Load() {
		return false, queue.Lease{}, errDown
	}
	return won, current, err
}

// docs/scale.md has the cost of the writes and reads.
func TestThousandInstances(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a thousand goroutines for an hour of virtual time")
	}
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		f := newFleet()
		w := f.watcher()
		for i := range n {
			p := f.start(t, fmt.Sprint("host-", i))
			defer p.kill()
			f.elect(t, p)
		}
		after(5 * time.Minute)
		if got := len(names(t, w)); got != n {
			t.Fatalf("%d of %d have joined after five minutes", got, n)
		}

		running, stop := context.WithCancel(t.Context())
		defer stop()
		go w.Run(running, func() bool { return true })
		before, readBefore := f.writes.Load(), f.reads.Load()
		const measured = 10 * time.Minute
		after(measured)
		writes := float64(f.writes.Load()-before) / measured.Seconds()
		reads := float64(f.reads.Load()-readBefore) / measured.Seconds()
		const seconds, write, read = 30 * 24 * 3600, 0.625e-6, 0.125e-6 // on-demand prices in dollars
		dollars := seconds * (writes*write + reads*read) / n
		t.Logf("%.1f writes and %.1f reads a second, %.3f dollars per instance and month", writes, reads, dollars)
		if writes > 20 || dollars > 0.05 {
			t.Errorf("%.1f writes a second, %.3f dollars per instance and month: want at most 20 and 0.05", writes, dollars)
		}
		if got := len(names(t, w)); got != n {
			t.Errorf("%d of %d are reachable", got, n)
		}
	})
}

func (f *fleet) elect(t *testing.T, p *process) {
	t.Helper()
	elector, err := leader.New(p.network, leader.Options{Name: "jobs/leader", Announce: p.Announcement,
		Watch: func() time.Duration { return FreshFor }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); elector.Run(ctx) }()
	kill := p.kill
	p.kill = func() { kill(); stop(); <-ended }
}

func TestRoster(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before roster
		free   []int
		want   roster
	}{
		"in the middle":         {roster{Slots: 3}, []int{1}, roster{3, []int{1}}},
		"the last":              {roster{Slots: 3}, []int{2}, roster{2, nil}},
		"the last ones":         {roster{3, []int{1}}, []int{2}, roster{1, nil}},
		"all":                   {roster{Slots: 3}, []int{2, 0, 1}, roster{0, nil}},
		"twice":                 {roster{3, []int{1}}, []int{1}, roster{3, []int{1}}},
		"one that is not there": {roster{Slots: 1}, []int{7}, roster{1, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := c.before.freeSlots(c.free...)
			if got.Slots != c.want.Slots || !slices.Equal(got.Free, c.want.Free) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			taken, slot := got.takeSlot()
			if slices.Contains(got.usedSlots(), slot) || !slices.Contains(taken.usedSlots(), slot) {
				t.Errorf("took %d of %+v, left %+v", slot, got, taken)
			}
		})
	}
}

func TestRecordStaysSmall(t *testing.T) {
	t.Parallel()
	long := make([]string, 1000)
	for i := range long {
		long[i] = string(slices.Repeat([]byte("ü"), 1000))
	}
	var environment []health.InstanceHealth
	r := Record{Name: long[0], Causes: slices.Repeat([]health.Cause{{Name: long[0], Text: long[0], Remedy: long[0]}}, 9),
		PausedQueues: slices.Repeat([]string{string(slices.Repeat([]byte("q"), 80))}, 200)}
	for i := range 40 {
		one := health.InstanceHealth{Name: long[0], Status: health.Severe}
		one.Causes = []health.Cause{{Kind: strings.Repeat(string(rune('a'+i)), 20), Name: strings.Repeat("q", maxLabel), Status: health.Severe,
			Text: strings.Repeat("x", 1000), Remedy: strings.Repeat("r", maxLabel)}}
		environment = append(environment, one)
	}
	judged := health.EnvironmentOf(environment)
	r.Environment = &judged
	l := r.clip().lease("jobs/instances/0", "a/1", fleetKey)
	if len(l.Data) > 16<<10 {
		t.Errorf("%d bytes", len(l.Data))
	}
	if _, err := recordOf(0, l); err != nil {
		t.Error(err)
	}
}
