package instances

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"tendril/queue"
)

// parallelReads is the number of slots that are read concurrently.
const parallelReads = 16

// Instance is an instance as seen by a reader.
type Instance struct {
	Record
	// Age is the time since this reader last saw the record change.
	Age time.Duration
}

// Reachable reports whether the instance has reported recently.
func (i *Instance) Reachable() bool { return i.Age < FreshFor }

// Watcher reads the records of all instances and determines their age. Its methods are safe for concurrent use.
type Watcher struct {
	directory
	log *slog.Logger

	mu      sync.Mutex
	seen    map[int]observation
	all     []Instance
	readAt  time.Time // time of the last complete read; zero before the first one
	err     error     // error of the last read
	leading time.Time // when this instance started reading as the leader; zero if it does not lead
}

// observation is the content of a slot and the time when it was first seen.
type observation struct {
	stored queue.Lease
	since  time.Time
}

// NewWatcher returns a watcher that has read nothing yet.
func NewWatcher(opts Options) *Watcher {
	return &Watcher{directory: directory{opts.Store, opts.Environment}, log: opts.Log, seen: map[int]observation{}}
}

// Run reads the records and frees the slots of lost instances, whenever this instance leads, until ctx ends.
func (w *Watcher) Run(ctx context.Context, leads func() bool) {
	ticks := time.NewTicker(ReadInterval)
	defer ticks.Stop()
	for {
		w.lead(ctx, leads())
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

func (w *Watcher) lead(ctx context.Context, leads bool) {
	w.mu.Lock()
	began := leads && w.leading.IsZero()
	switch {
	case began:
		w.leading = time.Now()
	case !leads:
		w.leading = time.Time{}
	}
	failing := w.err != nil
	w.mu.Unlock()
	if !leads {
		return
	}

	_, err := w.Read(ctx)
	if err == nil {
		err = w.forget(ctx)
	}
	if err != nil && !failing && ctx.Err() == nil {
		w.log.Warn("records of instances not read", "err", err)
	}
}

// Leading returns how long this instance has been reading the records as the leader; 0 if it does not lead.
func (w *Watcher) Leading() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leading.IsZero() {
		return 0
	}
	return time.Since(w.leading)
}

// Recent returns the instances as of the last read, with their current ages, and the error of that read.
func (w *Watcher) Recent() ([]Instance, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Clone(w.all)
	for i := range all {
		all[i].Age += time.Since(w.readAt)
	}
	return all, w.err
}

// ReadOnce returns the result of the last read if it is younger than maxAge, and otherwise calls Read.
func (w *Watcher) ReadOnce(ctx context.Context, maxAge time.Duration) ([]Instance, error) {
	w.mu.Lock()
	recent := !w.readAt.IsZero() && time.Since(w.readAt) < maxAge && w.err == nil
	w.mu.Unlock()
	if recent {
		return w.Recent()
	}
	return w.Read(ctx)
}

// Read reads the records of all instances that have not stopped, ordered by slot. The age of an instance that is seen
// for the first time is 0.
func (w *Watcher) Read(ctx context.Context) ([]Instance, error) {
	slots, leases, err := w.readSlots(ctx)

	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err = err; err != nil {
		return nil, err
	}

	now := time.Now()
	seen := map[int]observation{}
	w.all, w.readAt = nil, now
	for i, slot := range slots {
		o := observation{leases[i], now}
		if before, known := w.seen[slot]; known && before.stored.Version == o.stored.Version {
			o.since = before.since
		}
		seen[slot] = o
		if o.stored.Version == "" || o.stored.Released {
			continue
		}
		r, err := recordOf(slot, o.stored)
		if err != nil {
			w.log.Debug("record of an instance ignored", "err", err)
			continue
		}
		w.all = append(w.all, Instance{Record: r, Age: now.Sub(o.since)})
	}
	w.seen = seen
	return slices.Clone(w.all), nil
}

func (w *Watcher) readSlots(ctx context.Context) (slots []int, leases []queue.Lease, err error) {
	ctx, cancel := context.WithTimeout(ctx, ReadInterval)
	defer cancel()
	stored, err := w.store.Read(ctx, w.rosterName())
	if err != nil {
		return nil, nil, fmt.Errorf("reading the list of instances: %w", err)
	}
	list, err := rosterOf(stored)
	if err != nil {
		return nil, nil, err
	}

	slots = list.used()
	leases = make([]queue.Lease, len(slots))
	reads, ctx := errgroup.WithContext(ctx)
	reads.SetLimit(parallelReads)
	for i, slot := range slots {
		reads.Go(func() (err error) {
			leases[i], err = w.store.Read(ctx, w.slotName(slot))
			return err
		})
	}
	if err := reads.Wait(); err != nil {
		return nil, nil, fmt.Errorf("reading the records of the instances: %w", err)
	}
	return slots, leases, nil
}

// forget frees the slots whose content has not changed for [ForgetAfter]. It first marks a record as stopped, so that
// the instance notices if it comes back, and joins again.
func (w *Watcher) forget(ctx context.Context) error {
	w.mu.Lock()
	var lost []int
	for slot, o := range w.seen {
		if time.Since(o.since) >= ForgetAfter {
			lost = append(lost, slot)
		}
	}
	seen := w.seen
	w.mu.Unlock()
	if len(lost) == 0 {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, ReadInterval)
	defer cancel()
	var freed []int
	for _, slot := range lost {
		stored := seen[slot].stored
		if stored.Version != "" && !stored.Released {
			stopped := stored
			stopped.Version, stopped.Released = rand.Text(), true
			won, _, err := w.store.Swap(ctx, w.slotName(slot), stored, stopped)
			if err != nil {
				return fmt.Errorf("forgetting a lost instance: %w", err)
			}
			if !won {
				continue // the instance has reported since
			}
		}
		freed = append(freed, slot)
	}
	_, err := w.change(ctx, rand.Text(), func(r roster) roster { return r.free(freed...) })
	return err // after a conflict, the roster is changed after the next read
}
