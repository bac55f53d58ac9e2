package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tendril/api"
	"tendril/internal/bundle"
	"tendril/internal/delivery/deliver"
	"tendril/queue"
)

func namesOf(s *replicaSet) []string { return replicaNames(s.now.Load().replicas) }

// "web" also selects a replica that was renamed by an earlier restart.
func TestAReplicaIsRestartedWithoutAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := startReplicas(t, 2, nil)
		other := m.now.Load().replicas[1]
		ctx, cancel := context.WithCancel(t.Context())
		delivered, refused, wait := s.load(ctx)
		time.Sleep(time.Second)
		for _, restart := range []struct{ name, now string }{{"web", "web-3"}, {"web", "web"}, {"web", "web-3"}, {"web-3", "web"}} {
			now, err := m.restart(t.Context(), restart.name)
			if err != nil || now != restart.now {
				t.Errorf("%s was restarted as %q, %v, want %s", restart.name, now, err, restart.now)
			}
			time.Sleep(time.Second)
		}
		cancel()
		wait()
		if refused.Load() > 0 || delivered.Load() == 0 || len(s.forced()) > 0 {
			t.Errorf("%d deliveries, %d refused, forced: %v", delivered.Load(), refused.Load(), s.forced())
		}
		if names := namesOf(m); s.replicas() != 2 || !slices.Equal(names, []string{"web", "web-2"}) ||
			m.now.Load().replicas[1] != other {
			t.Errorf("%d replicas run: %v", s.replicas(), names)
		}
	})
}

// Names of stopped replicas select serving ones by position.
func TestEveryShownReplicaNameIsAcceptedAfterADeployment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := startReplicas(t, 2, nil)
		if err := m.deploy(t.Context(), versionOf(2, good)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		r, err := m.balancer.acquire(t.Context(), time.Second)
		if err != nil || r.name() != "web-3" {
			t.Fatalf("the delivery is at %v, %v, want web-3", r, err)
		}
		for _, restart := range []struct{ name, now string }{{"web-3", "web"}, {"web-2", "web-2"}, {"web", "web-4"}} {
			if now, err := m.restart(t.Context(), restart.name); err != nil || now != restart.now {
				t.Errorf("%s was restarted as %q, %v, want %s", restart.name, now, err, restart.now)
			}
			time.Sleep(time.Second)
		}
		var refused *api.Error
		if _, err := m.restart(t.Context(), "web-3"); !errors.As(err, &refused) || refused.Status != http.StatusConflict ||
			refused.Message != `process "web-3" is draining: it was replaced and stops after its deliveries` ||
			refused.Hint != "restart one of web-4, web-2" {
			t.Errorf("a draining replica: %v", err)
		}
		r.release()
		time.Sleep(time.Second)
		if _, err := m.restart(t.Context(), "web-3"); !errors.Is(err, errNoProcess) {
			t.Errorf("a replica that has stopped: %v", err)
		}
		if names := namesOf(m); s.replicas() != 2 || !slices.Equal(names, []string{"web-4", "web-2"}) {
			t.Errorf("%d replicas run: %v", s.replicas(), names)
		}
	})
}

func TestDrainingReplicaIsNotRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, m := startReplicas(t, 2, nil)
		var held []*replica
		for range 2 {
			r, err := m.balancer.acquire(t.Context(), time.Second)
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, r)
		}
		if err := m.deploy(t.Context(), versionOf(2, good)); err != nil {
			t.Fatal(err)
		}
		a := &App{replicas: m, quarantine: &quarantine{replicas: m}}
		for _, r := range held {
			if r.name() == bundle.MainProcess {
				continue
			}
			var refused *api.Error
			if _, err := m.restart(t.Context(), r.name()); !errors.As(err, &refused) || refused.Status != http.StatusConflict {
				t.Errorf("%s, which is draining: %v", r.name(), err)
			}
			if role := a.Role(r.name()); role != api.RoleRetired {
				t.Errorf("%s has the role %q", r.name(), role)
			}
		}
		for _, r := range held {
			r.release()
		}
		if names := namesOf(m); !slices.Equal(names, []string{"web-3", "web-4"}) || a.Role("web-3") != "" {
			t.Errorf("the replicas are %v", names)
		}
		time.Sleep(time.Second)
		if now, err := m.restart(t.Context(), "web-2"); now != "web" || err != nil {
			t.Errorf("web-2, which has stopped: %q, %v", now, err)
		}
	})
}

