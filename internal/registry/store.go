package registry

import (
	"context"
	"maps"
	"time"

	"tendril/queue"
)

// Kind is a kind of record, part of the stored key.
type Kind string

// Kinds of records.
const (
	KindLease Kind = "lease"
	// KindRun has the value of earlier versions.
	KindRun    Kind = "fire"
	KindTask   Kind = "task"
	KindPauses Kind = "pauses"
)

// Fields maps names to values of type string, int64 or bool.
type Fields map[string]any

func (f Fields) text(name string) string {
	s, _ := f[name].(string)
	return s
}

// Record is a stored record.
type Record struct {
	Kind Kind
	Key  string
	// Version changes with each write. It is "" for kinds that are compared by all fields.
	Version string
	// Fields is nil if the record does not exist. It must not be modified.
	Fields Fields
	// After Expires, the store may delete the record; zero means never.
	Expires time.Time
}

// With returns a copy with fields added or replaced.
func (r Record) With(fields Fields) Record {
	all := Fields{}
	maps.Copy(all, r.Fields)
	maps.Copy(all, fields)
	r.Fields = all
	return r
}

// Without returns a copy without the field.
func (r Record) Without(field string) Record {
	others := r.With(nil)
	delete(others.Fields, field)
	return others
}

// Same reports whether two records with the same key have the same version or, without versions, the same fields.
func Same(a, b Record) bool {
	if a.Version != "" || b.Version != "" {
		return a.Version == b.Version
	}
	return maps.Equal(a.Fields, b.Fields)
}

// Change replaces a record with another of the same kind and key.
type Change struct{ Old, Next Record }

// Fence allows a change only while the stored lease has this term and is not released. The zero value allows every
// change.
type Fence struct {
	Lease string
	Term  int64
}

// Check rejects a fence with only a lease or only a term, or a negative term.
func (f Fence) Check() error {
	if (f.Lease == "") != (f.Term == 0) || f.Term < 0 {
		return errInvalid("Lease %q with term %d: give a lease and its term, which counts from 1, or neither.", clip(f.Lease),
			f.Term)
	}
	return nil
}

// Refuse returns an error if the fence's term has ended. stored is the record of the lease, and change is the subject
// of the error.
func (f Fence) Refuse(stored Record, change string) error {
	term, _ := stored.Fields["term"].(int64)
	released, _ := stored.Fields["released"].(bool)
	if term == f.Term && !released {
		return nil
	}
	return queue.Errorf(queue.CodeStaleTerm, "%s was rejected: term %d of lease %s has ended.", change, f.Term, f.Lease)
}

// Store stores records. Its methods see the latest write, return when their context ends, and are safe for concurrent
// use. After an error, a change may have been applied or may still be.
type Store interface {
	// Read returns one record for each key. A missing record has no Fields.
	Read(ctx context.Context, kind Kind, keys ...string) ([]Record, error)
	// Swap makes each change whose Old is stored, and returns the records stored afterwards. A change whose Next is
	// already stored has no effect, so that a call can be repeated. It depends on the store whether a conflict prevents
	// the other changes. If the fence's term has ended, even without changes, the error is [queue.ErrStaleTerm] and
	// nothing is written.
	Swap(ctx context.Context, fence Fence, changes ...Change) ([]Record, error)
}

// QueueStore is a store in the same database as its queues.
type QueueStore interface {
	Store
	// Enqueue sends m and makes the changes in one transaction, fenced as in Swap. The first change is for the run's
	// record, whose fields message and sequence Enqueue sets. On a conflict, nothing changes and the stored records are
	// returned.
	Enqueue(ctx context.Context, fence Fence, queueName string, m queue.Outgoing, changes ...Change) (sent queue.Sent,
		conflict []Record, err error)
}

// Scope determines the keys of an environment's records.
type Scope struct {
	// Name is the key prefix of tasks and runs, and the key of the pauses; may be "".
	Name string
	// Lease fences changes; "" for a single instance.
	Lease string
}

// Key returns the key of a task or run.
func (s Scope) Key(name string) string {
	if s.Name == "" {
		return name
	}
	return s.Name + "/" + name
}

// Fence returns a term's fence. Term 0, for manual requests, and a scope without a lease have none.
func (s Scope) Fence(term int64) Fence {
	if s.Lease == "" || term == 0 {
		return Fence{}
	}
	return Fence{s.Lease, term}
}
