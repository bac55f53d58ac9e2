package app

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kind is how a version of the test's app behaves.
type kind string

const (
	good       kind = "good"
	unstarted  kind = "cannot be started"
	crashing   kind = "is given up"
	never      kind = "is never ready"
	badHelpers kind = "its helpers cannot be started"
	slow       kind = "takes a second to be started"
	fading     kind = "is ready, and given up a second later"
	wavering   kind = "is ready, and not for a while a second later"
)

type version struct {
	id   int
	kind kind
}

// stage launches copies that exist only here, and checks what happens to them.
type stage struct {
	t       *testing.T
	mu      sync.Mutex
	made    int
	running map[string]*fakeReplica // by address
	helpers int                     // running at once
	// pause is how long the start of a copy takes; grace is how long what is stopped takes to end, unless it must end at
	// once.
	pause, grace time.Duration
	// hurry bounds the grace of a copy whose start is given up.
	hurry context.Context
}

type fakeReplica struct {
	stage   *stage
	version version
	member  *Member // nil for helpers
	failed  chan struct{}
	inWork  atomic.Int64
	gone    bool
}

var errBroken = errors.New("broken")

func newStage(t *testing.T) *stage {
	return &stage{t: t, running: map[string]*fakeReplica{}, hurry: context.Background()}
}

// copies returns how many copies run.
func (s *stage) copies() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running)
}

// helping returns how many helpers run.
func (s *stage) helping() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.helpers
}

// end takes the grace that something takes to end, or until ctx is done.
func (s *stage) end(ctx context.Context) {
	if s.grace == 0 {
		return
	}
	select {
	case <-time.After(s.grace):
	case <-ctx.Done():
	}
}

func (s *stage) Address(version) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	return fmt.Sprintf("copy-%d", s.made), nil
}

func (s *stage) Launch(ctx context.Context, v version, m *Member) (Replica, error) {
	if v.kind == unstarted {
		return nil, errBroken
	}
	if v.kind == slow {
		s.pause = time.Second
	}
	select {
	case <-time.After(s.pause):
	case <-ctx.Done():
		s.end(s.hurry)
		return nil, ctx.Err()
	}
	r := &fakeReplica{stage: s, version: v, member: m, failed: make(chan struct{})}
	s.mu.Lock()
	s.running[m.Address] = r
	s.mu.Unlock()
	go func() {
		time.Sleep(100 * time.Millisecond)
		switch v.kind {
		case crashing:
			close(r.failed)
		case fading:
			m.SetReady(true, "")
			time.Sleep(time.Second)
			m.SetReady(false, "it ended")
			close(r.failed)
		case wavering:
			m.SetReady(true, "")
			time.Sleep(time.Second)
			m.SetReady(false, "it thinks")
			time.Sleep(5 * time.Second)
			m.SetReady(true, "")
		case never:
		default:
			m.SetReady(true, "")
		}
	}()
	return r, nil
}

func (s *stage) Helpers(_ context.Context, v version) (Replica, error) {
	if v.kind == badHelpers {
		return nil, errBroken
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.helpers++; s.helpers > 1 {
		s.t.Errorf("%d helpers at once", s.helpers)
	}
	return &fakeReplica{stage: s, version: v, failed: make(chan struct{})}, nil
}

func (r *fakeReplica) Failed() <-chan struct{} { return r.failed }
func (r *fakeReplica) Err() error              { return errBroken }

func (r *fakeReplica) Stop(ctx context.Context) error {
	s := r.stage
	s.end(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.gone {
		s.t.Error("stopped twice")
	}
	r.gone = true
	if r.member == nil {
		s.helpers--
		return nil
	}
	if n := r.inWork.Load(); n > 0 {
		s.t.Errorf("%s was stopped with %d deliveries in work", r.member.Address, n)
	}
	delete(s.running, r.member.Address)
	return nil
}

// load delivers all the time, ten at once, and counts what could not be.
func (s *stage) load(ctx context.Context, router *Router) (delivered, refused *atomic.Int64, wait func()) {
	delivered, refused = new(atomic.Int64), new(atomic.Int64)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for ctx.Err() == nil {
				m, err := router.Acquire()
				if err != nil {
					refused.Add(1)
					time.Sleep(time.Millisecond)
					continue
				}
				s.deliver(m)
				delivered.Add(1)
			}
		})
	}
	return delivered, refused, all.Wait
}

