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

// LeaseStore has leases.
type LeaseStore interface {
	Read(ctx context.Context, name string) (queue.Lease, error)
	Swap(ctx context.Context, name string, old, next queue.Lease) (won bool, current queue.Lease, err error)
}

// Leases checks the leases that newStore returns, one per case. They may share their records: each case uses names of
// its own, made of the case's name and the time.
func Leases(t *testing.T, newStore func(t testing.TB) LeaseStore) {
	t.Helper()
	run := time.Now().UnixNano()
	for i, c := range []struct {
		name  string
		check func(b *bench)
	}{
		{"what was never written reads as the zero lease", func(b *bench) { b.stores(queue.Lease{}) }},
		{"a lease comes back as it was written", roundTrip},
		{"a swap from the stored version wins", swapWins},
		{"a swap from another version loses and is told what is stored", swapLoses},
		{"a swap from nothing loses where something is stored", fromNothing},
		{"a swap from something loses where nothing is stored", fromSomething},
		{"only the version is compared", onlyVersion},
		{"a repeated swap has won", repeated},
		{"a repeat that comes after the next write has lost", repeatedLate},
		{"a lease without a version is refused", noVersion},
		{"names are apart", apart},
		{"one of many wins", oneOfMany},
		{"a context that has ended is obeyed", ended},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.check(&bench{TB: t, store: newStore(t), name: fmt.Sprintf("suite-%d-%d", run, i)})
		})
	}
}

// bench is one case's store with the calls of a case, each of which fails the
// test when the store reports an error.
type bench struct {
	testing.TB
	store LeaseStore
	name  string
}

func (b *bench) read() queue.Lease {
	b.Helper()
	l, err := b.store.Read(context.Background(), b.name)
	if err != nil {
		b.Fatalf("Read: %v", err)
	}
	return l
}

func (b *bench) swap(old, next queue.Lease) (bool, queue.Lease) {
	b.Helper()
	won, current, err := b.store.Swap(context.Background(), b.name, old, next)
	if err != nil {
		b.Fatalf("Swap %q to %q: %v", old.Version, next.Version, err)
	}
	return won, current
}

// want fails the test unless the swap ended so and left current stored.
func (b *bench) want(won bool, current queue.Lease) func(bool, queue.Lease) {
	b.Helper()
	return func(gotWon bool, gotCurrent queue.Lease) {
		b.Helper()
		if gotWon != won || gotCurrent != current {
			b.Errorf("Swap returned %v with %+v, want %v with %+v", gotWon, gotCurrent, won, current)
		}
		b.stores(current)
	}
}

// stores fails the test unless this is stored.
func (b *bench) stores(want queue.Lease) {
	b.Helper()
	if stored := b.read(); stored != want {
		b.Errorf("stored is %+v, want %+v", stored, want)
	}
}

func lease(version string, term int64) queue.Lease {
	return queue.Lease{Owner: "node", Version: version, Term: term, Duration: 15 * time.Second}
}

func roundTrip(b *bench) {
	var old queue.Lease
	for _, next := range []queue.Lease{
		{Owner: "node-1", Version: "a", Term: 1, Duration: 15 * time.Second, Data: "http://127.0.0.1:9325"},
		{Owner: "Knoten \u00fc \u2713 'quoted\" \\", Version: "b", Term: math.MaxInt64, Duration: time.Millisecond,
			Data: "line\nline\ttab"},
		{Version: "c", Term: 1<<53 + 1, Duration: 90 * time.Minute, Released: true},
	} {
		b.want(true, next)(b.swap(old, next))
		old = next
	}
}

func swapWins(b *bench) {
	first, second := lease("a", 1), lease("b", 2)
	b.want(true, first)(b.swap(queue.Lease{}, first))
	b.want(true, second)(b.swap(first, second))
}

func swapLoses(b *bench) {
	first, second := lease("a", 1), lease("b", 1)
	b.swap(queue.Lease{}, first)
	b.swap(first, second)
	b.want(false, second)(b.swap(first, lease("c", 2)))
	b.want(false, second)(b.swap(lease("never stored", 1), lease("d", 2)))
}

func fromNothing(b *bench) {
	first := lease("a", 1)
	b.swap(queue.Lease{}, first)
	b.want(false, first)(b.swap(queue.Lease{}, lease("b", 1)))
}

func fromSomething(b *bench) {
	b.want(false, queue.Lease{})(b.swap(lease("a", 1), lease("b", 2)))
}

func onlyVersion(b *bench) {
	first, second := lease("a", 1), lease("b", 2)
	b.swap(queue.Lease{}, first)
	b.want(true, second)(b.swap(queue.Lease{Version: "a", Term: 99, Owner: "x", Released: true}, second))
}

func repeated(b *bench) {
	first, second := lease("a", 1), lease("b", 2)
	b.swap(queue.Lease{}, first)
	b.want(true, first)(b.swap(queue.Lease{}, first))
	b.swap(first, second)
	b.want(true, second)(b.swap(first, second))
}

func repeatedLate(b *bench) {
	first, second, third := lease("a", 1), lease("b", 1), lease("c", 2)
	b.swap(queue.Lease{}, first)
	b.swap(first, second)
	b.swap(second, third)
	b.want(false, third)(b.swap(first, second))
}

func noVersion(b *bench) {
	if _, _, err := b.store.Swap(context.Background(), b.name, queue.Lease{},
		queue.Lease{Owner: "node", Term: 1}); err == nil {
		b.Error("Swap took a lease without a version")
	}
	b.stores(queue.Lease{})
}

func apart(b *bench) {
	first := lease("a", 1)
	b.swap(queue.Lease{}, first)
	other := &bench{TB: b.TB, store: b.store, name: b.name + "-other"}
	other.stores(queue.Lease{})
	second := lease("b", 7)
	other.want(true, second)(other.swap(queue.Lease{}, second))
	b.stores(first)
}

func oneOfMany(b *bench) {
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
				b.Errorf("round %d: one was told that %+v is stored, it is %+v", round, current, winners[0])
			}
		}
		old = winners[0]
	}
}

func ended(b *bench) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := b.store.Read(ctx, b.name); err == nil {
		b.Error("Read with a context that has ended returned no error")
	}
	if _, _, err := b.store.Swap(ctx, b.name, queue.Lease{}, lease("a", 1)); err == nil {
		b.Error("Swap with a context that has ended returned no error")
	}
}
