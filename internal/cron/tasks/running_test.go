package tasks

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tendril/internal/cron/periodic"
	"tendril/queue"
)

type leases struct {
	mu     sync.Mutex
	stored map[string]queue.Lease
	writes int
	down   bool
}

var errDown = errors.New("the registry is down")

func (l *leases) Read(_ context.Context, name string) (queue.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return queue.Lease{}, errDown
	}
	return l.stored[name], nil
}

func (l *leases) setDown(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
}

func (l *leases) Swap(_ context.Context, name string, old, next queue.Lease) (bool, queue.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes++
	if l.down {
		return false, queue.Lease{}, errDown
	}
	if won := l.stored[name].Version == old.Version; !won {
		return false, l.stored[name], nil
	}
	l.stored[name] = next
	return true, next, nil
}

// Runs of tidy must not overlap. crash stops the instance without cleanup.
func instance(t *testing.T, store *leases) (account *Account, crash func()) {
	t.Helper()
	run, crash := context.WithCancel(t.Context())
	account = &Account{inFlight: map[string]int{}, mayOverlap: func(task string) bool { return task != "tidy" },
		scheduler: periodic.New(nil, &Election{registry: &registryFinder{opts: RegistryOptions{Local: true}}}, nil, periodic.Options{}),
		shared: &runningTasks{store: store, queue: "jobs", log: slog.New(slog.DiscardHandler), run: run,
			work: &sync.WaitGroup{}, marked: map[string]context.CancelFunc{}, seen: map[string]seenLease{}}}
	return account, crash
}

func TestRunsOfOtherInstancesAreKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &leases{stored: map[string]queue.Lease{}}
		a, crash := instance(t, store)
		b, end := instance(t, store)
		defer end()
		want := func(running bool, when string) {
			t.Helper()
			if got, err := b.shared.runsElsewhere(t.Context(), "tidy"); got != running || err != nil {
				t.Errorf("%s: a run elsewhere: %v, %v", when, got, err)
			}
		}
		want(false, "before")
		a.Begun("tidy")
		time.Sleep(markAfter / 2)
		a.Ended(periodic.Outcome{Task: "tidy"})
		a.Begun("other")
		time.Sleep(2 * markAfter)
		if store.writes > 0 {
			t.Errorf("%d writes for a short run and a task that may overlap", store.writes)
		}
		a.Begun("tidy")
		time.Sleep(2 * markAfter)
		for range 10 {
			want(true, "while it runs")
			time.Sleep(markLease)
		}
		a.Begun("tidy")
		a.Ended(periodic.Outcome{Task: "tidy"})
		time.Sleep(time.Second)
		want(true, "while one of two runs")
		a.Ended(periodic.Outcome{Task: "tidy"})
		time.Sleep(time.Second)
		want(false, "after its end")

		store.setDown(true)
		a.Begun("tidy")
		time.Sleep(2 * markAfter)
		if _, err := b.shared.runsElsewhere(t.Context(), "tidy"); !errors.Is(err, errDown) {
			t.Errorf("without the registry: %v", err)
		}
		store.setDown(false)
		time.Sleep(markRetry)
		want(true, "when the registry is back")
		crash()
		time.Sleep(markLease / 2)
		want(true, "right after a crash")
		time.Sleep(markLease)
		want(false, "a lease after the crash")
	})
}