// A shutdown that starts during the restart waits, so that restarted can read the replicas.
func TestARestartIsReportedBeforeAShutdownRemovesTheReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m *replicaSet
		var reported []string
		stopped := make(chan error, 1)
		_, m = newFakeLauncher(t, func(o *replicaOptions) {
			o.restarted = func() {
				go func() { stopped <- m.stop() }()
				synctest.Wait()
				reported = namesOf(m)
			}
		})
		if err := m.start(t.Context(), versionOf(1, good), 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		now, err := m.restart(t.Context(), "web")
		if err != nil || !slices.Equal(reported, []string{now}) {
			t.Errorf("the restart as %q, %v, was reported with the replicas %q", now, err, reported)
		}
		if err := <-stopped; err != nil || len(namesOf(m)) > 0 {
			t.Errorf("after the shutdown: %v, %v", err, namesOf(m))
		}
	})
}

func TestARestartThatFailsLeavesTheReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := startReplicas(t, 1, nil)
		before := m.now.Load().replicas[0]
		for _, k := range []kind{unstarted, crashing, never} {
			m.setVersion(versionOf(1, k))
			if _, err := m.restart(t.Context(), "web"); err == nil {
				t.Errorf("a replica that %s was put in the place of one that works", k)
			}
			if ready, _ := before.isReady(); s.replicas() != 1 || m.now.Load().replicas[0] != before || !ready {
				t.Errorf("%s: %d replicas run, of which %v serve", k, s.replicas(), namesOf(m))
			}
		}
	})
}

func TestTheReplicaForQuarantinedMessagesIsRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, m := startReplicas(t, 1, nil)
		q := &quarantine{replicas: m}
		if found, err := q.restart("web-2"); found || err != nil {
			t.Errorf("without a replica: %v, %v", found, err)
		}
		name := ""
		for range 2 {
			q.deliver(t.Context(), func(r *replica) queue.Result {
				name = r.name()
				if found, err := q.restart(name); !found || err == nil {
					t.Errorf("during a delivery: %v, %v, want a refusal", found, err)
				}
				if role := (&App{replicas: m, quarantine: q}).Role(name); role != api.RoleQuarantine {
					t.Errorf("%s has the role %q", name, role)
				}
				return queue.Result{}
			})
			if found, err := q.restart("web"); found || err != nil {
				t.Errorf("a replica that serves: %v, %v", found, err)
			}
			if found, err := q.restart(name); !found || err != nil || q.running() != nil {
				t.Errorf("between deliveries: %v, %v", found, err)
			}
		}
		if name == "" {
			t.Error("no message was delivered")
		}
	})
}

