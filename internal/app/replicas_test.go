package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"tendril/internal/supervisor"
	"tendril/internal/testing/testpeer"
)

func always(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

func TestMain(m *testing.M) { goleak.VerifyTestMain(testpeer.Contained(m)) }

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

func versionOf(number int, k kind) version {
	return version{number: number, command: []string{string(k)}}
}

func kindOf(v version) kind { return kind(v.command[0]) }

type fakeLauncher struct {
	t            *testing.T
	set          *replicaSet
	log          *records
	mu           sync.Mutex
	running      map[*replica]*fakeProcesses
	helping      int
	pause, grace time.Duration
	hurry        context.Context
}

type fakeProcesses struct {
	launcher *fakeLauncher
	replica  *replica
	version  version
	inWork   atomic.Int64
	gone     bool
	restarts atomic.Int64
}

var errBroken = errors.New("broken")

func newFakeLauncher(t *testing.T, change func(*replicaOptions)) (*fakeLauncher, *replicaSet) {
	port := 0
	b := newBalancer(0, func() (int, error) { port++; return port, nil })
	s := &fakeLauncher{t: t, log: &records{}, running: map[*replica]*fakeProcesses{}, hurry: context.Background()}
	opts := replicaOptions{readyTimeout: always(5 * time.Minute), stopTimeout: always(time.Minute), hurry: context.Background(),
		drainTimeout: func() time.Duration { return 10 * time.Minute }, log: slog.New(s.log),
		starting: func() {}, switching: func() {}, switched: func() {}, restarted: func() {}, retired: func(version) {}}
	if change != nil {
		change(&opts)
	}
	s.set = newReplicaSet(b, s, opts)
	return s, s.set
}

func startReplicas(t *testing.T, n int, change func(*replicaOptions)) (*fakeLauncher, *replicaSet) {
	t.Helper()
	s, m := newFakeLauncher(t, change)
	if err := m.start(t.Context(), versionOf(1, good), n); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	t.Cleanup(func() {
		if err := m.stop(); err != nil {
			t.Error(err)
		}
	})
	return s, m
}

func (r *replicaSet) deployAndRetire(ctx context.Context, v version) error {
	err := r.deploy(ctx, v)
	r.retiring.Wait()
	return err
}

func (r *replicaSet) setVersion(v version) {
	old := r.now.Load()
	r.now.Store(&serving{v, old.replicas, old.helpers})
}

type records struct {
	mu   sync.Mutex
	list []slog.Record
}

func (r *records) Enabled(context.Context, slog.Level) bool { return true }
func (r *records) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *records) WithGroup(string) slog.Handler            { return r }

func (r *records) Handle(_ context.Context, record slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, record)
	return nil
}

func (r *records) of(message string) (found []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, record := range r.list {
		if record.Message == message {
			var attrs []string
			record.Attrs(func(a slog.Attr) bool { attrs = append(attrs, a.String()); return true })
			found = append(found, strings.Join(attrs, " "))
		}
	}
	return found
}

func (s *fakeLauncher) forced() []string {
	return s.log.of("replica stopped with deliveries in flight")
}

func (s *fakeLauncher) replicas() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running)
}

func (s *fakeLauncher) helpersRunning() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.helping
}

func (s *fakeLauncher) end(ctx context.Context) {
	if s.grace == 0 {
		return
	}
	select {
	case <-time.After(s.grace):
	case <-ctx.Done():
	}
}

func (s *fakeLauncher) launch(ctx context.Context, v version, r *replica) (processes, error) {
	k := kindOf(v)
	if k == unstarted {
		return nil, errBroken
	}
	if k == slow {
		s.pause = time.Second
	}
	select {
	case <-time.After(s.pause):
	case <-ctx.Done():
		s.end(s.hurry)
		return nil, ctx.Err()
	}
	p := &fakeProcesses{launcher: s, version: v, replica: r}
	s.mu.Lock()
	s.running[r] = p
	s.mu.Unlock()
	go func() {
		time.Sleep(100 * time.Millisecond)
		switch k {
		case crashing:
			r.giveUp(errBroken)
		case fading:
			r.setReady(true, "")
			time.Sleep(time.Second)
			r.setReady(false, "it ended")
			r.giveUp(errBroken)
		case wavering:
			r.setReady(true, "")
			time.Sleep(time.Second)
			r.setReady(false, "it thinks")
			time.Sleep(5 * time.Second)
			r.setReady(true, "")
		case never:
		default:
			r.setReady(true, "")
		}
	}()
	return p, nil
}

