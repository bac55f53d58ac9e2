package broker

import (
	"context"
	"fmt"
	"time"

	"tendril/queue"
)

// Registry is what several instances agree on by way of the broker that they
// share: who of them is in charge, which periodic runs were made, and which
// tasks are paused. It lies in the same file as the queues, so that a run and
// its message are one transaction.
//
// Every write is on the disk before it is answered. Each method returns when
// its context ends; what a write has come to is unknown then, as after any
// other error that is not a refusal, and to repeat it is harmless.
//
// Names of leases, tasks and runs mean nothing here and are shared by all who
// share the broker: environments that are to be apart begin theirs differently.
// All methods are safe for concurrent use.
type Registry struct{ b *Broker }

// Registry returns the broker's registry.
func (b *Broker) Registry() *Registry { return &Registry{b} }

// Bounds of what the registry takes, in bytes.
const (
	maxRegistryName = 512
	maxRegistryText = 16 << 10
)

// Read returns the lease stored under name, the zero value when there is none.
func (r *Registry) Read(ctx context.Context, name string) (queue.Lease, error) {
	if err := checkRegistryName("lease", name); err != nil {
		return queue.Lease{}, err
	}
	return view(ctx, r.b, func(c *conn) (queue.Lease, error) { return readLease(c, name) })
}

// Swap stores next under name if the Version stored there is old.Version ("" when
// nothing is stored); the other fields of old are not looked at. It returns
// whether it won and what is stored after the call. A Swap whose next is stored
// already has won: it repeats a call whose answer was lost. A next without a
// Version is refused. The Duration is stored in whole milliseconds.
func (r *Registry) Swap(ctx context.Context, name string, old, next queue.Lease) (won bool, current queue.Lease,
	err error) {
	if err := checkLease(name, next); err != nil {
		return false, queue.Lease{}, err
	}
	next.Duration = next.Duration.Truncate(time.Millisecond)
	current, err = alter(ctx, r.b, fence{}, func(c *conn) (queue.Lease, error) {
		stored, err := readLease(c, name)
		if err != nil || stored.Version == next.Version || stored.Version != old.Version {
			return stored, err
		}
		_, err = c.exec(`INSERT OR REPLACE INTO leases (name, version, term, owner, duration, released, data)
			VALUES (?,?,?,?,?,?,?)`,
			name, next.Version, next.Term, next.Owner, next.Duration.Milliseconds(), next.Released, next.Data)
		return next, err
	})
	return err == nil && current.Version == next.Version, current, err
}

func readLease(c *conn, name string) (l queue.Lease, err error) {
	err = c.query(func(row row) {
		l = queue.Lease{Version: row.text(0), Term: row.int(1), Owner: row.text(2),
			Duration: time.Duration(row.int(3)) * time.Millisecond, Released: row.int(4) != 0, Data: row.text(5)}
	}, `SELECT version, term, owner, duration, released, data FROM leases WHERE name = ?`, name)
	return l, err
}

// checkLease refuses a lease that cannot be stored as it is.
func checkLease(name string, l queue.Lease) error {
	if err := checkRegistryName("lease", name); err != nil {
		return err
	}
	if l.Version == "" {
		return queue.Errorf(queue.CodeInvalidParameterValue,
			"Lease %s needs a version; give each write a new one.", name)
	}
	if l.Term < 0 || l.Duration < 0 {
		return queue.Errorf(queue.CodeInvalidParameterValue,
			"Lease %s was to be written with a negative term or duration; terms count from 1.", name)
	}
	for field, text := range map[string]string{"version": l.Version, "owner": l.Owner, "data": l.Data} {
		if err := checkRegistryText(fmt.Sprintf("%s of lease %s", field, name), text); err != nil {
			return err
		}
	}
	return nil
}

// checkRegistryName refuses what cannot name a lease, a run or a task.
func checkRegistryName(what, name string) error {
	if name == "" || len(name) > maxRegistryName || !validText(name) {
		return queue.Errorf(queue.CodeInvalidParameterValue,
			"The name %q of a %s is not allowed: give 1 to %d bytes of text without control characters.",
			clip(name), what, maxRegistryName)
	}
	return nil
}

// checkRegistryText refuses what does not come back as it was written, and
// what is out of all proportion.
func checkRegistryText(what, text string) error {
	if len(text) > maxRegistryText || !validText(text) {
		return queue.Errorf(queue.CodeInvalidParameterValue,
			"The %s is not allowed: give at most %d bytes of text without control characters.",
			what, maxRegistryText)
	}
	return nil
}

// fence is a lease and the term in which alone a change is made; the zero value lets
// every change pass.
type fence struct {
	lease string
	term  int64
}

func (f fence) check() error {
	if (f.lease == "") != (f.term == 0) || f.term < 0 {
		return queue.Errorf(queue.CodeInvalidParameterValue,
			"Lease %q with term %d: give a lease and its term, which counts from 1, or neither.", clip(f.lease), f.term)
	}
	return nil
}

// refuse refuses a change by an instance whose term is over.
func (f fence) refuse(c *conn, what string) (refusal, err error) {
	if f.lease == "" {
		return nil, nil
	}
	l, err := readLease(c, f.lease)
	if err != nil || l.Term == f.term && !l.Released {
		return nil, err
	}
	return queue.Errorf(queue.CodeStaleTerm, "%s was not made: term %d of lease %s is over.", what, f.term, f.lease), nil
}

// alter makes a change in a transaction that is synced, unless the term of the fence is
// over, and waits for it as long as ctx allows.
func alter[T any](ctx context.Context, b *Broker, f fence, run func(c *conn) (T, error)) (T, error) {
	var value, none T
	var refusal error
	err := f.check()
	if err == nil {
		err = b.writer.do(ctx, &change{run: func(t *tx) (err error) {
			if refusal, err = f.refuse(t.c, "The change"); refusal == nil && err == nil {
				value, err = run(t.c)
			}
			return err
		}}, needs{durable: true})
	}
	if err != nil {
		return none, err // the writer may be at it still: nothing that it sets is looked at
	}
	return value, refusal
}

// view reads from the store for as long as ctx allows.
func view[T any](ctx context.Context, b *Broker, f func(*conn) (T, error)) (T, error) {
	type found struct {
		value T
		err   error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	done := make(chan found, 1)
	started := b.background.start(func() {
		var got found
		got.err = b.read(func(c *conn) (err error) {
			got.value, err = f(c)
			return err
		})
		done <- got
	})
	if !started {
		return none, queue.ErrClosed
	}
	select {
	case got := <-done:
		return got.value, got.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}