func (s *stage) deliver(m *Member) {
	s.mu.Lock()
	r := s.running[m.Address]
	s.mu.Unlock()
	if r == nil {
		s.t.Errorf("a delivery went to %s, which does not run", m.Address)
		m.Release()
		return
	}
	r.inWork.Add(1)
	time.Sleep(rand.N(30 * time.Millisecond))
	r.inWork.Add(-1)
	m.Release()
}

// TestHundredDeployments swaps versions under load, nearly a third of which are
// broken in one of four ways.
func TestHundredDeployments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, gates := newStage(t), []bool{}
		router := NewRouter(func(open bool, _ string) { gates = append(gates, open) })
		rolledBack := 0
		m := NewManager(router, s, &Options{ReadyTimeout: time.Second, Events: Events{
			RolledBack: func(error) { rolledBack++ },
			Forced:     func(address string, n int, _ time.Duration) { t.Errorf("%s was forced with %d in work", address, n) },
		}})
		if err := m.Start(t.Context(), version{0, good}, 2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		delivered, refused, wait := s.load(ctx, router)
		serving, bad := 0, 0
		for i := 1; i <= 100; i++ {
			k := good
			if i%10 < 3 {
				bad++
				k = []kind{unstarted, crashing, never, badHelpers}[bad%4]
			}
			err := m.Deploy(t.Context(), version{i, k})
			if (err != nil) != (k != good) || err != nil && !errors.Is(err, ErrRolledBack) {
				t.Fatalf("deploying a version that %s: %v", k, err)
			}
			var replica *ReplicaError
			if named := errors.As(err, &replica); named != (k == crashing || k == never) {
				t.Errorf("deploying a version that %s: %v, and a replica is named: %v", k, err, named)
			}
			if err == nil {
				serving = i
			}
			if got := m.Version().id; got != serving {
				t.Fatalf("after deployment %d version %d serves, want %d", i, got, serving)
			}
			s.mu.Lock()
			for address, r := range s.running {
				if r.version.id != serving {
					t.Errorf("%s of version %d still runs", address, r.version.id)
				}
			}
			s.mu.Unlock()
			if s.copies() != 2 || s.helping() != 1 {
				t.Errorf("%d copies and %d helpers run", s.copies(), s.helping())
			}
		}
		cancel()
		wait()
		if err := m.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if s.copies() != 0 || s.helping() != 0 {
			t.Errorf("%d copies and %d helpers outlive the stop", s.copies(), s.helping())
		}
		if refused.Load() != 0 || delivered.Load() < 1000 || rolledBack != bad {
			t.Errorf("delivered %d, refused %d, rolled back %d of %d", delivered.Load(), refused.Load(), rolledBack, bad)
		}
		if want := []bool{true, false}; !slices.Equal(gates, want) {
			t.Errorf("the gate went %v, want %v", gates, want)
		}
	})
}

func TestScale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		router := NewRouter(nil)
		m := NewManager(router, s, nil)
		if err := m.Start(t.Context(), version{1, good}, 1); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.Sleep(time.Second)
		_, refused, wait := s.load(ctx, router)
		for _, n := range []int{4, 2, 2, 5, 0} {
			if err := m.Scale(t.Context(), n); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // so that what is too many has finished
			if want := max(n, 1); m.Size() != want || s.copies() != want {
				t.Errorf("%d copies, %d running; want %d", m.Size(), s.copies(), want)
			}
		}
		cancel()
		wait()
		if refused.Load() != 0 {
			t.Errorf("%d deliveries found nobody", refused.Load())
		}
		if err := m.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if err := m.Scale(t.Context(), 2); !errors.Is(err, ErrStopped) {
			t.Errorf("after the stop: %v", err)
		}
	})
}

func TestGrowthThatFailsChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		m := NewManager(NewRouter(nil), s, &Options{ReadyTimeout: time.Second})
		if err := m.Start(t.Context(), version{1, good}, 1); err != nil {
			t.Fatal(err)
		}
		v := m.version
		v.kind = never
		m.version = v
		if err := m.Scale(t.Context(), 3); err == nil || m.Size() != 1 || s.copies() != 1 {
			t.Errorf("%v; %d copies", err, m.Size())
		}
		m.Stop(t.Context())
	})
}