func TestACrashInQuarantineDoesNotDelayTheNextMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, m := startReplicas(t, 1, nil)
		q := &quarantine{replicas: m}
		route := &Route{balancer: m.balancer, detector: newDetector(slog.New(slog.DiscardHandler)), quarantine: q,
			open: func(address string) (*deliver.Client, error) {
				return deliver.NewClient(&deliver.Options{Target: address})
			}}
		poison := &queue.Message{ID: "poison"}
		route.detector.crashed(from("jobs", poison.ID), time.Now())
		var replicas []*replica
		for range 3 {
			crash := func(*deliver.Client, context.Context, []*queue.Message) []queue.Result {
				r := q.running()
				replicas = append(replicas, r)
				r.mu.Lock()
				close(r.exited)
				r.exited = make(chan struct{})
				r.mu.Unlock()
				return []queue.Result{{Outcome: queue.Failed}}
			}
			result := route.deliver(t.Context(), []*queue.Message{poison}, crash)[0]
			if !strings.HasPrefix(result.Reason, "the app exited") || q.running() != nil {
				t.Errorf("after a crash: %+v, the replica is kept: %t", result, q.running() != nil)
			}
		}
		if len(replicas) != 3 || replicas[0] == replicas[1] || replicas[1] == replicas[2] {
			t.Errorf("the message was delivered %d times, not each time to a new replica", len(replicas))
		}
	})
}

func TestOneHelperIsRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := startReplicas(t, 1, nil)
		helpers, ok := m.now.Load().helpers.(*fakeProcesses)
		now, err := m.restart(t.Context(), "mailer")
		if err != nil || now != "mailer" || !ok || helpers.restarts.Load() != 1 {
			t.Errorf("the helper was restarted as %q: %v", now, err)
		}
		if _, err := m.restart(t.Context(), "web-2"); !errors.Is(err, errNoProcess) {
			t.Errorf("a process that is not there: %v", err)
		}
		if s.replicas() != 1 {
			t.Errorf("%d replicas run", s.replicas())
		}
	})
}

func TestADeploymentTakesThePlaceOfARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := startReplicas(t, 1, nil)
		m.setVersion(versionOf(1, never))
		restarted := make(chan error)
		go func() { _, err := m.restart(t.Context(), "web"); restarted <- err }()
		time.Sleep(time.Second)
		if _, err := m.restart(t.Context(), "web"); !errors.Is(err, ErrBusy) {
			t.Errorf("a second restart at a time: %v", err)
		}
		deployed := make(chan error)
		go func() { deployed <- m.deployAndRetire(t.Context(), versionOf(2, good)) }()
		if err := <-restarted; !errors.Is(err, ErrBusy) {
			t.Errorf("the restart: %v", err)
		}
		if err := <-deployed; err != nil || s.replicas() != 1 || m.current().number != 2 {
			t.Errorf("%v; %d replicas run, version %d serves", err, s.replicas(), m.current().number)
		}
	})
}

func TestTheNextChangeNeedNotWaitForOldVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var retired []int
		s, m := newFakeLauncher(t, func(o *replicaOptions) {
			o.drainTimeout = func() time.Duration { return 24 * time.Hour }
			o.retired = func(v version) {
				mu.Lock()
				defer mu.Unlock()
				retired = append(retired, v.number)
			}
		})
		if err := m.start(t.Context(), versionOf(1, good), 1); err != nil {
			t.Fatal(err)
		}

		var work []*replica
		for number := 2; number <= 4; number++ {
			time.Sleep(time.Second)
			busy, err := m.balancer.acquire(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			work = append(work, busy)
			if err := m.deploy(t.Context(), versionOf(number, good)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := m.restart(t.Context(), m.now.Load().replicas[0].name()); err != nil {
			t.Error("the restart:", err)
		}
		if err := m.scale(t.Context(), 2); err != nil {
			t.Error("the scale-out:", err)
		}
		time.Sleep(time.Hour)
		if draining := m.draining(); len(draining) != 3 || s.replicas() != 5 || m.current().number != 4 {
			t.Errorf("%d replicas drain, %d run, version %d serves", len(draining), s.replicas(), m.current().number)
		}

		for _, busy := range work {
			busy.release()
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(retired)
		if s.replicas() != 2 || len(s.forced()) != 0 || !slices.Equal(retired, []int{1, 2, 3, 4}) {
			t.Errorf("%d replicas run, %d were forced, retired %v", s.replicas(), len(s.forced()), retired)
		}
		if err := m.stop(); err != nil {
			t.Error(err)
		}
	})
}
