package registry

import (
	"context"
	"fmt"
	"time"

	"tendril/queue"
)

// Leases reads and writes the leases in a store.
type Leases struct{ store Store }

// NewLeases returns the leases in store.
func NewLeases(store Store) *Leases { return &Leases{store} }

// Read returns a lease, or the zero value if it does not exist.
func (l *Leases) Read(ctx context.Context, name string) (queue.Lease, error) {
	if err := checkName("lease", name); err != nil {
		return queue.Lease{}, err
	}
	records, err := l.store.Read(ctx, KindLease, name)
	if err != nil {
		return queue.Lease{}, err
	}
	return leaseOf(records[0])
}

// Swap stores next if the stored Version is old.Version, where "" means no lease. won is also true if next was already
// stored, so that a call can be repeated. Duration is stored in whole milliseconds.
func (l *Leases) Swap(ctx context.Context, name string, old, next queue.Lease) (won bool, current queue.Lease, err error) {
	if err := checkLease(name, next); err != nil {
		return false, queue.Lease{}, err
	}

	change := Change{leaseRecord(name, old), leaseRecord(name, next)}
	if old.Version == "" {
		change.Old.Fields = nil
	}
	stored, err := l.store.Swap(ctx, Fence{}, change)
	if err != nil {
		return false, queue.Lease{}, err
	}

	current, err = leaseOf(stored[0])
	return err == nil && current.Version == next.Version, current, err
}

func leaseRecord(name string, l queue.Lease) Record {
	return Record{Kind: KindLease, Key: name, Version: l.Version, Fields: Fields{"owner": l.Owner, "term": l.Term,
		"duration_ms": l.Duration.Milliseconds(), "released": l.Released, "data": l.Data}}
}

// leaseOf rejects a record of another kind, because treating it as a free lease could result in two leaders.
func leaseOf(r Record) (queue.Lease, error) {
	if r.Fields == nil {
		return queue.Lease{}, nil
	}
	term, termOK := r.Fields["term"].(int64)
	ms, msOK := r.Fields["duration_ms"].(int64)
	released, releasedOK := r.Fields["released"].(bool)
	if r.Version == "" || !termOK || !msOK || !releasedOK {
		return queue.Lease{}, fmt.Errorf("item %q of the registry is not a lease: delete it, or use another table",
			string(r.Kind)+":"+r.Key)
	}
	return queue.Lease{Owner: r.Fields.text("owner"), Version: r.Version, Term: term,
		Duration: time.Duration(ms) * time.Millisecond, Released: released, Data: r.Fields.text("data")}, nil
}
