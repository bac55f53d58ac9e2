package leader

import (
	"context"

	"tendril/queue"
)

// Store keeps leases by name and replaces them by compare-and-swap. Both
// methods must see the newest write (no stale replicas), return when their
// context ends, and be safe for concurrent use. Package leadertest holds the
// suite that every implementation passes.
//
// An error says that the outcome is unknown: a swap that reports one may have
// been applied, may be applied later, or never.
type Store interface {
	// Read returns the lease stored under name, the zero value when there is
	// none.
	Read(ctx context.Context, name string) (queue.Lease, error)
	// Swap stores next under name if the Version stored there is old.Version
	// ("" when nothing is stored); the other fields of old are not looked at.
	// It returns whether it won and what is stored after the call.
	//
	// A Swap whose next is stored already has won: it repeats a call whose
	// answer was lost. A next without a Version is refused with an error.
	Swap(ctx context.Context, name string, old, next queue.Lease) (won bool, current queue.Lease, err error)
}
