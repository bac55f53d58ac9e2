package registry

import (
	"context"
	"maps"
	"time"

	"tendril/queue"
)

// Kind is what a record is about. It is part of the stored key.
type Kind string

// The kinds of records.
const (
	// KindLease records hold leases.
	KindLease Kind = "lease"
	// KindRun records hold scheduled runs. The stored name is that of earlier versions.
	KindRun Kind = "fire"
	// KindTask records hold up to when the times of a task are accounted for.
	KindTask Kind = "task"
	// KindPauses records hold the paused tasks of one environment.
	KindPauses Kind = "pauses"
)

// Fields are the values of a record by name: each a string, an int64 or a bool.
type Fields map[string]any

// text returns a field that is a string, "" if absent.
func (f Fields) text(name string) string {
	s, _ := f[name].(string)
	return s
}

// Record is one stored record.
type Record struct {
	Kind Kind
	Key  string
	// Version is chosen anew by the writer of each change. It is "" for kinds whose records are compared by all their
	// fields.
	Version string
	// Fields are nil for a record that is not stored, and not changed after a record is made.
	Fields Fields
	// Expires is when the store may delete the record; zero for never. It is not compared.
	Expires time.Time
}

// With returns a copy of the record that has these fields, too.
func (r Record) With(fields Fields) Record {
	all := Fields{}
	maps.Copy(all, r.Fields)
	maps.Copy(all, fields)
	r.Fields = all
	return r
}

// Same reports whether two records of one key are equal: with the same version, or, without versions, with the same
// fields.
func Same(a, b Record) bool {
	if a.Version != "" || b.Version != "" {
		return a.Version == b.Version
	}
	return maps.Equal(a.Fields, b.Fields)
}

// Change replaces one record by another of the same kind and key.
type Change struct{ Old, Next Record }

// Fence allows a change only while the stored lease has this term and is not released. The zero value allows every
// change.
type Fence struct {
	Lease string
	Term  int64
}

// Check refuses a lease without a term, and a term without a lease.
func (f Fence) Check() error {
	if (f.Lease == "") != (f.Term == 0) || f.Term < 0 {
		return queue.Errorf(queue.CodeInvalidParameterValue,
			"Lease %q with term %d: give a lease and its term, which counts from 1, or neither.", clip(f.Lease), f.Term)
	}
	return nil
}

// Refuse returns the error of a change in a term that is over, nil for the current one. stored is the fence's lease.
func (f Fence) Refuse(stored Record, change string) error {
	term, _ := stored.Fields["term"].(int64)
	released, _ := stored.Fields["released"].(bool)
	if term == f.Term && !released {
		return nil
	}
	return queue.Errorf(queue.CodeStaleTerm, "%s was not made: term %d of lease %s is over.", change, f.Term, f.Lease)
}

// Store keeps records. Both methods see the newest write, return when their context ends, and are safe for concurrent
// use. After an error a change may have been applied, may still be, or never; repeating it is harmless.
// Package registrytest has the suite for implementations.
type Store interface {
	// Read returns the records of a kind with these keys, in their order. A record that is not stored has no fields.
	Read(ctx context.Context, kind Kind, keys ...string) ([]Record, error)
	// Swap makes the changes whose Old is stored, and returns what is stored for each after that. Swapping to what is
	// stored already changes nothing: it repeats a call whose answer was lost. Whether one conflict prevents the other
	// changes is up to the store. The error is queue.ErrStaleTerm, and no change is made, if the fence's term is over; it
	// is checked without changes, too.
	Swap(ctx context.Context, fence Fence, changes ...Change) ([]Record, error)
}

// QueueStore is a store that is one database with queues.
type QueueStore interface {
	Store
	// Enqueue sends m to a queue and makes the changes, the first of which is a run's, all in one transaction, which is
	// fenced as in Swap. It sets the run's fields message and sequence to the message's. If the Old of a change is not
	// what is stored, it does nothing and returns what is stored for each.
	Enqueue(ctx context.Context, fence Fence, queueName string, m queue.Outgoing, changes ...Change) (sent queue.Sent,
		conflict []Record, err error)
}

// Scope names the records of one environment.
type Scope struct {
	// Name begins the keys of its tasks and runs, and is the key of its pauses; "" for callers that give full names.
	Name string
	// Lease is the lease whose term fences changes; "" if there is one instance only.
	Lease string
}

// Key returns the key of a task or a run.
func (s Scope) Key(name string) string {
	if s.Name == "" {
		return name
	}
	return s.Name + "/" + name
}

// Fence returns the fence of a term; term 0, of what a person requested, is not fenced.
func (s Scope) Fence(term int64) Fence {
	if s.Lease == "" || term == 0 {
		return Fence{}
	}
	return Fence{s.Lease, term}
}