// TestDeploymentWaitsForNoChangeOfSize: neither a copy that drains after a scale-in
// nor growth that does not come up keeps a new version waiting.
func TestDeploymentWaitsForNoChangeOfSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		router, forced := NewRouter(nil), 0
		m := NewManager(router, s, &Options{Events: Events{Forced: func(string, int, time.Duration) { forced++ }}})
		if err := m.Start(t.Context(), version{1, good}, 2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		var work []*Member
		for range 2 { // one delivery on each
			c, err := router.Acquire()
			if err != nil {
				t.Fatal(err)
			}
			work = append(work, c)
		}
		began := time.Now()
		if err := m.Scale(t.Context(), 1); err != nil || time.Since(began) != 0 || m.Size() != 1 {
			t.Errorf("the scale-in: %v, %d copies after %s", err, m.Size(), time.Since(began))
		}
		m.version.kind = never // what would grow now never comes up
		grown := make(chan error)
		go func() { grown <- m.Scale(context.Background(), 3) }()
		time.Sleep(time.Second)
		if err := m.Scale(t.Context(), 2); !errors.Is(err, ErrBusy) {
			t.Errorf("a second change of size: %v", err)
		}
		deployed := make(chan error)
		go func() { deployed <- m.Deploy(context.Background(), version{2, good}) }()
		if err := <-grown; !errors.Is(err, ErrBusy) {
			t.Errorf("the growth: %v", err)
		}
		time.Sleep(time.Second)
		if v := m.Version(); v.id != 2 {
			t.Errorf("version %d serves a second later", v.id)
		}
		if s.copies() != 3 { // two of the old version still work
			t.Errorf("%d copies run", s.copies())
		}
		for _, c := range work {
			c.Release()
		}
		if err := <-deployed; err != nil {
			t.Errorf("the deployment: %v", err)
		}
		synctest.Wait()
		if s.copies() != 1 || m.Size() != 1 || forced != 0 {
			t.Errorf("%d copies run, %d serve, %d forced", s.copies(), m.Size(), forced)
		}
		m.Stop(t.Context())
	})
}

// TestDeploymentWaitsForTheStart: what it is to replace has to be there first.
func TestDeploymentWaitsForTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		m := NewManager(NewRouter(nil), s, nil)
		start, deployed := make(chan error, 1), make(chan error, 1)
		go func() { start <- m.Start(context.Background(), version{1, slow}, 2) }()
		synctest.Wait()
		if err := m.Scale(t.Context(), 3); !errors.Is(err, ErrBusy) {
			t.Errorf("a change of size: %v", err)
		}
		go func() { deployed <- m.Deploy(context.Background(), version{2, good}) }()
		if err := <-start; err != nil {
			t.Errorf("the start: %v", err)
		}
		if err := <-deployed; err != nil || m.Version().id != 2 || s.copies() != 2 {
			t.Errorf("the deployment: %v; version %d serves, %d copies run", err, m.Version().id, s.copies())
		}
		m.Stop(t.Context())
	})
}

// TestStopWaitsForWhatRetires: nothing that a scale-in left behind outlives the stop.
func TestStopWaitsForWhatRetires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		router, forced := NewRouter(nil), 0
		m := NewManager(router, s, &Options{Events: Events{Forced: func(string, int, time.Duration) { forced++ }}})
		if err := m.Start(t.Context(), version{1, good}, 3); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for range 3 {
			if _, err := router.Acquire(); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Scale(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if err := m.Stop(t.Context()); err != nil || s.copies() != 0 || forced != 2 {
			t.Errorf("the stop: %v; %d copies run, %d forced", err, s.copies(), forced)
		}
	})
}

func TestStopEndsADeployment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		m := NewManager(NewRouter(nil), s, nil)
		if err := m.Start(t.Context(), version{1, good}, 1); err != nil {
			t.Fatal(err)
		}
		deployed := make(chan error)
		go func() { deployed <- m.Deploy(context.Background(), version{2, never}) }()
		time.Sleep(time.Second)
		if err := m.Deploy(t.Context(), version{3, good}); !errors.Is(err, ErrBusy) {
			t.Errorf("a second deployment: %v", err)
		}
		stopped := make(chan error)
		go func() { stopped <- m.Stop(context.Background()) }()
		if err := <-deployed; !errors.Is(err, ErrRolledBack) || !errors.Is(err, ErrStopped) ||
			errors.Is(err, context.Canceled) {
			t.Errorf("the deployment: %v", err)
		}
		if err := <-stopped; err != nil || s.copies() != 0 {
			t.Errorf("the stop: %v; %d copies run", err, s.copies())
		}
	})
}

func TestDrainHasALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		limit := time.Hour
		var forced []string
		router := NewRouter(nil)
		m := NewManager(router, s, &Options{DrainTimeout: func() time.Duration { return limit }, Events: Events{
			// The settings of the new version say nothing of what the old one has in work.
			Switching: func(int) { limit = time.Minute },
			Forced:    func(_ string, n int, limit time.Duration) { forced = append(forced, fmt.Sprint(n, " after ", limit)) },
		}})
		if err := m.Start(t.Context(), version{1, good}, 1); err != nil {
			t.Fatal(err)
		}
		stick := func() *Member {
			time.Sleep(time.Second)
			stuck, err := router.Acquire()
			if err != nil {
				t.Fatal(err)
			}
			return stuck
		}
		stuck := stick()
		limit = 3 * time.Second // a reload
		began := time.Now()
		if err := m.Deploy(t.Context(), version{2, good}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 3*time.Second || took > 4*time.Second {
			t.Errorf("the drain took %s", took)
		}
		stuck.Release()
		if err := m.Scale(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		first, second := stick(), stick()
		if err := m.Scale(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(limit + time.Second)
		if err := m.Scale(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		third := stick()
		if err := m.Scale(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		m.Stop(t.Context())
		if want := []string{"1 after 3s", "1 after 1m0s", "1 after 0s"}; !slices.Equal(forced, want) {
			t.Errorf("forced %q, want %q", forced, want)
		}
		for _, c := range []*Member{first, second, third} {
			c.Release()
		}
	})
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{unstarted, badHelpers} {
		s := newStage(t)
		router := NewRouter(nil)
		m := NewManager(router, s, nil)
		if err := m.Start(t.Context(), version{1, k}, 2); !errors.Is(err, errBroken) || s.copies() != 0 || m.Size() != 0 {
			t.Errorf("%s: %v; %d run", k, err, s.copies())
		}
		if open, reason := router.Open(); open || reason != "the app is not started" {
			t.Errorf("%s: open %t, %q", k, open, reason)
		}
	}
}

func TestAcquireWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRouter(nil)
		m := r.Add("a")
		r.Admit(m)
		if _, err := r.AcquireWithin(t.Context(), time.Second); !errors.Is(err, ErrNone) {
			t.Errorf("nobody became ready: %v", err)
		}
		began := time.Now()
		time.AfterFunc(300*time.Millisecond, func() { m.SetReady(true, "") })
		if got, err := r.AcquireWithin(t.Context(), time.Second); got != m || err != nil ||
			time.Since(began) != 300*time.Millisecond {
			t.Errorf("%v, %v after %v", got, err, time.Since(began))
		}
		m.SetReady(false, "gone")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		if _, err := r.AcquireWithin(ctx, time.Hour); !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
	})
}

func TestRouterUsesTheLeastBusyReplica(t *testing.T) {
	t.Parallel()
	var events []string
	r := NewRouter(func(open bool, reason string) { events = append(events, fmt.Sprintf("%t %s", open, reason)) })
	a, b := r.Add("a"), r.Add("b")
	if _, err := r.Acquire(); !errors.Is(err, ErrNone) {
		t.Errorf("nobody is ready: %v", err)
	}
	a.SetReady(true, "")
	if _, err := r.Acquire(); !errors.Is(err, ErrNone) {
		t.Errorf("ready but not admitted: %v", err)
	}
	r.Admit(a, b)
	b.SetReady(true, "")
	for range 6 {
		r.Acquire()
	}
	if a.InWork() != 3 || b.InWork() != 3 {
		t.Errorf("%d and %d in work", a.InWork(), b.InWork())
	}
	a.SetReady(false, "a ended")
	if m, _ := r.Acquire(); m != b {
		t.Error("work for one that is not ready")
	}
	b.SetReady(false, "b ended")
	b.SetReady(false, "b ended again")
	b.SetReady(true, "")
	want := []string{"true ", "false a ended", "true "}
	if len(events) != 3 || events[0] != want[0] || events[2] != want[2] {
		t.Errorf("events %q", events)
	}
	r.Remove(a)
	for range 3 {
		a.Release()
	}
	if err := a.Drained(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSwitchOnlyToCopiesThatAreReadyTogether: one that was ready when the last one was
// not yet counts only when it still is.
func TestSwitchOnlyToCopiesThatAreReadyTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		router := NewRouter(func(open bool, reason string) {
			if !open {
				t.Errorf("nobody may be given work: %s", reason)
			}
		})
		began, switched := time.Now(), time.Duration(0)
		m := NewManager(router, s, &Options{Events: Events{Switched: func(time.Duration) { switched = time.Since(began) }}})
		if err := m.Start(t.Context(), version{1, good}, 2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		began = time.Now()
		s.pause = 1050 * time.Millisecond // the second is ready while the first is not
		if err := m.Deploy(t.Context(), version{2, wavering}); err != nil {
			t.Fatal(err)
		}
		// The first goes away at 2.15 s, when the second is about to be ready; that one is
		// back at 8.2 s.
		if switched < 8200*time.Millisecond || switched > 8300*time.Millisecond {
			t.Errorf("the messages moved after %s", switched)
		}
		if err := m.Deploy(t.Context(), version{3, fading}); !errors.Is(err, ErrRolledBack) || !errors.Is(err, errBroken) {
			t.Errorf("a version that was given up before all of it was ready: %v", err)
		}
		if v := m.Version(); v.id != 2 || s.copies() != 2 || s.helping() != 1 {
			t.Errorf("version %d serves, %d copies and %d helpers run", v.id, s.copies(), s.helping())
		}
		time.Sleep(10 * time.Second)
		router.changed = nil
		m.Stop(t.Context())
	})
}