func (s *fakeLauncher) helpers(_ context.Context, v version) (processes, error) {
	if kindOf(v) == badHelpers {
		return nil, errBroken
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.helping++; s.helping > 1 {
		s.t.Errorf("%d helpers at once", s.helping)
	}
	return &fakeProcesses{launcher: s, version: v}, nil
}

const lastCheck = "GET http://localhost:1/health: status 400"

func (f *fakeProcesses) Status() []supervisor.Status {
	switch {
	case f.replica != nil && kindOf(f.version) == never:
		return []supervisor.Status{{Name: f.replica.name(), Reason: lastCheck}}
	case f.replica != nil:
		return nil
	}
	return []supervisor.Status{{Name: "mailer"}}
}

func (f *fakeProcesses) Restart(_ context.Context, name string) error {
	if f.replica != nil || name != "mailer" {
		f.launcher.t.Errorf("the process %s is restarted in its place", name)
	}
	f.restarts.Add(1)
	return nil
}

func (f *fakeProcesses) Stop(ctx context.Context) error {
	s := f.launcher
	s.end(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.gone {
		s.t.Error("stopped twice")
	}
	f.gone = true
	if f.replica == nil {
		s.helping--
		return nil
	}
	if n := f.inWork.Load(); n > 0 {
		s.t.Errorf("%s was stopped with %d deliveries in flight", f.replica.address(), n)
	}
	delete(s.running, f.replica)
	return nil
}

func (s *fakeLauncher) load(ctx context.Context) (delivered, refused *atomic.Int64, wait func()) {
	delivered, refused = new(atomic.Int64), new(atomic.Int64)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for ctx.Err() == nil {
				r, err := s.set.balancer.acquire(context.Background(), 0)
				if err != nil {
					refused.Add(1)
					time.Sleep(time.Millisecond)
					continue
				}
				s.deliver(r)
				delivered.Add(1)
			}
		})
	}
	return delivered, refused, all.Wait
}

func (s *fakeLauncher) deliver(r *replica) {
	defer r.release()
	s.mu.Lock()
	p := s.running[r]
	s.mu.Unlock()
	if p == nil {
		s.t.Errorf("a delivery went to %s, which does not run", r.address())
		return
	}
	p.inWork.Add(1)
	time.Sleep(rand.N(30 * time.Millisecond))
	p.inWork.Add(-1)
}

