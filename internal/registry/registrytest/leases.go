package registrytest

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"tendril/queue"
)

// LeaseStore stores leases.
type LeaseStore interface {
	Read(ctx context.Context, name string) (queue.Lease, error)
	Swap(ctx context.Context, name string, old, next queue.Lease) (won bool, current queue.Lease, err error)
}

// Leases tests the stores that newStore returns, one per test case. They may share records.
func Leases(t *testing.T, newStore func(t testing.TB) LeaseStore) {
	t.Helper()
	run := time.Now().UnixNano()
	for i, c := range []struct {
		name  string
		check func(b *leaseTest)
	}{
		{"a missing lease reads as the zero lease", func(b *leaseTest) { b.stores(queue.Lease{}) }},
		{"a lease comes back as it was written", roundTrip},
		{"a swap from the stored version wins", swaps(swapStep{"", "a", true}, swapStep{"a", "b", true})},
		{"a swap from another version loses and returns the stored lease", swaps(swapStep{"", "a", true},
			swapStep{"a", "b", true}, swapStep{"a", "c", false}, swapStep{"never stored", "d", false})},
		{"a swap from nothing loses to a stored lease", swaps(swapStep{"", "a", true}, swapStep{"", "b", false})},
		{"a swap from something loses to a missing lease", swaps(swapStep{"a", "b", false})},
		{"only the version is compared", comparesOnlyVersions},
		{"a repeated swap has won", swaps(swapStep{"", "a", true}, swapStep{"", "a", true},
			swapStep{"a", "b", true}, swapStep{"a", "b", true})},
		{"a repeat after the next write has lost", swaps(swapStep{"", "a", true}, swapStep{"a", "b", true},
			swapStep{"b", "c", true}, swapStep{"a", "b", false})},
		{"a lease without a version is refused", refusesMissingVersion},
		{"leases with different names are independent", namesAreSeparate},
		{"one of many concurrent swaps wins", oneOfManyWins},
		{"calls with an ended context fail", endedContextFails},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.check(&leaseTest{TB: t, store: newStore(t), name: fmt.Sprintf("suite-%d-%d", run, i)})
		})
	}
}

type leaseTest struct {
	testing.TB
	store LeaseStore
	name  string
}

func (b *leaseTest) swap(old, next queue.Lease, won bool, current queue.Lease) {
	b.Helper()
	gotWon, got, err := b.store.Swap(context.Background(), b.name, old, next)
	if err != nil {
		b.Fatalf("Swap %q to %q: %v", old.Version, next.Version, err)
	}
	if gotWon != won || got != current {
		b.Errorf("Swap %q to %q returned %v with %+v, want %v with %+v", old.Version, next.Version, gotWon, got, won, current)
	}
	b.stores(current)
}

func (b *leaseTest) stores(want queue.Lease) {
	b.Helper()
	if stored, err := b.store.Read(context.Background(), b.name); stored != want || err != nil {
		b.Errorf("stored is %+v, %v; want %+v", stored, err, want)
	}
}

func lease(version string, term int64) queue.Lease {
	return queue.Lease{Owner: "node", Version: version, Term: term, Duration: 15 * time.Second}
}

func roundTrip(b *leaseTest) {
	var old queue.Lease
	for _, next := range []queue.Lease{
		{Owner: "node-1", Version: "a", Term: 1, Duration: 15 * time.Second, Data: "http://127.0.0.1:9325"},
		{Owner: "Knoten \u00fc \u2713 'quoted\" \\", Version: "b", Term: math.MaxInt64, Duration: time.Millisecond,
			Data: "line\nline\ttab"},
		{Version: "c", Term: 1<<53 + 1, Duration: 90 * time.Minute, Released: true},
	} {
		b.swap(old, next, true, next)
		old = next
	}
}

type swapStep struct {
	old, next string
	won       bool
}

func swaps(steps ...swapStep) func(b *leaseTest) {
	return func(b *leaseTest) {
		leases := map[string]queue.Lease{}
		current := queue.Lease{}
		for i, s := range steps {
			next, repeated := leases[s.next]
			if !repeated {
				next = lease(s.next, int64(i+1))
				leases[s.next] = next
			}
			if s.won {
				current = next
			}
			b.swap(queue.Lease{Version: s.old}, next, s.won, current)
		}
	}
}

func comparesOnlyVersions(b *leaseTest) {
	first, second := lease("a", 1), lease("b", 2)
	b.swap(queue.Lease{}, first, true, first)
	b.swap(queue.Lease{Version: "a", Term: 99, Owner: "x", Released: true}, second, true, second)
}

func refusesMissingVersion(b *leaseTest) {
	if _, _, err := b.store.Swap(context.Background(), b.name, queue.Lease{},
		queue.Lease{Owner: "node", Term: 1}); err == nil {
		b.Error("Swap took a lease without a version")
	}
	b.stores(queue.Lease{})
}

func namesAreSeparate(b *leaseTest) {
	first := lease("a", 1)
	b.swap(queue.Lease{}, first, true, first)
	other := &leaseTest{TB: b.TB, store: b.store, name: b.name + "-other"}
	other.stores(queue.Lease{})
	second := lease("b", 7)
	other.swap(queue.Lease{}, second, true, second)
	b.stores(first)
}

func oneOfManyWins(b *leaseTest) {
	const nodes, rounds = 8, 5
	old := queue.Lease{}
	for round := range rounds {
		var mu sync.Mutex
		var winners, reported []queue.Lease
		var all sync.WaitGroup
		for n := range nodes {
			all.Go(func() {
				next := lease(fmt.Sprintf("round %d node %d", round, n), int64(round+1))
				won, current, err := b.store.Swap(context.Background(), b.name, old, next)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					b.Errorf("Swap: %v", err)
				}
				if won {
					winners = append(winners, next)
				}
				reported = append(reported, current)
			})
		}

		all.Wait()

		if len(winners) != 1 {
			b.Fatalf("round %d: %d winners: %+v", round, len(winners), winners)
		}
		for _, current := range reported {
			if current != winners[0] {
				b.Errorf("round %d: Swap returned the lease %+v, stored is %+v", round, current, winners[0])
			}
		}
		old = winners[0]
	}
}

func endedContextFails(b *leaseTest) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := b.store.Read(ctx, b.name); err == nil {
		b.Error("Read with a context that has ended returned no error")
	}
	if _, _, err := b.store.Swap(ctx, b.name, queue.Lease{}, lease("a", 1)); err == nil {
		b.Error("Swap with a context that has ended returned no error")
	}
}