// TestNoSwitchToWhatWentAwayMeanwhile: the end of the old helpers takes its time, and
// what was ready before need not be so after it.
func TestNoSwitchToWhatWentAwayMeanwhile(t *testing.T) {
	for k, want := range map[kind]string{fading: "broken", wavering: "it thinks"} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t)
			router := NewRouter(nil)
			m := NewManager(router, s, &Options{Events: Events{Switching: func(int) {
				t.Errorf("a version that %s got the messages", k)
			}}})
			if err := m.Start(t.Context(), version{1, good}, 2); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			s.grace = 2 * time.Second
			err := m.Deploy(t.Context(), version{2, k})
			if !errors.Is(err, ErrRolledBack) || !strings.Contains(err.Error(), want) {
				t.Errorf("deploying a version that %s: %v", k, err)
			}
			time.Sleep(10 * time.Second)
			if open, _ := router.Open(); !open || m.Version().id != 1 || s.copies() != 2 || s.helping() != 1 {
				t.Errorf("open %t; version %d serves, %d copies and %d helpers run", open, m.Version().id, s.copies(), s.helping())
			}
			for _, r := range m.Replicas() {
				if r.(*fakeReplica).version.id != 1 {
					t.Errorf("of version %d runs %+v", r.(*fakeReplica).version.id, r)
				}
			}
			if err := m.Stop(t.Context()); err != nil || s.helping() != 0 {
				t.Errorf("the stop: %v; %d helpers run", err, s.helping())
			}
		})
	}
}

// TestManyCopiesEndTogether: whatever ends copies that do not obey ends all of them at
// once, and none of it is gentle any more when a stop is to be at once.
func TestManyCopiesEndTogether(t *testing.T) {
	const grace, many = 10 * time.Second, 20
	for what, change := range map[string]func(ctx context.Context, m *Manager[version]) error{
		"a start":      func(ctx context.Context, m *Manager[version]) error { return m.Start(ctx, version{1, good}, many) },
		"a deployment": func(ctx context.Context, m *Manager[version]) error { return m.Deploy(ctx, version{2, never}) },
		"a growth": func(ctx context.Context, m *Manager[version]) error {
			m.version.kind = never
			return m.Scale(ctx, 2*many)
		},
	} {
		for hurried, want := range map[time.Duration]time.Duration{time.Hour: grace, 3 * time.Second: 3 * time.Second, 0: 0} {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				hurry, hurryNow := context.WithCancel(t.Context())
				s.hurry = hurry
				m := NewManager(NewRouter(nil), s, &Options{Hurry: hurry})
				if what != "a start" {
					if err := m.Start(t.Context(), version{1, good}, many); err != nil {
						t.Fatal(err)
					}
				}
				s.pause, s.grace = time.Second, grace
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(many*time.Second-time.Second/2, cancel) // during the start of the last
				began := time.Now()
				time.AfterFunc(many*time.Second-time.Second/2+hurried, hurryNow)
				if err := change(ctx, m); !errors.Is(err, context.Canceled) {
					t.Errorf("%s: %v", what, err)
				}
				if took := time.Since(began) - many*time.Second + time.Second/2; took != want {
					t.Errorf("%s that is hurried after %s: its copies ended within %s, want %s", what, hurried, took, want)
				}
				began = time.Now()
				err := m.Stop(t.Context())
				if took := time.Since(began); err != nil || took > grace || s.copies()+s.helping() != 0 {
					t.Errorf("the stop took %s (%v), and %d copies run", took, err, s.copies())
				}
				hurryNow()
			})
		}
	}
}
