package broker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"tendril/broker"
	"tendril/internal/registry"
	"tendril/internal/registry/registrytest"
	"tendril/queue"
)

var _ registry.QueueStore = (*broker.Registry)(nil)

func openRegistry(t testing.TB, dir string) (*broker.Broker, *broker.Registry) {
	t.Helper()
	b, err := broker.Open(dir, &broker.Options{NoWaits: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil && !errors.Is(err, queue.ErrClosed) {
			t.Errorf("closing: %v", err)
		}
	})
	return b, b.Registry()
}

func TestBrokerIsARegistry(t *testing.T) {
	t.Parallel()
	b, r := openRegistry(t, t.TempDir())
	if err := b.CreateQueue(t.Context(), "jobs", nil, nil); err != nil {
		t.Fatal(err)
	}
	leases := registry.NewLeases(r)
	registrytest.Leases(t, func(testing.TB) registrytest.LeaseStore { return leases })
	registrytest.Runs(t, func(_ testing.TB, scope registry.Scope) registrytest.Registry {
		return registry.NewRuns(r, scope)
	}, leases)
}

func TestRegistryIsDurable(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), context.Background()
	b, r := openRegistry(t, dir)
	lease := queue.Lease{Owner: "node", Version: "a", Term: 3, Duration: 15 * time.Second, Data: "http://127.0.0.1:1"}
	if _, _, err := registry.NewLeases(r).Swap(ctx, "tasks", queue.Lease{}, lease); err != nil {
		t.Fatal(err)
	}
	if err := registry.NewRuns(r, registry.Scope{}).SetPaused(ctx, "report", "as long as the disk is full", true); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	_, r = openRegistry(t, dir)
	if got, err := registry.NewLeases(r).Read(ctx, "tasks"); got != lease || err != nil {
		t.Errorf("read %+v, %v; want %+v", got, err, lease)
	}
	if got, err := registry.NewRuns(r, registry.Scope{}).Paused(ctx); len(got) != 1 || got["report"] != "as long as the disk is full" || err != nil {
		t.Errorf("paused %v, %v", got, err)
	}
}

func TestClosedRegistry(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b, r := openRegistry(t, t.TempDir())
	if err := b.CreateQueue(ctx, "work", nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	leases, runs := registry.NewLeases(r), registry.NewRuns(r, registry.Scope{})
	_, readErr := leases.Read(ctx, "tasks")
	_, _, swapErr := leases.Swap(ctx, "tasks", queue.Lease{}, queue.Lease{Version: "a"})
	_, enqueueErr := runs.Enqueue(ctx, 0, registry.Run{Queue: "work", ID: "a", ScheduledAt: time.Unix(1, 0), Manual: true,
		Message: queue.Outgoing{Body: "x"}})
	for what, err := range map[string]error{"read": readErr, "swap": swapErr, "run": enqueueErr} {
		if !errors.Is(err, queue.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