func TestHundredDeployments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gates := []bool{}
		s, m := newFakeLauncher(t, func(o *replicaOptions) { o.readyTimeout = always(time.Second) })
		m.balancer.changed = func(open bool, _ string) { gates = append(gates, open) }
		if err := m.start(t.Context(), versionOf(0, good), 2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		delivered, refused, wait := s.load(ctx)
		serving, bad := 0, 0
		for i := 1; i <= 100; i++ {
			k := good
			if i%10 < 3 {
				bad++
				k = []kind{unstarted, crashing, never, badHelpers}[bad%4]
			}
			err := m.deployAndRetire(t.Context(), versionOf(i, k))
			if (err != nil) != (k != good) || err != nil && !errors.Is(err, errRolledBack) {
				t.Fatalf("deploying a version that %s: %v", k, err)
			}
			var replica *processError
			if named := errors.As(err, &replica); named != (k == crashing || k == never) {
				t.Errorf("deploying a version that %s: %v, and a replica is named: %v", k, err, named)
			}
			if k == never && !strings.Contains(err.Error(), "not ready within 1s: "+lastCheck) {
				t.Errorf("the reason hides the last check: %v", err)
			}
			if err == nil {
				serving = i
			}
			if got := m.current().number; got != serving {
				t.Fatalf("after deployment %d version %d serves, want %d", i, got, serving)
			}
			s.mu.Lock()
			for r, p := range s.running {
				if p.version.number != serving {
					t.Errorf("%s of version %d still runs", r.address(), p.version.number)
				}
			}
			s.mu.Unlock()
			if s.replicas() != 2 || s.helpersRunning() != 1 {
				t.Errorf("%d replicas and %d helpers run", s.replicas(), s.helpersRunning())
			}
		}
		cancel()
		wait()
		if err := m.stop(); err != nil {
			t.Error(err)
		}
		if s.replicas() != 0 || s.helpersRunning() != 0 {
			t.Errorf("%d replicas and %d helpers outlive the stop", s.replicas(), s.helpersRunning())
		}
		if refused.Load() != 0 || delivered.Load() < 1000 {
			t.Errorf("delivered %d, refused %d", delivered.Load(), refused.Load())
		}
		rolledBack := s.log.of("deployment rolled back, the previous version is still serving")
		if forced := s.forced(); len(rolledBack) != bad || len(forced) > 0 {
			t.Errorf("rolled back %d of %d, forced %q", len(rolledBack), bad, forced)
		}
		if want := []bool{true, false}; !slices.Equal(gates, want) {
			t.Errorf("the gate went %v, want %v", gates, want)
		}
	})
}

func TestScale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := newFakeLauncher(t, nil)
		if err := m.start(t.Context(), versionOf(1, good), 1); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.Sleep(time.Second)
		_, refused, wait := s.load(ctx)
		for _, n := range []int{4, 2, 2, 5, 0} {
			if err := m.scale(t.Context(), n); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if want := max(n, 1); m.size() != want || s.replicas() != want {
				t.Errorf("%d replicas, %d running; want %d", m.size(), s.replicas(), want)
			}
		}
		cancel()
		wait()
		if refused.Load() != 0 {
			t.Errorf("%d deliveries found nobody", refused.Load())
		}
		if err := m.stop(); err != nil {
			t.Error(err)
		}
		if err := m.scale(t.Context(), 2); !errors.Is(err, ErrStopped) {
			t.Errorf("after the stop: %v", err)
		}
	})
}

func TestFailedScaleOutChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := newFakeLauncher(t, func(o *replicaOptions) { o.readyTimeout = always(time.Second) })
		if err := m.start(t.Context(), versionOf(1, good), 1); err != nil {
			t.Fatal(err)
		}
		m.setVersion(versionOf(1, never))
		if err := m.scale(t.Context(), 3); err == nil || m.size() != 1 || s.replicas() != 1 {
			t.Errorf("%v; %d replicas", err, m.size())
		}
		m.stop()
	})
}

func TestDeploymentDoesNotWaitForAChangeOfSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := newFakeLauncher(t, nil)
		if err := m.start(t.Context(), versionOf(1, good), 2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		var work []*replica
		for range 2 {
			c, err := m.balancer.acquire(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			work = append(work, c)
		}
		began := time.Now()
		if err := m.scale(t.Context(), 1); err != nil || time.Since(began) != 0 || m.size() != 1 {
			t.Errorf("the scale-in: %v, %d replicas after %s", err, m.size(), time.Since(began))
		}
		m.setVersion(versionOf(1, never))
		grown := make(chan error)
		go func() { grown <- m.scale(context.Background(), 3) }()
		time.Sleep(time.Second)
		if err := m.scale(t.Context(), 2); !errors.Is(err, ErrBusy) {
			t.Errorf("a second change of size: %v", err)
		}
		deployed := make(chan error)
		go func() { deployed <- m.deployAndRetire(context.Background(), versionOf(2, good)) }()
		if err := <-grown; !errors.Is(err, ErrBusy) {
			t.Errorf("the growth: %v", err)
		}
		time.Sleep(time.Second)
		if v := m.current(); v.number != 2 {
			t.Errorf("version %d serves a second later", v.number)
		}
		if s.replicas() != 3 {
			t.Errorf("%d replicas run", s.replicas())
		}
		for _, c := range work {
			c.release()
		}
		if err := <-deployed; err != nil {
			t.Errorf("the deployment: %v", err)
		}
		synctest.Wait()
		if s.replicas() != 1 || m.size() != 1 || len(s.forced()) != 0 {
			t.Errorf("%d replicas run, %d serve, %d forced", s.replicas(), m.size(), len(s.forced()))
		}
		m.stop()
	})
}

func TestDeploymentWaitsForTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := newFakeLauncher(t, nil)
		start, deployed := make(chan error, 1), make(chan error, 1)
		go func() { start <- m.start(context.Background(), versionOf(1, slow), 2) }()
		synctest.Wait()
		if err := m.scale(t.Context(), 3); !errors.Is(err, ErrBusy) {
			t.Errorf("a change of size: %v", err)
		}
		go func() { deployed <- m.deployAndRetire(context.Background(), versionOf(2, good)) }()
		if err := <-start; err != nil {
			t.Errorf("the start: %v", err)
		}
		if err := <-deployed; err != nil || m.current().number != 2 || s.replicas() != 2 {
			t.Errorf("the deployment: %v; version %d serves, %d replicas run", err, m.current().number, s.replicas())
		}
		m.stop()
	})
}

func TestStopWaitsForRetiredReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := newFakeLauncher(t, nil)
		if err := m.start(t.Context(), versionOf(1, good), 3); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for range 3 {
			if _, err := m.balancer.acquire(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.scale(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if err := m.stop(); err != nil || s.replicas() != 0 || len(s.forced()) != 2 {
			t.Errorf("the stop: %v; %d replicas run, %d forced", err, s.replicas(), len(s.forced()))
		}
	})
}

func TestStopEndsADeployment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := newFakeLauncher(t, nil)
		if err := m.start(t.Context(), versionOf(1, good), 1); err != nil {
			t.Fatal(err)
		}
		deployed := make(chan error)
		go func() { deployed <- m.deploy(context.Background(), versionOf(2, never)) }()
		time.Sleep(time.Second)
		if err := m.deploy(t.Context(), versionOf(3, good)); !errors.Is(err, ErrBusy) {
			t.Errorf("a second deployment: %v", err)
		}
		stopped := make(chan error)
		go func() { stopped <- m.stop() }()
		if err := <-deployed; !errors.Is(err, errRolledBack) || !errors.Is(err, ErrStopped) ||
			errors.Is(err, context.Canceled) {
			t.Errorf("the deployment: %v", err)
		}
		if err := <-stopped; err != nil || s.replicas() != 0 {
			t.Errorf("the stop: %v; %d replicas run", err, s.replicas())
		}
	})
}

func TestDrainHasALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := time.Hour
		s, m := newFakeLauncher(t, func(o *replicaOptions) {
			o.drainTimeout = func() time.Duration { return limit }
			o.switching = func() { limit = time.Minute }
		})
		if err := m.start(t.Context(), versionOf(1, good), 1); err != nil {
			t.Fatal(err)
		}
		stick := func() *replica {
			time.Sleep(time.Second)
			stuck, err := m.balancer.acquire(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			return stuck
		}
		stuck := stick()
		limit = 3 * time.Second
		began := time.Now()
		if err := m.deployAndRetire(t.Context(), versionOf(2, good)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 3*time.Second || took > 4*time.Second {
			t.Errorf("the drain took %s", took)
		}
		stuck.release()
		if err := m.scale(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		first, second := stick(), stick()
		if err := m.scale(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(limit + time.Second)
		if err := m.scale(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		third := stick()
		if err := m.scale(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		m.stop()
		want := []string{"in_work=1 reason=the deliveries took longer than 3s",
			"in_work=1 reason=the deliveries took longer than 1m0s", "in_work=1 reason=the environment is stopping"}
		forced := s.forced()
		for i := range forced {
			_, forced[i], _ = strings.Cut(forced[i], " ")
		}
		if !slices.Equal(forced, want) {
			t.Errorf("forced %q, want %q", forced, want)
		}
		for _, c := range []*replica{first, second, third} {
			c.release()
		}
	})
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{unstarted, badHelpers} {
		s, m := newFakeLauncher(t, nil)
		if err := m.start(t.Context(), versionOf(1, k), 2); !errors.Is(err, errBroken) || s.replicas() != 0 || m.size() != 0 {
			t.Errorf("%s: %v; %d run", k, err, s.replicas())
		}
		if open, reason := m.balancer.isOpen(); open || reason != "the app has not started" {
			t.Errorf("%s: open %t, %q", k, open, reason)
		}
	}
}

func newTestBalancer() *balancer {
	port := 0
	return newBalancer(0, func() (int, error) { port++; return port, nil })
}

func mustAdd(t *testing.T, b *balancer) *replica {
	t.Helper()
	r, err := b.add(version{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAcquireWaitsForAReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestBalancer()
		r := mustAdd(t, b)
		b.replace(nil, []*replica{r})
		if _, err := b.acquire(t.Context(), time.Second); !errors.Is(err, errNoReplica) {
			t.Errorf("no replica became ready: %v", err)
		}
		began := time.Now()
		time.AfterFunc(300*time.Millisecond, func() { r.setReady(true, "") })
		if got, err := b.acquire(t.Context(), time.Second); got != r || err != nil ||
			time.Since(began) != 300*time.Millisecond {
			t.Errorf("%v, %v after %v", got, err, time.Since(began))
		}
		r.setReady(false, "gone")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		if _, err := b.acquire(ctx, time.Hour); !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
	})
}

func TestBalancerUsesTheLeastBusyReplica(t *testing.T) {
	t.Parallel()
	var events []string
	balancer := newTestBalancer()
	balancer.changed = func(open bool, reason string) { events = append(events, fmt.Sprintf("%t %s", open, reason)) }
	a, b := mustAdd(t, balancer), mustAdd(t, balancer)
	if _, err := balancer.acquire(t.Context(), 0); !errors.Is(err, errNoReplica) {
		t.Errorf("no replica is ready: %v", err)
	}
	a.setReady(true, "")
	if _, err := balancer.acquire(t.Context(), 0); !errors.Is(err, errNoReplica) {
		t.Errorf("ready but not admitted: %v", err)
	}
	balancer.replace(nil, []*replica{a, b})
	b.setReady(true, "")
	for range 6 {
		balancer.acquire(t.Context(), 0)
	}
	if a.inWork != 3 || b.inWork != 3 {
		t.Errorf("%d and %d in work", a.inWork, b.inWork)
	}
	a.setReady(false, "a ended")
	if r, _ := balancer.acquire(t.Context(), 0); r != b {
		t.Error("a delivery for a replica that is not ready")
	}
	b.setReady(false, "b ended")
	b.setReady(false, "b ended again")
	b.setReady(true, "")
	want := []string{"true ", "false a ended", "true "}
	if len(events) != 3 || events[0] != want[0] || events[2] != want[2] {
		t.Errorf("events %q", events)
	}
	balancer.remove(a)
	for range 3 {
		a.release()
	}
	if n := a.drain(t.Context()); n != 0 {
		t.Errorf("%d are still in work", n)
	}
}

func TestSwitchOnlyToReplicasThatAreReadyTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, switched := time.Now(), time.Duration(0)
		s, m := newFakeLauncher(t, func(o *replicaOptions) { o.switched = func() { switched = time.Since(began) } })
		m.balancer.changed = func(open bool, reason string) {
			if !open {
				t.Errorf("nothing can be delivered: %s", reason)
			}
		}
		if err := m.start(t.Context(), versionOf(1, good), 2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		began = time.Now()
		s.pause = 1050 * time.Millisecond
		if err := m.deployAndRetire(t.Context(), versionOf(2, wavering)); err != nil {
			t.Fatal(err)
		}
		// The first replica is unready from 2.15 s, just before the second becomes ready, until 8.2 s.
		if switched < 8200*time.Millisecond || switched > 8300*time.Millisecond {
			t.Errorf("the messages moved after %s", switched)
		}
		if err := m.deploy(t.Context(), versionOf(3, fading)); !errors.Is(err, errRolledBack) || !errors.Is(err, errBroken) {
			t.Errorf("a version that was given up before all of it was ready: %v", err)
		}
		if v := m.current(); v.number != 2 || s.replicas() != 2 || s.helpersRunning() != 1 {
			t.Errorf("version %d serves, %d replicas and %d helpers run", v.number, s.replicas(), s.helpersRunning())
		}
		time.Sleep(10 * time.Second)
		m.balancer.changed = nil
		m.stop()
	})
}

// Stopping the previous helpers takes time, during which a ready replica may become unready.
func TestNoSwitchToReplicasThatBecameUnready(t *testing.T) {
	for k, want := range map[kind]string{fading: "broken", wavering: "it thinks"} {
		synctest.Test(t, func(t *testing.T) {
			s, m := newFakeLauncher(t, func(o *replicaOptions) {
				o.switching = func() { t.Errorf("a version that %s got the messages", k) }
			})
			if err := m.start(t.Context(), versionOf(1, good), 2); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			s.grace = 2 * time.Second
			err := m.deploy(t.Context(), versionOf(2, k))
			if !errors.Is(err, errRolledBack) || !strings.Contains(err.Error(), want) {
				t.Errorf("deploying a version that %s: %v", k, err)
			}
			time.Sleep(10 * time.Second)
			serving := m.current().number
			if open, _ := m.balancer.isOpen(); !open || serving != 1 || s.replicas() != 2 || s.helpersRunning() != 1 {
				t.Errorf("open %t; version %d serves, %d replicas and %d helpers run", open, serving, s.replicas(),
					s.helpersRunning())
			}
			now := m.now.Load()
			for _, r := range now.replicas {
				if r.version.number != 1 {
					t.Errorf("of version %d runs %s", r.version.number, r.name())
				}
			}
			if v := now.helpers.(*fakeProcesses).version; v.number != 1 {
				t.Errorf("the helpers are of version %d", v.number)
			}
			if err := m.stop(); err != nil || s.helpersRunning() != 0 {
				t.Errorf("the stop: %v; %d helpers run", err, s.helpersRunning())
			}
		})
	}
}

func TestManyReplicasEndTogether(t *testing.T) {
	const grace, many = 10 * time.Second, 20
	for what, change := range map[string]func(ctx context.Context, m *replicaSet) error{
		"a start":      func(ctx context.Context, m *replicaSet) error { return m.start(ctx, versionOf(1, good), many) },
		"a deployment": func(ctx context.Context, m *replicaSet) error { return m.deploy(ctx, versionOf(2, never)) },
		"a growth": func(ctx context.Context, m *replicaSet) error {
			m.setVersion(versionOf(1, never))
			return m.scale(ctx, 2*many)
		},
	} {
		for hurried, want := range map[time.Duration]time.Duration{time.Hour: grace, 3 * time.Second: 3 * time.Second, 0: 0} {
			synctest.Test(t, func(t *testing.T) {
				hurry, hurryNow := context.WithCancel(t.Context())
				s, m := newFakeLauncher(t, func(o *replicaOptions) { o.hurry = hurry })
				s.hurry = hurry
				if what != "a start" {
					if err := m.start(t.Context(), versionOf(1, good), many); err != nil {
						t.Fatal(err)
					}
				}
				s.pause, s.grace = time.Second, grace
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(many*time.Second-time.Second/2, cancel)
				began := time.Now()
				time.AfterFunc(many*time.Second-time.Second/2+hurried, hurryNow)
				if err := change(ctx, m); !errors.Is(err, context.Canceled) {
					t.Errorf("%s: %v", what, err)
				}
				if took := time.Since(began) - many*time.Second + time.Second/2; took != want {
					t.Errorf("%s that is hurried after %s: its replicas ended within %s, want %s", what, hurried, took, want)
				}
				began = time.Now()
				err := m.stop()
				if took := time.Since(began); err != nil || took > grace || s.replicas()+s.helpersRunning() != 0 {
					t.Errorf("the stop took %s (%v), and %d replicas run", took, err, s.replicas())
				}
				hurryNow()
			})
		}
	}
}
